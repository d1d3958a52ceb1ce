/* Models of GPU for which a run can be planned on a machine without a GPU. A model is described to
 * cuDNN by the JSON text that cuDNN itself writes for such a GPU. */
#include "cudnn_graph.h"

#include <string.h>

struct GpuModel {
    /* name of the model for `weft plan --gpu` */
    const char *word;
    /* name of the model in CUDA */
    const char *name;
    /* compute capability times 100 */
    int capability;
    /* number of streaming multiprocessors */
    int processors;
    /* clock_khz, memory_khz: clock rates of the multiprocessors and of the memory; l2_bytes: size
     * of the L2 cache */
    int clock_khz, memory_khz, l2_bytes;
    /* largest shared memory of a thread block, in bytes */
    int shared_bytes;
    int64_t memory_bytes;
};
static const GpuModel models[] = {
    {"h100", "NVIDIA H100 80GB HBM3", 900, 132, 1980000, 2619000, 52428800, 232448,
     INT64_C(85029158912)},
    {"h200", "NVIDIA H200", 900, 132, 1980000, 3201000, 62914560, 232448, INT64_C(150110011392)},
    {"a100", "NVIDIA A100-SXM4-80GB", 800, 108, 1410000, 1593000, 41943040, 166912,
     INT64_C(85097971712)},
};
enum { MODELS = sizeof models / sizeof *models };

Status gpu_model_find(const GpuModel **model, const char *word)
{
    *model = word ? NULL : models;
    for (int i = 0; i < MODELS && word; ++i)
        if (strcmp(models[i].word, word) == 0) *model = &models[i];
    if (*model) return OK;
    return fail(ERR_USAGE, "'%s' is not a GPU model that weft knows: h100, h200, a100", word);
}

const char *gpu_model_name(const GpuModel *model)
{
    return model->name;
}

double gpu_model_memory_bytes(const GpuModel *model)
{
    return (double)model->memory_bytes;
}

int gpu_model_capability(const GpuModel *model)
{
    return model->capability / 100;
}

Status gpu_model_describe(const GpuModel *model, cudnnBackendDescriptor_t *device)
{
    char text[1024], why[256];
    int length = snprintf(
        text, sizeof text,
        "{\"deviceName\":\"%s\",\"deviceVer\":%d,\"driverVer\":13000,\"cudaDeviceId\":0,"
        "\"pciDeviceId\":0,\"multiProcessorCount\":%d,\"smClockRateKHz\":%d,"
        "\"memClockRateKHz\":%d,\"l2CacheSize\":%d,\"totalGlobalMem\":%lld,"
        "\"maxSharedMemoryPerBlock\":49152,\"maxSharedMemoryPerBlockOptin\":%d,"
        "\"reservedSharedMemoryPerBlock\":1024,\"regsPerBlock\":65536,\"maxRegistersPerSM\":65536,"
        "\"maxCtasPerSM\":32,\"maxThreadsPerBlock\":1024,\"maxThreadsPerSM\":2048,\"warpSize\":32,"
        "\"maxGridSize\":[2147483647,65535,65535],\"maxBlockSize\":[1024,1024,64],"
        "\"isTccDriver\":0,\"supportCoopLaunch\":1}",
        model->name, model->capability, model->processors, model->clock_khz, model->memory_khz,
        model->l2_bytes, (long long)model->memory_bytes, model->shared_bytes);
    TRY(cudnn_load());
    *device = NULL;
    if (cudnn.descriptor_create(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR, device) ==
            CUDNN_STATUS_SUCCESS &&
        cudnn.descriptor_set(*device, CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, CUDNN_TYPE_CHAR,
                             length + 1, text) == CUDNN_STATUS_SUCCESS &&
        cudnn.descriptor_finalize(*device) == CUDNN_STATUS_SUCCESS)
        return OK;
    cudnn.last_error(why, sizeof why);
    if (*device) CUDNN_CALL(cudnn.descriptor_destroy(*device));
    *device = NULL;
    return fail(ERR_CONFIG, "cuDNN %zu cannot plan for a GPU that this machine lacks: %s",
                cudnn.get_version(), why);
}
