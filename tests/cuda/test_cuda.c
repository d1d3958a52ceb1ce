/* The CUDA backend against the CPU's, on fresh random inputs: every operation it has, every flat function, copies and
 * events, and ten steps of training an mlp. Where there is no GPU it says so, checks that asking for one fails cleanly,
 * and passes. The layers' own tests hold the CPU backend to PyTorch's values. */
#include "attention_cases.h"
#include "gelu_cases.h"
#include "model_cases.h"
#include "pairs.h"
#include "precision_cases.h"
#include "graph_cases.h"

#include <time.h>

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
        {"relu", "", 1, {4, {3, 5, 7, 11}}, ACT_NONE, 0, allowed.exact},
        {"relu6", "", 1, {3, {3, 5, 77, 1}}, ACT_NONE, 0, allowed.exact},
        {"gelu", "", 1, {2, {33, 100, 1, 1}}, ACT_NONE, 0, allowed.elementwise},
        {"silu", "", 1, {2, {33, 100, 1, 1}}, ACT_NONE, 0, allowed.elementwise},
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
        {"dropout", "p=0.3", 1, {4, {3, 5, 4, 7}}, ACT_NONE, 0, allowed.elementwise},
        {"flatten", "", 1, {4, {3, 5, 1, 1}}, ACT_NONE, 0, allowed.exact},
        {"concat", "", 3, {4, {3, 5, 4, 7}}, ACT_NONE, 0, allowed.exact},
        {"concat", "", 2, {2, {3, 35, 1, 1}}, ACT_NONE, 0, allowed.exact},
        {"max_pool", "kernel=3 stride=2 pad=1", 1, {4, {2, 5, 9, 8}}, ACT_NONE, 0, allowed.exact},
        {"max_pool", "kernel=2", 1, {4, {2, 3, 8, 6}}, ACT_RELU, 0, allowed.exact},
        {"avg_pool", "kernel=3 stride=2 pad=1", 1, {4, {2, 5, 9, 8}}, ACT_NONE, 0, allowed.product},
        {"avg_pool", "kernel=2,3 stride=1", 1, {4, {2, 3, 7, 8}}, ACT_RELU, 0, allowed.product},
        {"global_pool", "", 1, {4, {2, 37, 5, 6}}, ACT_NONE, 0, allowed.product},
        {"batch_norm", "", 1, {4, {4, 37, 5, 6}}, ACT_NONE, 0, allowed.product},
        {"batch_norm", "", 1, {4, {4, 5, 9, 6}}, ACT_RELU, 3, allowed.product},
        {"batch_norm", "", 1, {2, {40, 70, 1, 1}}, ACT_RELU6, 0, allowed.product},
        {"conv2d", "channels=7 kernel=3 pad=1", 1, {4, {2, 5, 9, 8}}, ACT_NONE, 0, allowed.product},
        {"conv2d",
         "channels=8 kernel=3 stride=2 pad=1 groups=2 bias=false",
         1,
         {4, {2, 6, 9, 8}},
         ACT_RELU,
         0,
         allowed.product},
        {"conv2d",
         "channels=6 kernel=3 groups=6 bias=false",
         1,
         {4, {2, 6, 7, 8}},
         ACT_RELU,
         0,
         allowed.product},
        {"conv2d", "channels=16 kernel=1", 1, {4, {3, 12, 5, 5}}, ACT_NONE, 0, allowed.product},
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
        {"batch_norm", "", 1, {4, {3, 24, 9, 9}}, ACT_RELU, 2, allowed.product},
        {"max_pool", "kernel=3 stride=2 pad=1", 1, {4, {2, 16, 9, 8}}, ACT_NONE, 0, allowed.exact},
        {"softmax_loss", "", 1, {2, {5, 2088, 1, 1}}, ACT_NONE, 4, allowed.elementwise},
        {"dropout", "p=0.3", 1, {3, {2, 5, 64, 1}}, ACT_NONE, 0, allowed.elementwise},
        {"embedding", "vocab=5 width=64", 1, {2, {3, 300, 1, 1}}, ACT_NONE, 2, allowed.product},
        {"attention", "heads=2", 1, {3, {2, 9, 3 * 2 * 8, 1}}, ACT_NONE, 0, allowed.product},
        {"attention", "heads=3", 1, {3, {2, 150, 3 * 3 * 16, 1}}, ACT_NONE, 0, allowed.product},
        {"attention", "heads=2", 1, {3, {2, 70, 3 * 2 * 64, 1}}, ACT_NONE, 1, allowed.product},
        {"attention",
         "heads=1 rotary=true",
         1,
         {3, {2, 65, 3 * 80, 1}},
         ACT_NONE,
         0,
         allowed.product},
        {"attention",
         "heads=2 rotary=true",
         1,
         {3, {1, 40, 3 * 2 * 32, 1}},
         ACT_NONE,
         0,
         allowed.product},
    };
    run_ops(cases, sizeof cases / sizeof cases[0], gpu);
    run_ops(cases, sizeof cases / sizeof cases[0], gpu_bf16);
    run_ops(cases, sizeof cases / sizeof cases[0], gpu_fp16);
}

static void test_missing_op(void)
{
    Op *op = NULL;
    Desc wish[OP_INPUTS];
    OpSpec spec = {.kind = OP_EXCHANGE, .x_count = 1};
    spec.x[0] = spec.y = desc_plain(shape_of(2, 4, 8, 1, 1), DTYPE_F32);
    CHECK_FAILS(op_new(&op, gpu, &spec, wish), ERR_CONFIG, "exchange");
}

/* ---- flat functions ---- */

enum { ARRAYS = 4, ELEMENTS = 3 * FLAT_CHUNK + 77 };

typedef struct Arrays {
    float *host[ARRAYS], *device[ARRAYS]; /* owned */
} Arrays;

static void arrays_new(Arrays *a)
{
    Rig rig = {.backend = gpu};
    for (int i = 0; i < ARRAYS; ++i) {
        a->host[i] = mem_new(ELEMENTS * sizeof(float));
        fill(a->host[i], ELEMENTS, 1);
        if (i == 3)
            for (int k = 0; k < ELEMENTS; ++k)
                a->host[i][k] = fabsf(a->host[i][k]); /* a second moment */
        a->device[i] = rig_alloc(&rig, ELEMENTS * sizeof(float));
        rig_copy(&rig, a->device[i], a->host[i], ELEMENTS * sizeof(float));
    }
}

static void arrays_check(Arrays *a, const char *what, double tolerance)
{
    Rig rig = {.backend = gpu};
    float *got = mem_new(ELEMENTS * sizeof *got);
    for (int i = 0; i < ARRAYS; ++i) {
        char name[32];
        rig_copy(&rig, got, a->device[i], ELEMENTS * sizeof(float));
        snprintf(name, sizeof name, "array %d", i);
        compare(what, name, got, a->host[i], ELEMENTS, tolerance);
        rig_release(&rig, a->device[i], ELEMENTS * sizeof(float));
        mem_free(&a->host[i]);
    }
    mem_free(&got);
}

static void test_flat_sums(void)
{
    const FlatTable *f[2] = {cpu->table->flat, gpu->table->flat};
    Stream *s[2] = {cpu->table->stream(cpu), gpu->table->stream(gpu)};
    Arrays a;
    arrays_new(&a);
    for (int d = 0; d < 2; ++d) {
        float **v = d ? a.device : a.host;
        f[d]->add(s[d], v[0], v[1], v[2], ELEMENTS);
        f[d]->add(s[d], v[1], v[1], v[2], ELEMENTS - 5);
    }
    arrays_check(&a, "add", allowed.exact);
    arrays_new(&a);
    for (int d = 0; d < 2; ++d) { /* ranges that begin anywhere */
        float **v = d ? a.device : a.host;
        f[d]->add(s[d], v[0] + 1, v[1] + 2, v[2] + 3, ELEMENTS - 5);
        f[d]->scale_add(s[d], v[1] + 3, 2, v[2] + 1, 0, 77);
        f[d]->fill(s[d], v[3] + 1, 0.5f, 1001);
    }
    arrays_check(&a, "unaligned add", allowed.exact);
    arrays_new(&a);
    for (int d = 0; d < 2; ++d) {
        float **v = d ? a.device : a.host;
        f[d]->scale_add(s[d], v[0], 0.3f, v[1], 0.7f, ELEMENTS);
        f[d]->scale_add(s[d], v[2], -2.0f, v[3], 0, ELEMENTS);
    }
    arrays_check(&a, "scale_add", allowed.elementwise);
}

static void test_flat_squares(void)
{
    enum { CHUNKS = (ELEMENTS + FLAT_CHUNK - 1) / FLAT_CHUNK };
    Rig rig = {.backend = gpu};
    Arrays a;
    double expected[CHUNKS], got[CHUNKS], *device = rig_alloc(&rig, sizeof got);
    arrays_new(&a);
    cpu->table->flat->squares(cpu->table->stream(cpu), expected, a.host[0], ELEMENTS);
    gpu->table->flat->squares(gpu->table->stream(gpu), device, a.device[0], ELEMENTS);
    rig_copy(&rig, got, device, sizeof got);
    for (int i = 0; i < CHUNKS; ++i)
        CU_ASSERT_DOUBLE_EQUAL(got[i], expected[i], allowed.elementwise * expected[i]);
    rig_release(&rig, device, sizeof got);
    arrays_check(&a, "squares", allowed.exact);
}

static void test_flat_updates(void)
{
    const FlatTable *f[2] = {cpu->table->flat, gpu->table->flat};
    Stream *s[2] = {cpu->table->stream(cpu), gpu->table->stream(gpu)};
    for (int rule = 0; rule < 8; ++rule) {
        SgdArgs sgd = {.lr = 0.1f,
                       .momentum = rule == 6 ? 0 : 0.9f,
                       .weight_decay = 0.01f,
                       .grad_scale = 0.5f,
                       .nesterov = rule & 1,
                       .first = rule & 2};
        AdamArgs adam = {.lr = 0.01f,
                         .beta1 = 0.9f,
                         .beta2 = 0.99f,
                         .eps = 1e-3f,
                         .weight_decay = 0.1f,
                         .grad_scale = 2,
                         .correct1 = 0.19f,
                         .correct2 = 0.0199f,
                         .decoupled = rule == 5};
        Arrays a;
        arrays_new(&a);
        for (int d = 0; d < 2; ++d) {
            float **v = d ? a.device : a.host;
            if (rule < 4)
                f[d]->sgd(s[d], &sgd, v[0], v[1], v[2], ELEMENTS);
            else if (rule < 6)
                f[d]->adam(s[d], &adam, v[0], v[1], v[2], v[3], ELEMENTS);
            else if (rule == 6)
                f[d]->sgd(s[d], &sgd, v[0], v[1], NULL, ELEMENTS);
            else
                f[d]->adam_direction(s[d], &adam, v[0], v[0], v[1], v[2], v[3], ELEMENTS);
        }
        arrays_check(&a,
                     rule < 4 || rule == 6 ? "sgd"
                     : rule < 6            ? "adam"
                                           : "adam_direction",
                     5 * allowed.elementwise);
    }
}

/* A second stream waits for the first one's event. */
static void test_streams(void)
{
    const BackendTable *t = gpu->table;
    Stream *other = t->stream_new(gpu), *compute = t->stream(gpu);
    Event *event = t->event_new(gpu);
    Rig rig = {.backend = gpu};
    float *host = mem_new(LARGEST * sizeof *host), *a = rig_alloc(&rig, LARGEST * sizeof *a);
    CU_ASSERT_PTR_NOT_NULL(t->stream_handle(other));
    fill(host, LARGEST, 1);
    t->copy(compute, a, host, LARGEST * sizeof *a);
    for (int i = 0; i < 100; ++i) t->flat->scale_add(compute, a, 0, a, 1, LARGEST);
    t->flat->add(compute, a, a, a, LARGEST);
    t->event_record(event, compute);
    t->event_wait(event, other);
    t->flat->add(other, a, a, a, LARGEST);
    t->sync(other);
    float *got = mem_new(LARGEST * sizeof *got);
    rig_copy(&rig, got, a, LARGEST * sizeof *a);
    for (int i = 0; i < LARGEST; ++i) host[i] *= 4;
    compare("streams", "a", got, host, LARGEST, allowed.exact);
    t->flat->fill(compute, a, 2.5f, LARGEST);
    rig_copy(&rig, got, a, LARGEST * sizeof *a);
    for (int i = 0; i < LARGEST; ++i) host[i] = 2.5f;
    compare("fill", "a", got, host, LARGEST, allowed.exact);
    rig_release(&rig, a, LARGEST * sizeof *a);
    t->event_free(&event);
    t->stream_free(&other);
    mem_free(&host);
    mem_free(&got);
}

/* ---- no GPU ---- */

static void test_absent(void)
{
    Backend *backend = NULL;
    CHECK_FAILS(backend_open(&backend, &backend_cuda, (BackendOptions){.threads = 1}), ERR_CONFIG,
                "train.device");
    CU_ASSERT_PTR_NULL(backend);
}

int main(void)
{
    static const HarnessTest absent[] = {{"no GPU is a message", test_absent}};
    static const HarnessTest present[] = {{"operations", test_ops},
                                          {"gelu before dense", test_gelu},
                                          {"a missing operation", test_missing_op},
                                          {"attention", test_attention},
                                          {"attention in groups", test_attention_groups},
                                          {"sums", test_flat_sums},
                                          {"squares", test_flat_squares},
                                          {"updates", test_flat_updates},
                                          {"streams", test_streams},
                                          {"models", test_models},
                                          {"graphs", test_graphs},
                                          {"tf32", test_tf32},
                                          {"a step that overflows", test_overflow}};
    const char *why = NULL;
    if (cuda_device_count(&why) == 0) {
        int rc = harness_run("cuda", absent, 1, 0, NULL);
        printf("  skipped: no GPU (%s)\n", why);
        return rc;
    }
    seed = (uint32_t)time(NULL);
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
    int rc = harness_run("cuda", present, sizeof present / sizeof present[0], 0, NULL);
    backend_close(&gpu_tf32);
    backend_close(&gpu_fp16);
    backend_close(&gpu_bf16);
    backend_close(&gpu);
    backend_close(&cpu);
    return rc;
}
