/* Trains every model of the zoo on the GPU and on the CPU, for ten steps, or four on an emulated
 * GPU. The losses agree, two runs give the same bits, and the memory is as planned. */
#ifndef WEFT_TEST_CUDA_MODEL_CASES_H
#define WEFT_TEST_CUDA_MODEL_CASES_H

#include "cases.h"
#include "flat_cases.h"

#include "data/import.h"

enum { STEPS = 10, TOKENS = 20000, KINDS = 50, CLASSES = 10, IMAGES = 125 };

static const World alone = {
    .size = 1, .node_size = 1, .one_node = true, .comm = MPI_COMM_NULL, .node = MPI_COMM_NULL};

/* A model that is trained on both devices. */
typedef struct Model {
    /* text: configuration keys of model and optim */
    const char *name, *text;
    /* precision on the GPU */
    const char *precision;
    /* batch: samples in a step, which has two micro-batches; steps: number of steps, at most
     * STEPS */
    int batch, steps;
    /* side of the images in pixels; they have CLASSES classes. 0: the data are tokens below
     * KINDS */
    int side;
    /* bound on the difference of losses */
    const double *tolerance;
    bool only_full;
} Model;

/* One run of a model. */
typedef struct Run {
    Config *config;
    Trainer *trainer;
    /* norm of the first step's gradient */
    double norm;
} Run;

/* Makes a new folder with the model's data set. The caller removes it with folder_remove. */
static char *folder_new(const Model *m)
{
    char *dir = mem_text("/tmp/weft-check-cuda-XXXXXX");
    CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(dir));
    char *set = mem_format("%s/train.h5", dir), *raw = mem_format("%s/raw", dir);
    if (m->side > 0) {
        CHECK_OK(
            data_import_random(set, shape_of(4, 1, 3, m->side, m->side), CLASSES, IMAGES, seed));
    } else {
        int32_t *token = mem_new(TOKENS * sizeof *token);
        FILE *out = fopen(raw, "wb");
        CU_ASSERT_PTR_NOT_NULL_FATAL(out);
        fill_tokens(token, TOKENS, KINDS);
        for (int i = 0; i < TOKENS; ++i) {
            putc(token[i], out);
            putc(0, out);
        }
        fclose(out);
        CHECK_OK(data_import_tokens(raw, 16, KINDS, set, NULL, 0, true));
        mem_free(&token);
    }
    mem_free(&set);
    mem_free(&raw);
    return dir;
}

static void folder_remove(char **dir)
{
    static const char *const file[] = {"train.h5", "raw", "saved.h5", "again.h5"};
    for (size_t i = 0; i < sizeof file / sizeof *file; ++i) {
        char *path = mem_format("%s/%s", *dir, file[i]);
        unlink(path);
        mem_free(&path);
    }
    CU_ASSERT_EQUAL(rmdir(*dir), 0);
    mem_free(dir);
}

/* Returns the number of CPU threads for large models, for which one thread needs minutes. */
static int cores(void)
{
    long all = sysconf(_SC_NPROCESSORS_ONLN);
    return all > 16 ? 16 : all > 0 ? (int)all : 1;
}

/* Returns the number of steps: fewer on an emulated GPU, which is a thousand times slower than a
 * GPU. */
static int steps_of(const Model *m)
{
    enum { EMULATED_STEPS = 4 };
    return emulate_counts && m->steps > EMULATED_STEPS ? EMULATED_STEPS : m->steps;
}

/* Makes a trainer on a device. On an error, Run.trainer is NULL. */
static Run run_open(const Model *m, const char *dir, const char *device)
{
    Run run = {0};
    bool on_gpu = strcmp(device, "cuda") == 0;
    char *text =
        mem_format("run: {name: %s, dir: %s, seed: 3}\n"
                   "data: {train: %s/train.h5}\n%s"
                   "train: {steps: %d, batch: %d, micro_batch: %d, device: %s, threads: %d, "
                   "log_every: 1, precision: %s, loss_scale: 1024}\n",
                   device, dir, dir, m->text, steps_of(m), m->batch, m->batch / 2, device,
                   full && !on_gpu ? cores() : 1, on_gpu ? m->precision : "fp32");
    Status st = config_parse(&run.config, "test", text, 0, NULL);
    if (st == OK) st = trainer_new(&run.trainer, run.config, &alone);
    if (st != OK) printf("  %s on %s: %s\n", m->name, device, fail_message());
    CU_ASSERT_EQUAL(st, OK);
    mem_free(&text);
    return run;
}

static void run_close(Run *run)
{
    trainer_free(&run->trainer);
    config_free(&run->config);
}

static void run_steps(Run *run, int count, double *loss)
{
    for (int i = 0; i < count && run->trainer; ++i) {
        StepResult result = {0};
        CHECK_OK(next_step(run->trainer, &result));
        loss[i] = result.loss;
        if (i == 0) run->norm = result.grad_norm;
    }
}

/* Checks that the memory used on the GPU is that of the plan. */
static void check_memory(const Model *m, const Trainer *t)
{
    double planned = (double)train_bytes(t, t->plan).all, taken = 0, left = 0;
    if (!t->backend->table->memory) return;
    t->backend->table->memory(t->backend, &taken, &left);
    if (fabs(taken / planned - 1) > 0.01)
        printf("  %s: %.0f bytes taken, %.0f by plan\n", m->name, taken, planned);
    CU_ASSERT(fabs(taken / planned - 1) <= 0.01);
}

/* Checks that layer norms, rms_norms and convolutions add their gradient to the gradient of other
 * readers of their input. */
static void check_adds(const Trainer *t)
{
    const Graph *g = t->graph;
    const ChunkPlan *chunk = &t->plan->chunk[0];
    if (t->backend->table->host_memory) return;
    for (int i = 0; i < g->node_count; ++i) {
        bool adds = false, behind = false;
        const OpSpec *s = &g->node[i].spec;
        const bool norm = s->kind == OP_LAYER_NORM || s->kind == OP_RMS_NORM;
        if ((!norm && s->kind != OP_CONV2D) || !s->need_dx[0]) continue;
        for (int r = 0; r < chunk->run_count; ++r)
            adds = adds || (chunk->run[r].node == i && chunk->run[r].dx_add);
        for (int c = i + 1; c < g->node_count; ++c)
            for (int k = 0; k < g->node[c].spec.x_count; ++k)
                behind = behind || g->node[c].in[k] == g->node[i].in[0];
        CU_ASSERT_EQUAL(adds, behind);
    }
}

/* Trains and returns the norm of the first step's gradient. */
static double train_steps(const Model *m, const char *dir, const char *device, double loss[STEPS])
{
    Run run = run_open(m, dir, device);
    run_steps(&run, steps_of(m), loss);
    if (run.trainer) check_memory(m, run.trainer);
    if (run.trainer) check_adds(run.trainer);
    double norm = run.norm;
    run_close(&run);
    return norm;
}

static double largest_difference(const double *a, const double *b, int count)
{
    double off = 0;
    for (int i = 0; i < count; ++i)
        if (!(fabs(a[i] - b[i]) <= off)) off = fabs(a[i] - b[i]);
    return off;
}

/* Trains on the CPU and twice on the GPU: compares losses, norms and bits. */
static void check_model(const Model *m)
{
    char *dir = folder_new(m);
    double on_cpu[STEPS] = {0}, on_gpu[STEPS] = {0}, again[STEPS] = {0}, began = clock_s();
    double norm_cpu = train_steps(m, dir, "cpu", on_cpu),
           norm = train_steps(m, dir, "cuda", on_gpu);
    int steps = steps_of(m);
    double off = largest_difference(on_gpu, on_cpu, steps), norm_off = fabs(norm / norm_cpu - 1);
    bool same =
        train_steps(m, dir, "cuda", again) == norm && memcmp(on_gpu, again, sizeof again) == 0;
    CU_ASSERT(off <= *m->tolerance);
    CU_ASSERT(norm_off <= *m->tolerance);
    CU_ASSERT(same);
    printf("  %-21s %s %7.1e %9.1e %9.1e  %-7s%5d steps to %.4f, %.1f s\n", m->name, m->precision,
           off, norm_off, *m->tolerance, same ? "same" : "DIFFER", steps, on_cpu[steps - 1],
           clock_s() - began);
    folder_remove(&dir);
}

#define GPT                                                                                        \
    "model: {name: gpt2, layers: 2, width: 32, heads: 2, context: 24, "                            \
    "vocab: 1027, dropout: 0.1}\n"                                                                 \
    "optim: {name: adamw, lr: 0.003}\n"
#define RECOMPUTED                                                                                 \
    "model: {name: gpt2, layers: 3, width: 32, heads: 2, context: 24}\n"                           \
    "optim: {name: adamw, lr: 0.003}\ngrid: {recompute: block}\n"
#define ROTARY                                                                                     \
    "model: {name: gpt2, layers: 1, width: 24, heads: 3, context: 17, positions: rotary}\n"        \
    "optim: {name: adamw, lr: 0.003, clip: 1}\n"
#define LLAMA                                                                                      \
    "model: {name: llama, layers: 2, width: 32, heads: 4, kv_heads: 2, context: 24, window: 9}\n"  \
    "optim: {name: adamw, lr: 0.003}\n"
#define PIXELS                                                                                     \
    "model: {layers: [conv2d: {channels: 48, kernel: 3, pad: same}, group_norm: {groups: 4, "      \
    "name: image}, relu, pixels_to_tokens, attention: {heads: 2, full: true, name: tokens}, "      \
    "tokens_to_pixels: {input: [tokens, image]}, instance_norm, relu6, conv2d: {channels: 8, "     \
    "kernel: 3}, group_norm: {groups: 2}, global_pool, flatten, dense: {width: 10}]}\n"            \
    "optim: {name: adamw, lr: 0.003}\n"
#define MLP                                                                                        \
    "model: {name: mlp, hidden: [64, 1035]}\n"                                                     \
    "optim: {name: sgd, lr: 0.05, momentum: 0.9, weight_decay: 1e-4}\n"
#define LENET "model: {name: lenet}\noptim: {name: sgd, lr: 0.05, momentum: 0}\n"
#define LAYERS                                                                                     \
    "model: {layers: [conv2d: {channels: 8, kernel: 3}, batch_norm, relu6, max_pool: {kernel: "    \
    "2}, "                                                                                         \
    "conv2d: {channels: 8, kernel: 3, groups: 8}, batch_norm, dropout: {p: 0.2}, silu, "           \
    "avg_pool: {kernel: 1}, gelu, global_pool, flatten, dense: {width: 10}]}\n"                    \
    "optim: {name: lamb, lr: 0.01}\n"
/* With random data, batch norm over few samples makes steps of any size chaotic: even a CPU differs
 * from itself with another instruction set, which adds in another order. With small steps the
 * results of both devices stay close; the norm of the first step's gradient is compared, too. */
#define DEEP(name, stem)                                                                           \
    "model: {name: " name stem "}\noptim: {name: sgd, lr: 1e-5, momentum: 0.9}\n"
#define WIDE                                                                                       \
    "model: {name: gpt2, layers: 3, width: 768, heads: 12, context: 256}\n"                        \
    "optim: {name: adamw, lr: 0.0003}\n"

static const Model models[] = {
    {"mlp", MLP, "fp32", 64, STEPS, 8, &allowed.loss, false},
    {"mlp", MLP, "bf16", 64, STEPS, 8, &allowed.loss_rounded, false},
    {"lenet", LENET, "fp32", 8, STEPS, 8, &allowed.loss, false},
    {"lenet", LENET, "bf16", 8, STEPS, 8, &allowed.loss_rounded, false},
    {"list of layers", LAYERS, "fp32", 16, STEPS, 8, &allowed.loss, false},
    {"list of layers", LAYERS, "bf16", 16, STEPS, 8, &allowed.loss_rounded, false},
    {"resnet18", DEEP("resnet18", ", stem: small"), "fp32", 16, 2, 8, &allowed.deep, true},
    {"resnet18", DEEP("resnet18", ", stem: small"), "bf16", 32, STEPS, 32, &allowed.loss_rounded,
     true},
    {"resnet34", DEEP("resnet34", ", stem: small"), "fp32", 32, STEPS, 32, &allowed.deep, true},
    {"resnet50", DEEP("resnet50", ", stem: small"), "fp32", 32, STEPS, 32, &allowed.deep, true},
    {"resnet50", DEEP("resnet50", ", stem: small"), "bf16", 32, STEPS, 32, &allowed.loss_rounded,
     true},
    {"resnet101", DEEP("resnet101", ", stem: small"), "fp32", 32, STEPS, 32, &allowed.deep, true},
    {"mobilenet_v2", DEEP("mobilenet_v2", ""), "fp32", 8, 2, 64, &allowed.deep, true},
    {"mobilenet_v2", DEEP("mobilenet_v2", ""), "bf16", 32, STEPS, 64, &allowed.loss_rounded, true},
    {"gpt2", GPT, "fp32", 8, STEPS, 0, &allowed.loss, false},
    {"gpt2", GPT, "bf16", 8, STEPS, 0, &allowed.loss_rounded, false},
    {"gpt2, rotary", ROTARY, "fp32", 6, STEPS, 0, &allowed.loss, false},
    {"gpt2", GPT, "fp16", 8, STEPS, 0, &allowed.loss_rounded, false},
    {"gpt2, recomputed", RECOMPUTED, "fp32", 6, STEPS, 0, &allowed.loss, false},
    {"lenet", LENET, "fp16", 8, STEPS, 8, &allowed.loss_rounded, false},
    {"lenet", LENET, "tf32", 8, STEPS, 8, &allowed.loss_rounded, false},
    {"gpt2, rotary", ROTARY, "bf16", 6, STEPS, 0, &allowed.loss_rounded, false},
    {"llama", LLAMA, "fp32", 6, STEPS, 0, &allowed.loss, false},
    {"llama", LLAMA, "bf16", 6, STEPS, 0, &allowed.loss_rounded, false},
    {"norms of groups", PIXELS, "fp32", 8, STEPS, 8, &allowed.loss, false},
    {"norms of groups", PIXELS, "fp16", 8, STEPS, 8, &allowed.loss_rounded, false},
    {"gpt2, 12 heads of 64", WIDE, "bf16", 8, STEPS, 0, &allowed.loss_rounded, true},
};

static void test_models(void)
{
    printf("models, cuda against cpu\n  %-26s %7s %9s %9s  %s\n", "", "loss", "norm", "allowed",
           "bits of two runs");
    for (size_t i = 0; i < sizeof models / sizeof *models; ++i)
        if (full || !models[i].only_full) check_model(&models[i]);
}

#endif
