/* The graphs of attention before the real cuDNN, for GPUs that are only described: it finds an engine for each that repeats its
 * bits, compiles the kernel and says the workspace. Whether the kernels run, and how fast, only a GPU tells. */
#include "harness.h"
#include "tensor/cuda/cudnn_attention.h"

typedef struct Card {
    const char *name;
    int capability, processors, clock_khz, memory_khz, l2_bytes, shared_bytes;
    int64_t memory_bytes;
} Card;

static const Card a100 = {"NVIDIA A100-SXM4-80GB", 800, 108, 1410000, 1593000, 41943040, 166912,
                          INT64_C(85097971712)},
                  h100 = {"NVIDIA H100 80GB HBM3", 900, 132, 1980000, 2619000, 52428800, 232448,
                          INT64_C(85029158912)},
                  h200 = {"NVIDIA H200", 900,      132,    1980000,
                          3201000,       62914560, 232448, INT64_C(150110011392)};

/* In the form that cuDNN itself writes. False: this cuDNN knows none. */
static bool describe(cudnnBackendDescriptor_t *device, const Card *card)
{
    char text[1024];
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
    return cudnn.descriptor_create(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR, device) ==
               CUDNN_STATUS_SUCCESS &&
           cudnn.descriptor_set(*device, CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, CUDNN_TYPE_CHAR,
                                length + 1, text) == CUDNN_STATUS_SUCCESS &&
           cudnn.descriptor_finalize(*device) == CUDNN_STATUS_SUCCESS;
}

static bool ready(cudnnBackendDescriptor_t *device, const Card *card)
{
    char why[256];
    if (cudnn_load() != OK) {
        printf("  skipped: %s\n", fail_message());
        return false;
    }
    if (cudnn.get_version() < FUSED_OLDEST) {
        printf("  skipped: cuDNN %zu is older than %d\n", cudnn.get_version(), FUSED_OLDEST);
        return false;
    }
    if (describe(device, card)) return true;
    cudnn.last_error(why, sizeof why);
    printf("  skipped: cuDNN %zu cannot plan for a GPU that is only described: %s\n",
           cudnn.get_version(), why);
    return false;
}

static void check_plans(const Card *card, AttentionShape shape)
{
    cudnnBackendDescriptor_t device;
    FusedAttention f;
    if (!ready(&device, card)) return;
    shape.samples = fused_group(shape);
    bool served = fused_init(&f, shape, (DnnTarget){.device = device});
    CU_ASSERT_TRUE(served);
    printf("  %s: %lld samples x %lld positions, %lld heads of %lld%s: ", card->name,
           (long long)shape.samples, (long long)shape.length, (long long)shape.heads,
           (long long)shape.width, shape.turned ? ", turned" : "");
    if (served) {
        printf("workspaces %zu and %zu bytes\n", f.forward.workspace_bytes,
               f.backward.workspace_bytes);
        CU_ASSERT_TRUE(fused_workspace_bytes(&f) <= fused_scratch_bytes(shape));
    } else {
        printf("%s\n", f.why_not);
    }
    fused_fini(&f);
    CUDNN_CALL(cudnn.descriptor_destroy(device));
}

static void test_shapes(void)
{
    static const AttentionShape shapes[] = {
        {32, 1024, 12, 64, false}, /* gpt2-124m */
        {32, 1024, 12, 64, true},  {64, 1024, 12, 64, false}, {1, 1024, 25, 64, false},
        {3, 1000, 12, 64, false},  {8, 17, 3, 8, true},       {8, 24, 2, 16, false},
        {4, 333, 6, 32, false},    {2, 2048, 16, 128, true},  {2, 4096, 16, 96, false},
        {1, 1, 1, 64, false},
    };
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; ++i) check_plans(&h200, shapes[i]);
}

static void test_cards(void)
{
    check_plans(&h100, (AttentionShape){32, 1024, 12, 64, false});
    check_plans(&a100, (AttentionShape){32, 1024, 12, 64, false});
}

static void test_widths(void)
{
    cudnnBackendDescriptor_t device;
    FusedAttention f;
    if (!ready(&device, &h200)) return;
    CU_ASSERT_FALSE(
        fused_init(&f, (AttentionShape){2, 64, 2, 12, false}, (DnnTarget){.device = device}));
    CU_ASSERT_PTR_NOT_NULL(strstr(f.why_not, "heads 12 wide"));
    fused_fini(&f);
    CUDNN_CALL(cudnn.descriptor_destroy(device));
}

/* Groups divide the samples, and their scratch is bearable. */
static void test_groups(void)
{
    CU_ASSERT_EQUAL(fused_group((AttentionShape){32, 1024, 12, 64, false}), 32);
    CU_ASSERT_EQUAL(fused_group((AttentionShape){64, 1024, 12, 64, false}), 32);
    CU_ASSERT_EQUAL(fused_group((AttentionShape){60, 1024, 12, 64, false}), 30);
    CU_ASSERT_EQUAL(fused_group((AttentionShape){37, 2048, 12, 64, false}), 1);
    CU_ASSERT_EQUAL(fused_group((AttentionShape){2, 65536, 12, 64, false}), 1);
    CU_ASSERT_EQUAL(fused_group((AttentionShape){6, 9999, 3, 64, false}), 6); /* uneven rows */
}

TEST_MAIN("cuda plans", {"attention's graphs have plans on an H200", test_shapes},
          {"and on other cards", test_cards}, {"widths that have none", test_widths},
          {"groups of samples", test_groups})
