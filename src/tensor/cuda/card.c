/* GPUs that plans can be made for on a machine without them. Each is described to cuDNN by the JSON
 * text that cuDNN itself writes for a GPU. */
#include "cudnn_graph.h"

#include <string.h>

struct GpuCard {
    const char *word, *name;
    int capability, processors, clock_khz, memory_khz, l2_bytes, shared_bytes;
    int64_t memory_bytes;
};
static const GpuCard cards[] = {
    {"h100", "NVIDIA H100 80GB HBM3", 900, 132, 1980000, 2619000, 52428800, 232448,
     INT64_C(85029158912)},
    {"h200", "NVIDIA H200", 900, 132, 1980000, 3201000, 62914560, 232448, INT64_C(150110011392)},
    {"a100", "NVIDIA A100-SXM4-80GB", 800, 108, 1410000, 1593000, 41943040, 166912,
     INT64_C(85097971712)},
};
enum { CARDS = sizeof cards / sizeof *cards };

Status card_find(const GpuCard **card, const char *word)
{
    *card = word ? NULL : cards;
    for (int i = 0; i < CARDS && word; ++i)
        if (strcmp(cards[i].word, word) == 0) *card = &cards[i];
    if (*card) return OK;
    return fail(ERR_USAGE, "'%s' is no GPU that can be planned for without it: h100, h200, a100",
                word);
}

const char *card_name(const GpuCard *card)
{
    return card->name;
}

double card_memory_bytes(const GpuCard *card)
{
    return (double)card->memory_bytes;
}

int card_capability(const GpuCard *card)
{
    return card->capability / 100;
}

Status card_describe(const GpuCard *card, cudnnBackendDescriptor_t *device)
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
        card->name, card->capability, card->processors, card->clock_khz, card->memory_khz,
        card->l2_bytes, (long long)card->memory_bytes, card->shared_bytes);
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
    return fail(ERR_CONFIG, "cuDNN %zu cannot plan for a GPU that is not here: %s",
                cudnn.get_version(), why);
}
