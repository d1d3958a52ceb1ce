/* Finds the GPUs of this machine, and makes the messages for a machine without a GPU and for a GPU
 * that cannot be used. Works without a backend. */
#include "cuda.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

const char *cuda_host_name(void)
{
    static char name[65];
    if (!*name) host_name(name, sizeof name);
    return name;
}

/* Returns advice to the user about an error at set-up. */
static const char *remedy(cudaError_t error)
{
    switch (error) {
    case cudaErrorMemoryAllocation:
        return "end the process that fills its memory (nvidia-smi lists it), or choose another "
               "GPU with CUDA_VISIBLE_DEVICES";
    case cudaErrorDevicesUnavailable:
        return "another process uses it exclusively (nvidia-smi lists it): end that process, or "
               "choose another GPU with CUDA_VISIBLE_DEVICES";
    case cudaErrorSystemNotReady:
        return "start this node's nvidia-fabricmanager service";
    case cudaErrorSystemDriverMismatch:
        return "the driver was updated while it was loaded: restart this node";
    default:
        return "train.device=cpu needs no GPU";
    }
}

Status cuda_check_setup(cudaError_t error, const char *what, int device)
{
    if (error == cudaSuccess) return OK;
    cudaGetLastError();
    return fail(ERR_CONFIG, "node %s: GPU %d: %s: %s (%s); %s", cuda_host_name(), device, what,
                cudaGetErrorString(error), cudaGetErrorName(error), remedy(error));
}

/* Writes the text of a version number of CUDA to `out` and returns it: "13.0" for 13000. */
static char *version_text(int version, char out[16])
{
    snprintf(out, 16, "%d.%d", version / 1000, version % 1000 / 10);
    return out;
}

static const char *no_device_reason(cudaError_t error)
{
    static char reason[256];
    char have[16], need[16];
    int driver = 0;
    if (cudaDriverGetVersion(&driver) != cudaSuccess) driver = 0;
    if (driver == 0) return "no NVIDIA driver on this machine";
    if (error == cudaErrorInsufficientDriver)
        snprintf(
            reason, sizeof reason,
            "the NVIDIA driver supports CUDA %s, and this program needs %s: update the driver, "
            "or build weft with CUDA %d",
            version_text(driver, have), version_text(CUDART_VERSION, need), driver / 1000);
    else if (error == cudaErrorNoDevice || error == cudaSuccess)
        return "the NVIDIA driver shows no GPU to this process: see nvidia-smi and "
               "CUDA_VISIBLE_DEVICES";
    else
        snprintf(reason, sizeof reason, "%s (%s); %s", cudaGetErrorString(error),
                 cudaGetErrorName(error), remedy(error));
    return reason;
}

int cuda_device_count(const char **why)
{
    int count = 0;
    cudaError_t error = cudaGetDeviceCount(&count);
    if (error != cudaSuccess) {
        /* clears the error; otherwise the next kernel launch would report it */
        cudaGetLastError();
        count = 0;
    }
    if (why) *why = count > 0 ? NULL : no_device_reason(error);
    return count;
}

/* Returns whether the address of GPU a on the PCI bus is before the address of GPU b. If an address
 * cannot be read, CUDA's own order counts. */
static bool comes_before(int a, int b)
{
    char bus_a[32] = "", bus_b[32] = "";
    cudaError_t error = cudaDeviceGetPCIBusId(bus_a, sizeof bus_a, a);
    if (error == cudaSuccess) error = cudaDeviceGetPCIBusId(bus_b, sizeof bus_b, b);
    if (error != cudaSuccess) cudaGetLastError();
    int order = error == cudaSuccess ? strcmp(bus_a, bus_b) : 0;
    return order < 0 || (order == 0 && a < b);
}

int cuda_device_by_bus(int number, int count)
{
    for (int i = 0; i < count; ++i) {
        int before = 0;
        for (int k = 0; k < count; ++k) before += k != i && comes_before(k, i);
        if (before == number) return i;
    }
    return number;
}

bool cuda_device_facts(int number, GpuFacts *facts)
{
    const int count = cuda_device_count(NULL);
    if (count == 0) return false;
    const int device = cuda_device_by_bus(number % count, count);
    struct cudaDeviceProp properties;
    size_t free_bytes = 0, all_bytes = 0;
    cudaError_t error = cudaGetDeviceProperties(&properties, device);
    if (error == cudaSuccess) error = cudaDeviceGetPCIBusId(facts->bus, sizeof facts->bus, device);
    if (error == cudaSuccess) error = cudaSetDevice(device);
    if (error == cudaSuccess) error = cudaMemGetInfo(&free_bytes, &all_bytes);
    if (error != cudaSuccess) {
        cudaGetLastError();
        return false;
    }
    snprintf(facts->model, sizeof facts->model, "%.63s", properties.name);
    facts->free_bytes = (double)free_bytes;
    facts->bytes = (double)all_bytes;
    return true;
}

void cuda_check(cudaError_t error, const char *call)
{
    if (error != cudaSuccess)
        die("%s: %s (%s)%s", call, cudaGetErrorString(error), cudaGetErrorName(error),
            cuda_recording_note());
}
