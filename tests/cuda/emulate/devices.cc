/* The GPUs of the emulated machine. EMULATE_GPUS: their number (default: 8). EMULATE_MODELS: their
 * names, separated by commas; all further GPUs have the last name. CUDA_VISIBLE_DEVICES selects
 * GPUs, as with CUDA. */
#include "queue.h"

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cuda_runtime_api.h>
#include <string>
#include <vector>

namespace
{
int current;

std::vector<std::string> split_at_commas(const char *list)
{
    std::vector<std::string> out(1);
    for (const char *c = list; *c; ++c) {
        if (*c == ',')
            out.emplace_back();
        else
            out.back() += *c;
    }
    return out;
}

/* Returns the GPUs that this process may use, by their numbers in the machine. */
std::vector<int> visible()
{
    const char *gpus = getenv("EMULATE_GPUS"), *chosen = getenv("CUDA_VISIBLE_DEVICES");
    int all = gpus ? atoi(gpus) : 8;
    std::vector<int> out;
    if (!chosen) {
        for (int i = 0; i < all; ++i) out.push_back(i);
        return out;
    }
    for (const std::string &word : split_at_commas(chosen)) {
        int i = atoi(word.c_str());
        if (word.empty() || i < 0 || i >= all) break;
        out.push_back(i);
    }
    return out;
}

/* Sets *number to the number in the machine of CUDA's `device`. Returns false if there is no such
 * device. */
bool find_device(int device, int *number)
{
    std::vector<int> all = visible();
    if (device < 0 || size_t(device) >= all.size()) return false;
    *number = all[size_t(device)];
    return true;
}
} // namespace

extern "C" {
cudaError_t cudaGetDeviceCount(int *count)
{
    int driver;
    cudaDriverGetVersion(&driver);
    *count = int(visible().size());
    if (driver / 1000 < CUDART_VERSION / 1000) return cudaErrorInsufficientDriver;
    return *count > 0 ? cudaSuccess : cudaErrorNoDevice;
}
cudaError_t cudaSetDevice(int device)
{
    int number;
    if (!find_device(device, &number)) return cudaErrorInvalidDevice;
    current = device;
    return cudaSuccess;
}
cudaError_t cudaGetDevice(int *device)
{
    *device = current;
    return cudaSuccess;
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp *properties, int device)
{
    int number;
    if (!find_device(device, &number)) return cudaErrorInvalidDevice;
    const char *models = getenv("EMULATE_MODELS");
    std::vector<std::string> names = split_at_commas(models ? models : "emulated GPU");
    size_t name = size_t(number) < names.size() ? size_t(number) : names.size() - 1;
    *properties = {};
    snprintf(properties->name, sizeof properties->name, "%s", names[name].c_str());
    snprintf(properties->uuid.bytes, sizeof properties->uuid.bytes, "emulated %d", number);
    properties->major = 9;
    properties->multiProcessorCount = 2;
    properties->totalGlobalMem = size_t(8) << 30;
    properties->memPitch = emulate::environment("EMULATE_PITCH", INT32_MAX);
    return cudaSuccess;
}
/* The values are those of an H100. */
cudaError_t cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr what, int device)
{
    int number;
    if (!find_device(device, &number)) return cudaErrorInvalidDevice;
    if (what == cudaDevAttrMaxSharedMemoryPerMultiprocessor)
        *value = 228 << 10;
    else if (what == cudaDevAttrReservedSharedMemoryPerBlock)
        *value = 1 << 10;
    else if (what == cudaDevAttrMaxPitch)
        *value = int(emulate::environment("EMULATE_PITCH", INT32_MAX));
    else
        return cudaErrorInvalidValue;
    return cudaSuccess;
}
/* GPU 0 is the first on the bus; the others follow in descending order of their numbers. With a
 * real CUDA, too, numbers may not be in the order of the bus, because CUDA numbers GPUs by
 * speed. */
cudaError_t cudaDeviceGetPCIBusId(char *out, int length, int device)
{
    int number;
    if (!find_device(device, &number)) return cudaErrorInvalidDevice;
    snprintf(out, size_t(length), "0000:%02X:00.0", number == 0 ? 0x10 : 0x90 - number);
    return cudaSuccess;
}
}
