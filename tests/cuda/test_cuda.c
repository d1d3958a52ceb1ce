/* Compares the CUDA backend with the CPU's on random inputs: every operation and every flat
 * function, copies and events, ten training steps of every model of the zoo, and resuming from the
 * other device's checkpoint. Everything runs twice and must give the same bits. A table of relative
 * errors is printed at the end. Without a GPU the program says so, checks that a request for a GPU
 * fails with an error, and passes. The CPU backend is compared with PyTorch's values by the layers'
 * own tests.
 *
 * usage: test_cuda [operations] [full] [SEED] [PART OF A TEST'S NAME]
 *     operations: no models (for compute-sanitizer)
 *     full: large models, too
 *     SEED: of the inputs; 1 if not given, so that the suite never fails by chance; `make
 *     check-cuda` gives a new one */
#include "attention_cases.h"
#include "field_cases.h"
#include "flat_cases.h"
#include "gelu_cases.h"
#include "graph_cases.h"
#include "loss_cases.h"
#include "model_cases.h"
#include "pairs.h"
#include "precision_cases.h"
#include "reorder_cases.h"
#include "residual_cases.h"
#include "resume_cases.h"
#include "slice_cases.h"
#include "sort_cases.h"
#include "train.h"

static void test_ops(void)
{
    const OpCase cases[] = {
        {"dense", "width=10", 1, {2, {64, 512, 1, 1}}, ACT_NONE, 0, allowed.product},
        {"dense", "width=512", 1, {2, {37, 784, 1, 1}}, ACT_RELU, 0, allowed.product},
        {"dense", "width=33 bias=false", 1, {3, {3, 5, 17, 1}}, ACT_NONE, 0, allowed.product},
        {"dense", "width=1027", 1, {2, {21, 40, 1, 1}}, ACT_RELU, 0, allowed.product},
        {"dense", "width=1033 bias=false", 1, {3, {3, 5, 24, 1}}, ACT_NONE, 0, allowed.product},
        {"dense", "width=1", 1, {2, {1, 3, 1, 1}}, ACT_RELU, 0, allowed.product},
        {"dense", "width=48", 1, {3, {3, 5, 24, 1}}, ACT_GELU, 0, allowed.product},
        {"dense", "width=33", 1, {2, {20, 17, 1, 1}}, ACT_GELU, 0, allowed.product},
        {"dense", "width=40 bias=false", 1, {2, {9, 17, 1, 1}}, ACT_GELU, 0, allowed.product},
        {"dense", "width=40", 1, {2, {8191, 48, 1, 1}}, ACT_NONE, 0, allowed.long_product},
        {"dense", "width=10", 1, {2, {8191, 33, 1, 1}}, ACT_NONE, 0, allowed.long_product},
        {"relu", "", 1, {4, {3, 5, 7, 11}}, ACT_NONE, 0, allowed.exact},
        {"relu6", "", 1, {3, {3, 5, 77, 1}}, ACT_NONE, 0, allowed.exact},
        {"gelu", "", 1, {2, {33, 100, 1, 1}}, ACT_NONE, 0, allowed.elementwise},
        {"silu", "", 1, {2, {33, 100, 1, 1}}, ACT_NONE, 0, allowed.elementwise},
        {"tanh", "", 1, {2, {33, 100, 1, 1}}, ACT_NONE, 0, allowed.from_output},
        {"sigmoid", "", 1, {4, {3, 5, 4, 7}}, ACT_NONE, 0, allowed.from_output},
        {"elu", "alpha=0.7", 1, {2, {33, 100, 1, 1}}, ACT_NONE, 0, allowed.from_output},
        {"leaky_relu", "slope=0.2", 1, {4, {3, 5, 4, 7}}, ACT_NONE, 0, allowed.elementwise},
        {"softplus", "", 1, {2, {33, 100, 1, 1}}, ACT_NONE, 0, allowed.elementwise},
        {"mish", "", 1, {2, {33, 100, 1, 1}}, ACT_NONE, 0, allowed.elementwise},
        {"hardswish", "", 1, {2, {33, 100, 1, 1}}, ACT_NONE, 0, allowed.elementwise},
        {"add", "", 2, {4, {3, 5, 7, 11}}, ACT_NONE, 0, allowed.exact},
        {"add", "", 2, {2, {65, 33, 1, 1}}, ACT_RELU, 0, allowed.exact},
        {"flatten", "", 1, {4, {3, 5, 7, 11}}, ACT_NONE, 0, allowed.exact},
        {"softmax_loss", "", 1, {2, {64, 10, 1, 1}}, ACT_NONE, 0, allowed.elementwise},
        {"softmax_loss",
         "smoothing=0.1",
         1,
         {2, {37, 1000, 1, 1}},
         ACT_NONE,
         30,
         allowed.elementwise},
        {"softmax_loss", "smoothing=0.1", 1, {3, {4, 5, 50, 1}}, ACT_NONE, 3, allowed.elementwise},
        {"mse_loss", "", 1, {2, {37, 50, 1, 1}}, ACT_NONE, 30, allowed.elementwise},
        {"mse_loss", "", 1, {4, {3, 5, 7, 11}}, ACT_NONE, 2, allowed.elementwise},
        {"l1_loss", "", 1, {2, {37, 50, 1, 1}}, ACT_NONE, 30, allowed.elementwise},
        {"huber_loss", "delta=0.3", 1, {3, {3, 5, 77, 1}}, ACT_NONE, 0, allowed.elementwise},
        {"charbonnier_loss", "eps=0.1", 1, {4, {2, 3, 41, 50}}, ACT_NONE, 0, allowed.steep},
        {"yolo_loss",
         "image=64,64 anchors=10,13,16,30,33,23,30,61 smoothing=0.1",
         2,
         {4, {3, 16, 4, 4}},
         ACT_NONE,
         2,
         allowed.elementwise},
        {"yolo_loss",
         "image=64,64 anchors=20,30,33,23,50,61",
         3,
         {4, {3, 6, 8, 8}},
         ACT_NONE,
         0,
         allowed.elementwise},
        {"dropout", "p=0.3", 1, {4, {3, 5, 4, 7}}, ACT_NONE, 0, allowed.elementwise},
        {"dropout2d", "p=0.3", 1, {4, {3, 21, 4, 7}}, ACT_NONE, 0, allowed.elementwise},
        {"flatten", "", 1, {4, {3, 5, 1, 1}}, ACT_NONE, 0, allowed.exact},
        {"concat", "", 3, {4, {3, 5, 4, 7}}, ACT_NONE, 0, allowed.exact},
        {"concat", "", 2, {2, {3, 35, 1, 1}}, ACT_NONE, 0, allowed.exact},
        {"max_pool", "kernel=3 stride=2 pad=1", 1, {4, {2, 5, 9, 8}}, ACT_NONE, 0, allowed.exact},
        {"max_pool", "kernel=2", 1, {4, {2, 3, 8, 6}}, ACT_RELU, 0, allowed.exact},
        {"avg_pool", "kernel=3 stride=2 pad=1", 1, {4, {2, 5, 9, 8}}, ACT_NONE, 0, allowed.product},
        {"avg_pool", "kernel=2,3 stride=1", 1, {4, {2, 3, 7, 8}}, ACT_RELU, 0, allowed.product},
        {"upsample", "", 1, {4, {2, 5, 4, 7}}, ACT_NONE, 0, allowed.exact},
        {"upsample", "scale=3", 1, {4, {2, 16, 3, 4}}, ACT_NONE, 0, allowed.exact},
        {"upsample", "mode=bilinear", 1, {4, {2, 5, 4, 7}}, ACT_NONE, 0, allowed.product},
        {"upsample",
         "scale=3 mode=bilinear align_corners=true",
         1,
         {4, {2, 16, 3, 4}},
         ACT_NONE,
         0,
         allowed.product},
        {"pad", "pad=1,2,-2,3", 1, {4, {2, 5, 4, 7}}, ACT_NONE, 0, allowed.exact},
        {"pad",
         "pad=3,2,4,1 mode=reflect,circular",
         1,
         {4, {2, 16, 4, 7}},
         ACT_NONE,
         0,
         allowed.product},
        {"pad", "pad=3,2,4,1 mode=replicate", 1, {4, {2, 6, 1, 3}}, ACT_NONE, 0, allowed.product},
        {"conv_transpose2d",
         "channels=7 kernel=3 pad=1 stride=2 output_pad=1",
         1,
         {4, {2, 5, 4, 6}},
         ACT_NONE,
         0,
         allowed.conv},
        {"conv_transpose2d",
         "channels=8 kernel=2 stride=2 groups=2 bias=false",
         1,
         {4, {2, 6, 4, 3}},
         ACT_NONE,
         0,
         allowed.conv},
        {"pixel_shuffle", "", 1, {4, {2, 20, 3, 4}}, ACT_NONE, 0, allowed.exact},
        {"pixels_to_tokens", "", 1, {4, {2, 20, 3, 4}}, ACT_NONE, 0, allowed.exact},
        {"global_pool", "", 1, {4, {2, 37, 5, 6}}, ACT_NONE, 0, allowed.product},
        {"batch_norm", "", 1, {4, {4, 37, 5, 6}}, ACT_NONE, 0, allowed.product},
        {"batch_norm", "", 1, {4, {4, 5, 9, 6}}, ACT_RELU, 3, allowed.product},
        {"batch_norm", "", 1, {2, {40, 70, 1, 1}}, ACT_RELU6, 0, allowed.product},
        {"conv2d", "channels=7 kernel=3 pad=1", 1, {4, {2, 5, 9, 8}}, ACT_NONE, 0, allowed.conv},
        {"conv2d",
         "channels=8 kernel=3 stride=2 pad=1 groups=2 bias=false",
         1,
         {4, {2, 6, 9, 8}},
         ACT_RELU,
         0,
         allowed.conv},
        {"conv2d",
         "channels=6 kernel=3 groups=6 bias=false",
         1,
         {4, {2, 6, 7, 8}},
         ACT_RELU,
         0,
         allowed.conv},
        {"conv2d", "channels=16 kernel=1", 1, {4, {3, 12, 5, 5}}, ACT_NONE, 0, allowed.conv},
        {"dropout", "p=0.3", 1, {3, {3, 5, 77, 1}}, ACT_NONE, 0, allowed.elementwise},
        {"dropout", "p=0.1", 1, {2, {5, 131, 1, 1}}, ACT_NONE, 0, allowed.elementwise},
        {"embedding",
         "vocab=300 width=33",
         1,
         {2, {4, 129, 1, 1}},
         ACT_NONE,
         0,
         allowed.elementwise},
        {"embedding", "vocab=7 width=300", 1, {2, {3, 100, 1, 1}}, ACT_NONE, 2, allowed.product},
        {"positions", "context=20", 1, {3, {3, 20, 33, 1}}, ACT_NONE, 2, allowed.elementwise},
        {"layer_norm", "", 1, {3, {3, 40, 64, 1}}, ACT_NONE, 2, allowed.product},
        {"layer_norm", "", 1, {2, {300, 77, 1, 1}}, ACT_NONE, 0, allowed.product},
        {"layer_norm", "", 1, {2, {9, 768, 1, 1}}, ACT_NONE, 0, allowed.product},
        {"layer_norm", "", 1, {2, {5, 2304, 1, 1}}, ACT_NONE, 0, allowed.product},
        {"rms_norm", "", 1, {3, {3, 40, 64, 1}}, ACT_NONE, 2, allowed.product},
        {"rms_norm", "eps=1e-3", 1, {2, {300, 77, 1, 1}}, ACT_NONE, 0, allowed.product},
        {"rms_norm", "", 1, {2, {5, 6152, 1, 1}}, ACT_NONE, 0, allowed.product},
        {"swiglu", "", 1, {3, {3, 20, 96, 1}}, ACT_NONE, 2, allowed.elementwise},
        {"swiglu", "", 1, {2, {65, 38, 1, 1}}, ACT_NONE, 0, allowed.elementwise},
        {"batch_norm", "", 1, {4, {3, 24, 9, 9}}, ACT_RELU, 2, allowed.product},
        {"max_pool", "kernel=3 stride=2 pad=1", 1, {4, {2, 16, 9, 8}}, ACT_NONE, 0, allowed.exact},
        {"softmax_loss", "", 1, {2, {5, 2088, 1, 1}}, ACT_NONE, 4, allowed.elementwise},
        {"dropout", "p=0.3", 1, {3, {2, 5, 64, 1}}, ACT_NONE, 0, allowed.elementwise},
        {"embedding", "vocab=5 width=64", 1, {2, {3, 300, 1, 1}}, ACT_NONE, 2, allowed.product},
        {"attention", "heads=2", 1, {3, {2, 9, 3 * 2 * 8, 1}}, ACT_NONE, 0, allowed.attention},
        {"attention", "heads=3", 1, {3, {2, 150, 3 * 3 * 16, 1}}, ACT_NONE, 0, allowed.attention},
        {"attention", "heads=2", 1, {3, {2, 70, 3 * 2 * 64, 1}}, ACT_NONE, 1, allowed.attention},
        {"attention",
         "heads=1 rotary=true",
         1,
         {3, {2, 65, 3 * 80, 1}},
         ACT_NONE,
         0,
         allowed.attention},
        {"attention",
         "heads=2 rotary=true",
         1,
         {3, {1, 40, 3 * 2 * 32, 1}},
         ACT_NONE,
         0,
         allowed.attention},
    };
    run_ops(cases, sizeof cases / sizeof cases[0], gpu);
    run_ops(cases, sizeof cases / sizeof cases[0], gpu_bf16);
    run_ops(cases, sizeof cases / sizeof cases[0], gpu_fp16);
}

/* Operations that add their gradient to that of other readers: layer norms with wide and narrow
 * rows, with and without packs, with one or several parts of the rows; convolutions. */
static void run_adding_ops(Pair *p, Backend *device)
{
    static const int64_t width[] = {8, 77, 264, 768, 1608, 6144, 6152};
    for (size_t i = 0; i < sizeof width / sizeof *width; ++i) {
        Shape x = shape_of(3, 3, width[i] < 2000 ? 23 : 2, width[i], 1);
        run_op(p, &(OpCase){"layer_norm", "", 1, x, ACT_NONE, 2, allowed.product}, device, NULL);
    }
    const Shape x = shape_of(3, 3, 23, 264, 1);
    run_op(p, &(OpCase){"rms_norm", "", 1, x, ACT_NONE, 2, allowed.product}, device, NULL);
    const OpCase convs[] = {
        {"conv2d",
         "channels=12 kernel=1 bias=false",
         1,
         {4, {3, 20, 5, 6}},
         ACT_NONE,
         2,
         allowed.conv},
        {"conv2d",
         "channels=8 kernel=3 stride=2 pad=1",
         1,
         {4, {2, 5, 9, 8}},
         ACT_NONE,
         1,
         allowed.conv},
    };
    for (size_t i = 0; i < sizeof convs / sizeof *convs; ++i) run_op(p, &convs[i], device, NULL);
}

static void test_adding_ops(void)
{
    Backend *const devices[] = {gpu, gpu_bf16, gpu_fp16};
    Pair p = pair_new();
    p.adds = true;
    for (int d = 0; d < 3; ++d) run_adding_ops(&p, devices[d]);
    pair_free(&p);
}

static void test_biased(void)
{
    const OpCase c = {"conv2d",    "channels=7 kernel=3 pad=1", 1, {4, {2, 5, 9, 8}}, ACT_NONE, 0,
                      allowed.conv};
    OpCase relu = c;
    relu.act = ACT_RELU;
    Pair p = pair_new();
    run_op(&p, &c, gpu, "");
    run_op(&p, &relu, gpu, "");
    pair_free(&p);
}

/* ---- no GPU ---- */

static void test_absent(void)
{
    Backend *backend = NULL;
    CHECK_FAILS(backend_open(&backend, &backend_cuda, (BackendOptions){.threads = 1}), ERR_CONFIG,
                "train.device");
    CU_ASSERT_PTR_NULL(backend);
}

/* Options from the command line. */
typedef struct Wanted {
    /* true: run only the tests of operations */
    bool operations;
    /* part of a test's name; NULL: all tests */
    const char *part;
} Wanted;

static bool read_words(int argc, char **argv, Wanted *wanted)
{
    for (int i = 1; i < argc; ++i) {
        char *end = NULL;
        uint32_t number = (uint32_t)strtoul(argv[i], &end, 10);
        if (end != argv[i] && !*end)
            seed = number;
        else if (strcmp(argv[i], "full") == 0)
            full = true;
        else if (strcmp(argv[i], "operations") == 0)
            wanted->operations = true;
        else if (!wanted->part)
            wanted->part = argv[i];
        else
            return false;
    }
    return true;
}

/* Copies the tests whose names contain `part` to `chosen` and returns their number. */
static int choose(const HarnessTest *test, int count, const char *part, HarnessTest *chosen)
{
    int n = 0;
    for (int i = 0; i < count; ++i)
        if (!part || strstr(test[i].name, part)) chosen[n++] = test[i];
    return n;
}

/* A window whose numbers are all -infinity gives its gradient to its first pixel, as on the CPU. */
static void test_infinite_pool(void)
{
    const OpCase c = {"max_pool",   "kernel=3 stride=3 pad=1", 1, {4, {1, 8, 5, 5}}, ACT_NONE, 0,
                      allowed.exact};
    const int64_t count = shape_count(c.x);
    Pair p = pair_new();
    CU_ASSERT_EQUAL_FATAL(pair_open(&p, &c, gpu), OK);
    for (int64_t i = 0; i < count; ++i) p.given[i] = -INFINITY;
    for (int d = 0; d < 2; ++d) rig_set_x(&p.rig[d], 0, p.given);
    fill(p.given, shape_count(p.rig[0].spec.y.shape), 1);
    for (int d = 0; d < 2; ++d) {
        rig_forward(&p.rig[d]);
        rig_backward(&p.rig[d], p.given);
        rig_get_dx(&p.rig[d], 0, p.got[d]);
    }
    CU_ASSERT_EQUAL(memcmp(p.got[1], p.got[0], (size_t)count * sizeof(float)), 0);
    pair_close(&p);
    pair_free(&p);
}

int main(int argc, char **argv)
{
    train_use_words();
    static const HarnessTest absent[] = {{"no GPU is a message", test_absent}};
    static const HarnessTest present[] = {{"operations", test_ops},
                                          {"pools of infinities", test_infinite_pool},
                                          {"layouts", test_reorder},
                                          {"a convolution with its bias", test_biased},
                                          {"gelu before dense", test_gelu},
                                          {"gradients added to others'", test_adding_ops},
                                          {"dense with a residual", test_residual},
                                          {"attention", test_attention},
                                          {"attention in groups", test_attention_groups},
                                          {"attention of many samples", test_attention_launches},
                                          {"attention of all kinds", test_attention_kinds},
                                          {"losses at once", test_losses},
                                          {"group norm", test_group_norm},
                                          {"film", test_film},
                                          {"sums of channels", test_channel_sum},
                                          {"losses of pixels", test_pixel_losses},
                                          {"labels that are no classes", test_bad_labels},
                                          {"losses of wide fields", test_wide_losses},
                                          {"slices", test_slices},
                                          {"slices of sums", test_slices_of_sums},
                                          {"sums", test_flat_sums},
                                          {"squares", test_flat_squares},
                                          {"squares of chunks", test_flat_chunks},
                                          {"exact squares", test_flat_exact},
                                          {"a gradient's norm", test_flat_norm},
                                          {"rows", test_copy_rows},
                                          {"the order of tokens", test_sort},
                                          {"scratch of an order", test_sort_scratch},
                                          {"updates", test_flat_updates},
                                          {"copies of every rule", test_rule_copies},
                                          {"averages", test_flat_average},
                                          {"streams", test_streams},
                                          {"models without sums", test_residual_models},
                                          {"a residual in other rows", test_residual_reorder},
                                          {"models", test_models},
                                          {"the other device's checkpoint", test_resume},
                                          {"too little memory", test_memory},
                                          {"graphs", test_graphs},
                                          {"graphs with averages", test_graph_averages},
                                          {"tf32", test_tf32},
                                          {"a step that overflows", test_overflow}};
    enum { ALL = sizeof present / sizeof *present, OPERATIONS = 27 };
    const char *why = NULL;
    HarnessTest chosen[ALL];
    Wanted wanted = {0};
    seed = 1;
    bool good = read_words(argc, argv, &wanted);
    int count = choose(present, wanted.operations ? OPERATIONS : ALL, wanted.part, chosen);
    if (!good || count == 0) {
        fprintf(stderr,
                "usage: %s [full] [operations] [SEED] [PART OF A TEST'S NAME]\nfull: large "
                "models, too. The tests, operations first:\n",
                argv[0]);
        for (int i = 0; i < ALL; ++i) fprintf(stderr, "  %s\n", present[i].name);
        return 64;
    }
    if (cuda_device_count(&why) == 0) {
        int rc = harness_run("cuda", absent, 1, 0, NULL);
        printf("  skipped: no GPU (%s)\n", why);
        return rc;
    }
    printf("seed %u\n", seed);
    BackendOptions fp32 = {.threads = 1}, bf16 = {.threads = 1, .precision = DTYPE_BF16},
                   fp16 = {.threads = 1, .precision = DTYPE_F16},
                   tf32 = {.threads = 1, .tf32 = true};
    if (backend_open(&cpu, &backend_cpu, fp32) != OK ||
        backend_open(&gpu, &backend_cuda, fp32) != OK ||
        backend_open(&gpu_bf16, &backend_cuda, bf16) != OK ||
        backend_open(&gpu_fp16, &backend_cuda, fp16) != OK ||
        backend_open(&gpu_tf32, &backend_cuda, tf32) != OK) {
        printf("%s\n", fail_message());
        return 1;
    }
    int rc = harness_run("cuda", chosen, count, 0, NULL);
    print_table();
    backend_close(&gpu_tf32);
    backend_close(&gpu_fp16);
    backend_close(&gpu_bf16);
    backend_close(&gpu);
    backend_close(&cpu);
    return rc;
}
