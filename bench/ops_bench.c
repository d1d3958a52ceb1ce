/* Times the CPU backend's dense and conv2d at the shapes of lenet, mlp, resnet18, resnet50,
 * mobilenet_v2, gpt and gpt2: forward, backward by inputs, backward by weights, in ms and GFLOP/s,
 * through the same Op interface as training. Prints the fastest of many runs, with the layouts and
 * algorithms that the backend chooses. A single thread is timed by its own CPU clock, which other
 * work on the machine does not advance.
 *
 *   ops_bench [MODEL] [THREADS] [BATCH]
 *       defaults: all models, a thread for each core, the batch of each model */
#include "tensor.h"
#include "tensor/op_list.h"
#include "tensor/cpu/dnnl/linear.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { ROUNDS_MIN = 3 };
/* shortest total time of the rounds of one layer, in seconds */
static const double LAYER_S_MIN = 0.1;

typedef struct Layer {
    const char *model, *name;
    /* number of times that the operation occurs in the model */
    int times;
    /* samples; input channels; side of the image; output channels; then attributes of conv2d */
    int batch, c, h, o, kernel, stride, pad, groups;
    /* dense: a dense layer, else conv2d. raw: x is the data, so its gradient is not needed */
    bool dense, raw;
} Layer;

static const Layer layers[] = {
    {"mlp", "fc1", 1, 64, 784, 1, 512, 1, 1, 0, 1, true, true},
    {"mlp", "fc2", 1, 64, 512, 1, 512, 1, 1, 0, 1, true, false},
    {"mlp", "fc3", 1, 64, 512, 1, 10, 1, 1, 0, 1, true, false},
    {"lenet", "conv1", 1, 64, 1, 28, 32, 3, 1, 1, 1, false, true},
    {"lenet", "conv2", 1, 64, 32, 14, 64, 3, 1, 1, 1, false, false},
    {"lenet", "fc1", 1, 64, 3136, 1, 128, 1, 1, 0, 1, true, false},
    {"lenet", "fc2", 1, 64, 128, 1, 10, 1, 1, 0, 1, true, false},
    {"resnet18", "conv1", 1, 32, 1, 28, 64, 3, 1, 1, 1, false, true},
    {"resnet18", "layer1 3x3", 4, 32, 64, 28, 64, 3, 1, 1, 1, false, false},
    {"resnet18", "layer2 3x3/2", 1, 32, 64, 28, 128, 3, 2, 1, 1, false, false},
    {"resnet18", "layer2 1x1/2", 1, 32, 64, 28, 128, 1, 2, 0, 1, false, false},
    {"resnet18", "layer2 3x3", 3, 32, 128, 14, 128, 3, 1, 1, 1, false, false},
    {"resnet18", "layer3 3x3/2", 1, 32, 128, 14, 256, 3, 2, 1, 1, false, false},
    {"resnet18", "layer3 1x1/2", 1, 32, 128, 14, 256, 1, 2, 0, 1, false, false},
    {"resnet18", "layer3 3x3", 3, 32, 256, 7, 256, 3, 1, 1, 1, false, false},
    {"resnet18", "layer4 3x3/2", 1, 32, 256, 7, 512, 3, 2, 1, 1, false, false},
    {"resnet18", "layer4 1x1/2", 1, 32, 256, 7, 512, 1, 2, 0, 1, false, false},
    {"resnet18", "layer4 3x3", 3, 32, 512, 4, 512, 3, 1, 1, 1, false, false},
    {"resnet50", "conv1", 1, 8, 3, 224, 64, 7, 2, 3, 1, false, true},
    {"resnet50", "layer1 64>64", 1, 8, 64, 56, 64, 1, 1, 0, 1, false, false},
    {"resnet50", "layer1 3x3", 3, 8, 64, 56, 64, 3, 1, 1, 1, false, false},
    {"resnet50", "layer1 64>256", 4, 8, 64, 56, 256, 1, 1, 0, 1, false, false},
    {"resnet50", "layer1 256>64", 2, 8, 256, 56, 64, 1, 1, 0, 1, false, false},
    {"resnet50", "layer2 256>128", 1, 8, 256, 56, 128, 1, 1, 0, 1, false, false},
    {"resnet50", "layer2 3x3/2", 1, 8, 128, 56, 128, 3, 2, 1, 1, false, false},
    {"resnet50", "layer2 3x3", 3, 8, 128, 28, 128, 3, 1, 1, 1, false, false},
    {"resnet50", "layer2 128>512", 4, 8, 128, 28, 512, 1, 1, 0, 1, false, false},
    {"resnet50", "layer2 512>128", 3, 8, 512, 28, 128, 1, 1, 0, 1, false, false},
    {"resnet50", "layer2 1x1/2", 1, 8, 256, 56, 512, 1, 2, 0, 1, false, false},
    {"resnet50", "layer3 512>256", 1, 8, 512, 28, 256, 1, 1, 0, 1, false, false},
    {"resnet50", "layer3 3x3/2", 1, 8, 256, 28, 256, 3, 2, 1, 1, false, false},
    {"resnet50", "layer3 3x3", 5, 8, 256, 14, 256, 3, 1, 1, 1, false, false},
    {"resnet50", "layer3 256>1024", 6, 8, 256, 14, 1024, 1, 1, 0, 1, false, false},
    {"resnet50", "layer3 1024>256", 5, 8, 1024, 14, 256, 1, 1, 0, 1, false, false},
    {"resnet50", "layer3 1x1/2", 1, 8, 512, 28, 1024, 1, 2, 0, 1, false, false},
    {"resnet50", "layer4 1024>512", 1, 8, 1024, 14, 512, 1, 1, 0, 1, false, false},
    {"resnet50", "layer4 3x3/2", 1, 8, 512, 14, 512, 3, 2, 1, 1, false, false},
    {"resnet50", "layer4 3x3", 2, 8, 512, 7, 512, 3, 1, 1, 1, false, false},
    {"resnet50", "layer4 512>2048", 3, 8, 512, 7, 2048, 1, 1, 0, 1, false, false},
    {"resnet50", "layer4 2048>512", 2, 8, 2048, 7, 512, 1, 1, 0, 1, false, false},
    {"resnet50", "layer4 1x1/2", 1, 8, 1024, 14, 2048, 1, 2, 0, 1, false, false},
    {"resnet50", "fc", 1, 8, 2048, 1, 1000, 1, 1, 0, 1, true, false},
    {"mobilenet_v2", "conv1", 1, 16, 3, 224, 32, 3, 2, 1, 1, false, true},
    {"mobilenet_v2", "32 depthwise", 1, 16, 32, 112, 32, 3, 1, 1, 32, false, false},
    {"mobilenet_v2", "32>16", 1, 16, 32, 112, 16, 1, 1, 0, 1, false, false},
    {"mobilenet_v2", "16>96", 1, 16, 16, 112, 96, 1, 1, 0, 1, false, false},
    {"mobilenet_v2", "96 depthwise/2", 1, 16, 96, 112, 96, 3, 2, 1, 96, false, false},
    {"mobilenet_v2", "96>24", 1, 16, 96, 56, 24, 1, 1, 0, 1, false, false},
    {"mobilenet_v2", "24>144", 2, 16, 24, 56, 144, 1, 1, 0, 1, false, false},
    {"mobilenet_v2", "144 depthwise", 1, 16, 144, 56, 144, 3, 1, 1, 144, false, false},
    {"mobilenet_v2", "144>24", 1, 16, 144, 56, 24, 1, 1, 0, 1, false, false},
    {"mobilenet_v2", "144 depthwise/2", 1, 16, 144, 56, 144, 3, 2, 1, 144, false, false},
    {"mobilenet_v2", "144>32", 1, 16, 144, 28, 32, 1, 1, 0, 1, false, false},
    {"mobilenet_v2", "32>192", 3, 16, 32, 28, 192, 1, 1, 0, 1, false, false},
    {"mobilenet_v2", "192 depthwise", 2, 16, 192, 28, 192, 3, 1, 1, 192, false, false},
    {"mobilenet_v2", "192>32", 2, 16, 192, 28, 32, 1, 1, 0, 1, false, false},
    {"mobilenet_v2", "192 depthwise/2", 1, 16, 192, 28, 192, 3, 2, 1, 192, false, false},
    {"mobilenet_v2", "192>64", 1, 16, 192, 14, 64, 1, 1, 0, 1, false, false},
    {"mobilenet_v2", "64>384", 4, 16, 64, 14, 384, 1, 1, 0, 1, false, false},
    {"mobilenet_v2", "384 depthwise", 4, 16, 384, 14, 384, 3, 1, 1, 384, false, false},
    {"mobilenet_v2", "384>64", 3, 16, 384, 14, 64, 1, 1, 0, 1, false, false},
    {"mobilenet_v2", "384>96", 1, 16, 384, 14, 96, 1, 1, 0, 1, false, false},
    {"mobilenet_v2", "96>576", 3, 16, 96, 14, 576, 1, 1, 0, 1, false, false},
    {"mobilenet_v2", "576 depthwise", 2, 16, 576, 14, 576, 3, 1, 1, 576, false, false},
    {"mobilenet_v2", "576>96", 2, 16, 576, 14, 96, 1, 1, 0, 1, false, false},
    {"mobilenet_v2", "576 depthwise/2", 1, 16, 576, 14, 576, 3, 2, 1, 576, false, false},
    {"mobilenet_v2", "576>160", 1, 16, 576, 7, 160, 1, 1, 0, 1, false, false},
    {"mobilenet_v2", "160>960", 3, 16, 160, 7, 960, 1, 1, 0, 1, false, false},
    {"mobilenet_v2", "960 depthwise", 3, 16, 960, 7, 960, 3, 1, 1, 960, false, false},
    {"mobilenet_v2", "960>160", 2, 16, 960, 7, 160, 1, 1, 0, 1, false, false},
    {"mobilenet_v2", "960>320", 1, 16, 960, 7, 320, 1, 1, 0, 1, false, false},
    {"mobilenet_v2", "320>1280", 1, 16, 320, 7, 1280, 1, 1, 0, 1, false, false},
    {"mobilenet_v2", "fc", 1, 16, 1280, 1, 1000, 1, 1, 0, 1, true, false},
    {"gpt", "qkv 384>1152", 6, 2048, 384, 1, 1152, 1, 1, 0, 1, true, false},
    {"gpt", "out 384>384", 6, 2048, 384, 1, 384, 1, 1, 0, 1, true, false},
    {"gpt", "up 384>1536", 6, 2048, 384, 1, 1536, 1, 1, 0, 1, true, false},
    {"gpt", "down 1536>384", 6, 2048, 1536, 1, 384, 1, 1, 0, 1, true, false},
    {"gpt", "head 384>256", 1, 2048, 384, 1, 256, 1, 1, 0, 1, true, false},
    {"gpt2", "qkv 768>2304", 12, 512, 768, 1, 2304, 1, 1, 0, 1, true, false},
    {"gpt2", "out 768>768", 12, 512, 768, 1, 768, 1, 1, 0, 1, true, false},
    {"gpt2", "up 768>3072", 12, 512, 768, 1, 3072, 1, 1, 0, 1, true, false},
    {"gpt2", "down 3072>768", 12, 512, 3072, 1, 768, 1, 1, 0, 1, true, false},
    {"gpt2", "head 768>50257", 1, 512, 768, 1, 50257, 1, 1, 0, 1, true, false},
};

static OpSpec layer_spec(const Layer *l, int batch)
{
    OpSpec s = {.kind = l->dense ? OP_DENSE : OP_CONV2D, .x_count = 1, .w_count = 1};
    s.groups = l->groups;
    s.kernel[0] = s.kernel[1] = l->kernel;
    s.stride[0] = s.stride[1] = l->stride;
    s.pad[0] = s.pad[1] = l->pad;
    s.need_dx[0] = !l->raw;
    if (l->dense) {
        s.w[0] = shape_of(2, l->o, l->c, 1, 1);
        s.x[0] = desc_plain(shape_of(2, batch, l->c, 1, 1), DTYPE_F32);
        s.y = desc_plain(shape_of(2, batch, l->o, 1, 1), DTYPE_F32);
        return s;
    }
    int p = (l->h + 2 * l->pad - l->kernel) / l->stride + 1;
    s.w[0] = shape_of(4, l->o, l->c / l->groups, l->kernel, l->kernel);
    s.x[0] = desc_plain(shape_of(4, batch, l->c, l->h, l->h), DTYPE_F32);
    s.y = desc_plain(shape_of(4, batch, l->o, p, p), DTYPE_F32);
    return s;
}

/* Makes the operation as the planner does. If it prefers another layout of x, makes it again with
 * that layout. */
static Op *layer_op(Backend *backend, const Layer *l, int batch)
{
    Desc preferred[SPEC_INPUTS];
    Op *op = NULL;
    OpSpec spec = layer_spec(l, batch);
    if (op_new(&op, backend, &spec, preferred) != OK) die("%s: %s", l->name, fail_message());
    if (desc_equal(preferred[0], spec.x[0])) return op;
    op_free(&op);
    spec.x[0] = preferred[0];
    if (op_new(&op, backend, &spec, preferred) != OK) die("%s: %s", l->name, fail_message());
    return op;
}

/* Returns new memory with random numbers from -0.5 to 0.5. */
static float *random_numbers(size_t bytes)
{
    RngKey key = rng_key(1, RNG_TEST, 0, 0);
    float *p = mem_pages_new(bytes + 1);
    for (size_t i = 0; i < bytes / sizeof *p; ++i) p[i] = rng_uniform(key, i) - 0.5f;
    return p;
}

static double now_s(int threads)
{
    struct timespec t;
    if (threads > 1) return clock_s();
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Measures the shortest seconds of forward, backward by inputs and backward by weights. The three
 * are run in turns, so that other load on the machine affects all three. */
static void layer_time(Op *op, int threads, double best[3])
{
    void (*const direction[3])(Op *, const OpRun *) = {op_forward, op_backward_data,
                                                       op_backward_weight};
    size_t x = desc_bytes(op->spec.x[0]), y = desc_bytes(op->spec.y);
    size_t w = (size_t)op->w_elements[0] * sizeof(float);
    float *memory[] = {random_numbers(x), random_numbers(y), random_numbers(y),
                       random_numbers(x), random_numbers(w), random_numbers(w)};
    OpRun run = {.x = {memory[0]},
                 .y = memory[1],
                 .dy = memory[2],
                 .dx = {memory[3]},
                 .w = {memory[4]},
                 .dw = {memory[5]},
                 .training = true};
    run.cache = random_numbers(op->cache_bytes);
    run.workspace = random_numbers(op->workspace_bytes);
    run.sample_count = (int)op->spec.x[0].shape.dim[0];
    op_refresh(op, &run);
    double start = clock_s();
    for (int round = 0; round < ROUNDS_MIN || clock_s() - start < LAYER_S_MIN; ++round)
        for (int d = 0; d < 3; ++d) {
            double t = now_s(threads);
            direction[d](op, &run);
            t = now_s(threads) - t;
            if (round == 0 || t < best[d]) best[d] = t;
        }
    const size_t bytes[] = {x, y, y, x, w, w};
    for (int i = 0; i < 6; ++i) mem_pages_free(memory[i], bytes[i] + 1);
    mem_pages_free(run.cache, op->cache_bytes + 1);
    mem_pages_free(run.workspace, op->workspace_bytes + 1);
}

static void model_bench(Backend *backend, int threads, const char *model, int batch)
{
    double total[3] = {0}, flops = 0;
    char kernels[256];
    printf("%-18s %30s %20s %20s   (ms, GFLOP/s)\n", model, "forward", "backward data",
           "backward weight");
    for (size_t i = 0; i < sizeof layers / sizeof layers[0]; ++i) {
        const Layer *l = &layers[i];
        double best[3] = {0};
        if (strcmp(l->model, model) != 0) continue;
        Op *op = layer_op(backend, l, batch ? batch : l->batch);
        layer_time(op, threads, best);
        printf("  %-18s x%d", l->name, l->times);
        for (int d = 0; d < 3; ++d) {
            if (d == 1 && l->raw)
                printf("%20s", "-");
            else
                printf("%12.3f %7.0f", best[d] * 1e3, op->flops_forward / best[d] * 1e-9);
            total[d] += d == 1 && l->raw ? 0 : best[d] * l->times;
        }
        flops += (op->flops_forward + op->flops_backward) * l->times;
        printf("   %s\n", linear_text(op, kernels));
        op_free(&op);
    }
    double sum = total[0] + total[1] + total[2];
    printf("  %-18s   %12.3f %19.3f %19.3f   all: %.3f ms, %.0f GFLOP/s\n\n", "total",
           total[0] * 1e3, total[1] * 1e3, total[2] * 1e3, sum * 1e3, flops / sum * 1e-9);
}

int main(int argc, char **argv)
{
    static const char *const models[] = {"mlp",          "lenet", "resnet18", "resnet50",
                                         "mobilenet_v2", "gpt",   "gpt2"};
    const char *only = argc > 1 && strcmp(argv[1], "all") != 0 ? argv[1] : NULL;
    int threads = argc > 2 ? atoi(argv[2]) : threads_share(1), batch = argc > 3 ? atoi(argv[3]) : 0;
    Backend *backend = NULL;
    bool found = false;
    if (backend_open(&backend, &backend_cpu, (BackendOptions){.threads = threads}) != OK) {
        fprintf(stderr, "ops_bench: %s\n", fail_message());
        return ERR_CONFIG;
    }
    backend_versions(stdout, false);
    printf("%d thread%s\n\n", threads, threads == 1 ? "" : "s");
    for (size_t i = 0; i < sizeof models / sizeof models[0]; ++i)
        if (!only || strcmp(only, models[i]) == 0) {
            model_bench(backend, threads, models[i], batch);
            found = true;
        }
    backend_close(&backend);
    if (found) return 0;
    fprintf(stderr,
            "ops_bench: no model %s; models: mlp lenet resnet18 resnet50 mobilenet_v2 gpt gpt2\n",
            only);
    return ERR_USAGE;
}
