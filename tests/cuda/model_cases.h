/* Ten steps of training every kind of model on the GPU against the CPU: losses, equal bits of two runs, memory as planned. */
#ifndef WEFT_TEST_CUDA_MODEL_CASES_H
#define WEFT_TEST_CUDA_MODEL_CASES_H

#include "cases.h"

enum { STEPS = 10 };

static const World alone = {
    .size = 1, .node_size = 1, .one_node = true, .comm = MPI_COMM_NULL, .node = MPI_COMM_NULL};

/* A model that is trained for ten steps on both. */
typedef struct Model {
    const char *name, *text; /* its keys, and those of optim */
    int batch, steps;        /* in two micro-batches; at most STEPS */
    bool tokens;             /* of 50 kinds; else images of 8x8 in 10 classes */
    const char *precision;   /* on the GPU */
    double tolerance;        /* of the losses */
} Model;

/* What the GPU's memory holds is what the plan says. */
static void check_memory(const Model *m, const Trainer *t)
{
    double planned = (double)train_bytes(t, t->plan).all, taken = 0, left = 0;
    t->backend->table->memory(t->backend, &taken, &left);
    if (fabs(taken / planned - 1) > 0.01)
        printf("  %s: %.0f bytes taken, %.0f by plan\n", m->name, taken, planned);
    CU_ASSERT(fabs(taken / planned - 1) <= 0.01);
}

static Status train_ten(const Model *m, const char *dir, const char *device, double loss[STEPS])
{
    Config *config = NULL;
    Trainer *trainer = NULL;
    bool gpu_run = strcmp(device, "cuda") == 0;
    char *text =
        mem_format("run: {name: %s, dir: %s, seed: 3}\n"
                   "data: {train: %s/train.h5}\n%s"
                   "train: {steps: %d, batch: %d, micro_batch: %d, device: %s, threads: 1, "
                   "log_every: 1, precision: %s, loss_scale: 1024}\n",
                   device, dir, dir, m->text, m->steps, m->batch, m->batch / 2, device,
                   gpu_run ? m->precision : "fp32");
    Status st = config_parse(&config, "test", text, 0, NULL);
    mem_free(&text);
    if (st == OK) st = trainer_new(&trainer, config, &alone);
    for (int i = 0; i < m->steps && st == OK; ++i) {
        StepResult result;
        st = train_step(trainer, &result);
        loss[i] = result.loss;
    }
    if (st != OK) printf("  %s on %s: %s\n", m->name, device, fail_message());
    if (st == OK && gpu_run) check_memory(m, trainer);
    trainer_free(&trainer);
    config_free(&config);
    return st;
}

static Status write_set(const Model *m, const char *dir)
{
    enum { TOKENS = 20000, KINDS = 50 };
    char *set = mem_format("%s/train.h5", dir), *raw = mem_format("%s/raw", dir);
    Status st = OK;
    if (m->tokens) {
        int32_t *token = mem_new(TOKENS * sizeof *token);
        FILE *out = fopen(raw, "wb");
        CU_ASSERT_PTR_NOT_NULL_FATAL(out);
        fill_tokens(token, TOKENS, KINDS);
        for (int i = 0; i < TOKENS; ++i) {
            putc(token[i], out);
            putc(0, out);
        }
        fclose(out);
        st = data_import_tokens(raw, 16, KINDS, set, NULL, 0, true);
        unlink(raw);
        mem_free(&token);
    } else {
        st = data_import_random(set, shape_of(4, 1, 1, 8, 8), 10, 500, seed);
    }
    mem_free(&set);
    mem_free(&raw);
    return st;
}

/* As the CPU, and twice with the same bits. */
static void check_model(const Model *m)
{
    char dir[] = "/tmp/weft-check-cuda-XXXXXX", path[64];
    double on_cpu[STEPS] = {0}, on_gpu[STEPS] = {0}, again[STEPS] = {0}, off = 0;
    CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(dir));
    CHECK_OK(write_set(m, dir));
    CHECK_OK(train_ten(m, dir, "cpu", on_cpu));
    CHECK_OK(train_ten(m, dir, "cuda", on_gpu));
    CHECK_OK(train_ten(m, dir, "cuda", again));
    for (int i = 0; i < m->steps; ++i) {
        off = fmax(off, fabs(on_gpu[i] - on_cpu[i]));
        CU_ASSERT_EQUAL(on_gpu[i], again[i]); /* to the bit */
    }
    CU_ASSERT(off <= m->tolerance);
    printf("  %s, loss of step %d: cpu %.6f, cuda %.6f; at most %.1e apart\n", m->name, m->steps,
           on_cpu[m->steps - 1], on_gpu[m->steps - 1], off);
    snprintf(path, sizeof path, "%s/train.h5", dir);
    unlink(path);
    rmdir(dir);
}

static void test_models(void)
{
    static const char gpt[] =
        "model: {name: gpt2, layers: 2, width: 32, heads: 2, context: 24, vocab: 1027, "
        "dropout: 0.1}\noptim: {name: adamw, lr: 0.003}\n";
    static const char recomputed[] =
        "model: {name: gpt2, layers: 3, width: 32, heads: 2, context: 24}\n"
        "optim: {name: adamw, lr: 0.003}\ngrid: {recompute: block}\n";
    static const char rotary[] = "model: {name: gpt2, layers: 1, width: 24, heads: 3, context: 17, "
                                 "positions: rotary}\noptim: {name: adamw, lr: 0.003}\n";
    static const char mlp[] = "model: {name: mlp, hidden: [64, 1035]}\n"
                              "optim: {name: sgd, lr: 0.05, momentum: 0.9, weight_decay: 1e-4}\n";
    static const char lenet[] =
        "model: {name: lenet}\noptim: {name: sgd, lr: 0.05, momentum: 0.9}\n";
    static const char resnet[] = "model: {name: resnet18, stem: small}\n"
                                 "optim: {name: sgd, lr: 0.0005, momentum: 0.5}\n";
    static const char layers[] = "model: {layers: [conv2d: {channels: 8, kernel: 3}, batch_norm, "
                                 "relu6, max_pool: {kernel: 2}, "
                                 "conv2d: {channels: 8, kernel: 3, groups: 8}, batch_norm, "
                                 "dropout: {p: 0.2}, gelu, global_pool, "
                                 "flatten, dense: {width: 10}]}\noptim: {name: lamb, lr: 0.01}\n";
    check_model(&(Model){"mlp", mlp, 64, STEPS, false, "fp32", allowed.loss});
    check_model(&(Model){"mlp in bf16", mlp, 64, STEPS, false, "bf16", allowed.loss_rounded});
    check_model(&(Model){"lenet", lenet, 8, STEPS, false, "fp32", allowed.loss});
    check_model(&(Model){"lenet in bf16", lenet, 8, STEPS, false, "bf16", allowed.loss_rounded});
    check_model(&(Model){"layers", layers, 16, STEPS, false, "fp32", allowed.loss});
    check_model(&(Model){"resnet18", resnet, 16, 3, false, "fp32", allowed.deep});
    check_model(&(Model){"gpt2", gpt, 8, STEPS, true, "fp32", allowed.loss});
    check_model(&(Model){"gpt2, recomputed", recomputed, 6, STEPS, true, "fp32", allowed.loss});
    check_model(
        &(Model){"gpt2 with rotary positions", rotary, 6, STEPS, true, "fp32", allowed.loss});
    check_model(&(Model){"lenet in fp16", lenet, 8, STEPS, false, "fp16", allowed.loss_rounded});
    check_model(&(Model){"lenet in tf32", lenet, 8, STEPS, false, "tf32", allowed.loss_rounded});
    check_model(&(Model){"gpt2 in fp16", gpt, 8, STEPS, true, "fp16", allowed.loss_rounded});
    check_model(&(Model){"gpt2 in bf16", gpt, 8, STEPS, true, "bf16", allowed.loss_rounded});
}

#endif
