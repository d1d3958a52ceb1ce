/* What the CPU's own kernels reach, beside memcpy: the bytes that an operation must move (each
 * tensor once per pass it cannot avoid) over its best time. Shapes are those of resnet18 (28x28
 * images), resnet50 (224x224) and GPT-2. Build: make, then gcc -std=c17 -O2 -fopenmp -D_GNU_SOURCE
 * -Iinclude bench/kernels_bench.c build/lib/tensor.a build/lib/config.a build/lib/base.a, and the
 * libraries of DEPS_LIBS in build/probe.mk. usage: kernels_bench [threads] [block] */
#include "tensor.h"
#include "tensor/op_list.h"

#include <stdlib.h>
#include <string.h>

enum { REPEATS = 30 };

typedef struct Bench {
    Backend *backend;
    Op *op;
    OpRun run;
    const FlatTable *flat;
    int64_t n;
    float *v[4];
} Bench;

static double best_of(void (*work)(Bench *b), Bench *b)
{
    double best = 1e9;
    work(b);
    for (int i = 0; i < REPEATS; ++i) {
        double start = clock_s();
        work(b);
        double took = clock_s() - start;
        best = took < best ? took : best;
    }
    return best;
}

static void report(const char *name, double bytes, double seconds, double floor)
{
    double rate = bytes / seconds * 1e-9;
    printf("%-34s %8.3f ms %7.1f GB/s  %4.0f %% of memcpy\n", name, seconds * 1e3, rate,
           100.0 * rate / floor);
}

static float *floats(Bench *b, size_t bytes)
{
    float *p = b->backend->table->alloc(b->backend, bytes);
    for (size_t i = 0; i < bytes / sizeof *p; ++i)
        p[i] = (float)(i * 2654435761u % 1000) * 1e-3f - 0.5f;
    return p;
}

static void copy_work(Bench *b)
{
    memcpy(b->v[0], b->v[1], (size_t)b->n * sizeof(float));
}

/* GB/s of memcpy, read and written bytes, on n floats of b's ranges. */
static double copy_rate(Bench *b)
{
    return 2.0 * (double)b->n * sizeof(float) / best_of(copy_work, b) * 1e-9;
}

static void forward(Bench *b)
{
    op_forward(b->op, &b->run);
}
static void backward(Bench *b)
{
    op_backward_begin(b->op, &b->run);
    op_backward_weight(b->op, &b->run);
    op_backward_data(b->op, &b->run);
}

/* Opens one operation with x's in their layout; every buffer belongs to it until op_done. */
static void op_make(Bench *b, const OpSpec *spec)
{
    Desc preferred[SPEC_INPUTS];
    if (op_new(&b->op, b->backend, spec, preferred) != OK) die("%s", fail_message());
    b->run = (OpRun){.rows = (int)spec->x[0].shape.dim[0], .training = true, .loss_scale = 1.0f};
    for (int i = 0; i < spec->x_count; ++i) {
        b->run.x[i] = floats(b, desc_bytes(spec->x[i]));
        b->run.dx[i] = floats(b, desc_bytes(spec->x[i]));
    }
    b->run.y = floats(b, desc_bytes(b->op->spec.y));
    b->run.dy = floats(b, desc_bytes(b->op->spec.y));
    for (int i = 0; i < spec->w_count; ++i) {
        b->run.w[i] = floats(b, (size_t)b->op->w_elements[i] * sizeof(float));
        b->run.dw[i] = floats(b, (size_t)b->op->w_elements[i] * sizeof(float));
    }
    b->n = desc_elements(spec->x[0]);
    b->v[0] = b->run.dx[0];
    b->v[1] = (float *)b->run.x[0];
    b->run.saved = floats(b, b->op->saved_bytes + 64);
    b->run.workspace = floats(b, b->op->workspace_bytes + 64);
}

static void op_done(Bench *b)
{
    const BackendTable *t = b->backend->table;
    for (int i = 0; i < b->op->spec.x_count; ++i) {
        t->release(b->backend, (void *)b->run.x[i], desc_bytes(b->op->spec.x[i]));
        t->release(b->backend, b->run.dx[i], desc_bytes(b->op->spec.x[i]));
    }
    t->release(b->backend, b->run.y, desc_bytes(b->op->spec.y));
    t->release(b->backend, b->run.dy, desc_bytes(b->op->spec.y));
    for (int i = 0; i < b->op->spec.w_count; ++i) {
        t->release(b->backend, (void *)b->run.w[i], (size_t)b->op->w_elements[i] * sizeof(float));
        t->release(b->backend, b->run.dw[i], (size_t)b->op->w_elements[i] * sizeof(float));
    }
    t->release(b->backend, b->run.saved, b->op->saved_bytes + 64);
    t->release(b->backend, b->run.workspace, b->op->workspace_bytes + 64);
    op_free(&b->op);
}

/* moves: how often, in units of x's bytes, forward and backward must touch memory. */
static void op_bench(Bench *b, const char *name, const OpSpec *spec, double moves[2])
{
    char line[128], shape[64];
    op_make(b, spec);
    double bytes = (double)desc_bytes(spec->x[0]), floor = copy_rate(b);
    shape_text(spec->x[0].shape, shape);
    snprintf(line, sizeof line, "%s %s", name, shape);
    report(line, moves[0] * bytes, best_of(forward, b), floor);
    if (moves[1] > 0.0) report("    backward", moves[1] * bytes, best_of(backward, b), floor);
    op_done(b);
}

static Desc image(int64_t n, int64_t c, int64_t h, int block)
{
    Desc d = desc_plain(shape_of(4, n, c, h, h), DTYPE_F32);
    d.block = block ? block : (int)c;
    return d;
}

static void norm_bench(Bench *b, Desc x, Act act, bool residual)
{
    OpSpec s = {.kind = OP_BATCH_NORM,
                .act = act,
                .residual = residual,
                .eps = 1e-5f,
                .x_count = 1 + residual,
                .w_count = 4,
                .x = {x, x},
                .y = x};
    for (int i = 0; i < 4; ++i) s.w[i] = shape_of(1, x.shape.dim[1], 1, 1, 1);
    op_bench(b,
             residual ? "bn+residual+relu"
             : act    ? "bn+relu"
                      : "bn",
             &s, (double[]){3.0 + residual, residual ? 6.0 : 5.0});
}

static void pool_bench(Bench *b, Desc x, int kernel, int stride, int pad)
{
    OpSpec s = {.kind = OP_POOL,
                .kernel = {kernel, kernel},
                .stride = {stride, stride},
                .pad = {pad, pad},
                .x_count = 1,
                .x = {x}};
    int64_t out = (x.shape.dim[2] + 2 * pad - kernel) / stride + 1;
    s.y = image(x.shape.dim[0], x.shape.dim[1], out, x.block);
    double share = 1.0 + 1.25 * (double)desc_elements(s.y) / (double)desc_elements(x);
    op_bench(b, kernel == 2 ? "max_pool 2x2/2" : "max_pool 3x3/2", &s, (double[]){share, share});
}

static void simple_bench(Bench *b, const char *name, OpKind kind, Act act, Desc x, double back)
{
    static const int64_t ids[64];
    OpSpec s = {.kind = kind,
                .act = act,
                .drop = 0.5f,
                .x_count = 1 + (kind == OP_ADD),
                .x = {x, x},
                .y = x};
    op_make(b, &s);
    b->run.sample = ids;
    double bytes = (double)desc_bytes(x), floor = copy_rate(b);
    report(name, (2.0 + (kind == OP_ADD)) * bytes, best_of(forward, b), floor);
    if (back > 0.0) report("    backward", back * bytes, best_of(backward, b), floor);
    op_done(b);
}

static Desc sequence(int64_t n, int64_t t, int64_t c)
{
    return desc_plain(shape_of(3, n, t, c, 1), DTYPE_F32);
}

/* GFLOP/s of the causal half alone. */
static void attention_bench(Bench *b, int64_t n, int64_t t, int64_t c, int heads, bool rotary)
{
    char shape[64];
    OpSpec s = {.kind = OP_ATTENTION,
                .heads = heads,
                .rotary = rotary,
                .x_count = 1,
                .x = {sequence(n, t, 3 * c)},
                .y = sequence(n, t, c)};
    op_make(b, &s);
    double there = best_of(forward, b), back = best_of(backward, b);
    printf("attention %s %d heads%s: forward %.3f ms, backward %.3f ms: %.0f, %.0f GFLOP/s\n",
           shape_text(s.x[0].shape, shape), heads, rotary ? ", rotary" : "", there * 1e3,
           back * 1e3, b->op->flops_forward / there * 1e-9, b->op->flops_backward / back * 1e-9);
    op_done(b);
}

/* The rest of a GPT's step: rows of 768, a vocabulary of 50257. */
static void gpt_bench(Bench *b)
{
    enum { ROWS = 1024, WIDTH = 768, VOCAB = 50257 };
    static const int32_t labels[ROWS];
    Desc x = sequence(1, ROWS, WIDTH);
    OpSpec s = {.kind = OP_LAYER_NORM, .eps = 1e-5f, .x_count = 1, .w_count = 2, .x = {x}, .y = x};
    s.w[0] = s.w[1] = shape_of(1, WIDTH, 1, 1, 1);
    op_bench(b, "layer_norm", &s, (double[]){2.0, 5.0});
    simple_bench(b, "gelu", OP_ACTIVATION, ACT_GELU, sequence(1, ROWS, 4 * WIDTH), 3.0);
    simple_bench(b, "dropout", OP_DROPOUT, ACT_NONE, x, 2.0);
    s = (OpSpec){.kind = OP_POSITIONS, .x_count = 1, .w_count = 1, .x = {x}, .y = x};
    s.w[0] = shape_of(2, ROWS, WIDTH, 1, 1);
    op_bench(b, "positions", &s, (double[]){3.0, 2.0});
    s = (OpSpec){.kind = OP_SOFTMAX_LOSS, .x_count = 1, .x = {sequence(1, ROWS / 2, VOCAB)}};
    s.y = desc_plain(shape_of(2, ROWS / 2, LOSS_COLUMNS, 1, 1), DTYPE_F32);
    op_make(b, &s);
    b->run.labels = labels;
    double bytes = (double)desc_bytes(s.x[0]), floor = copy_rate(b);
    report("softmax_loss over 50257", bytes, best_of(forward, b), floor);
    report("    backward", 2.0 * bytes, best_of(backward, b), floor);
    op_done(b);
    s = (OpSpec){.kind = OP_EMBEDDING, .x_count = 1, .w_count = 1, .y = x};
    s.x[0] = desc_plain(shape_of(2, 1, ROWS, 1, 1), DTYPE_I32);
    s.w[0] = shape_of(2, VOCAB, WIDTH, 1, 1);
    op_make(b, &s);
    for (int i = 0; i < ROWS; ++i) ((int32_t *)(uintptr_t)b->run.x[0])[i] = i * 7919 % VOCAB;
    report("embedding, 50257 rows: gradient", (double)VOCAB * WIDTH * sizeof(float),
           best_of(backward, b), floor);
    op_done(b);
}

static void add_work(Bench *b)
{
    b->flat->add(NULL, b->v[0], b->v[0], b->v[1], b->n);
}
static void sgd_work(Bench *b)
{
    SgdArgs a = {.lr = 1e-6f, .momentum = 0.9f, .weight_decay = 1e-4f, .grad_scale = 1.0f};
    b->flat->sgd(NULL, &a, b->v[0], b->v[1], b->v[2], b->n);
}
static void adam_work(Bench *b)
{
    AdamArgs a = {.lr = 1e-6f,
                  .beta1 = 0.9f,
                  .beta2 = 0.99f,
                  .eps = 1e-8f,
                  .grad_scale = 1.0f,
                  .correct1 = 0.5f,
                  .correct2 = 0.5f};
    b->flat->adam(NULL, &a, b->v[0], b->v[1], b->v[2], b->v[3], b->n);
}
static void squares_work(Bench *b)
{
    b->flat->squares(NULL, (double *)b->v[0], b->v[1], b->n);
}

static void flat_bench(Bench *b, int64_t n)
{
    size_t bytes = (size_t)n * sizeof(float);
    b->n = n;
    for (int i = 0; i < 4; ++i) b->v[i] = floats(b, bytes);
    for (int64_t i = 0; i < n; ++i) b->v[3][i] = 1.0f;
    double floor = copy_rate(b);
    printf("%.1f MB a range\n", (double)bytes * 1e-6);
    report("memcpy (one thread)", 2.0 * (double)bytes, 2e-9 * (double)bytes / floor, floor);
    report("add", 3.0 * (double)bytes, best_of(add_work, b), floor);
    report("sgd", 5.0 * (double)bytes, best_of(sgd_work, b), floor);
    report("adam", 7.0 * (double)bytes, best_of(adam_work, b), floor);
    report("squares", 1.0 * (double)bytes, best_of(squares_work, b), floor);
    for (int i = 0; i < 4; ++i) b->backend->table->release(b->backend, b->v[i], bytes);
}

int main(int argc, char **argv)
{
    int threads = argc > 1 ? atoi(argv[1]) : 2, block = argc > 2 ? atoi(argv[2]) : 16;
    Bench b = {0};
    if (backend_open(&b.backend, &backend_cpu, (BackendOptions){.threads = threads}) != OK)
        die("%s", fail_message());
    b.flat = b.backend->table->flat;
    printf("%d threads, block %d\n", threads, block);
    flat_bench(&b, 11173962);
    flat_bench(&b, 32 * 64 * 28 * 28);
    norm_bench(&b, image(32, 64, 28, block), ACT_RELU, false);
    norm_bench(&b, image(32, 64, 28, block), ACT_RELU, true);
    norm_bench(&b, image(32, 256, 7, block), ACT_RELU, false);
    norm_bench(&b, image(32, 512, 4, block), ACT_RELU, true);
    norm_bench(&b, image(8, 256, 56, block), ACT_RELU, true);
    norm_bench(&b, image(8, 64, 112, block), ACT_RELU, false);
    norm_bench(&b, image(8, 2048, 7, block), ACT_NONE, false);
    pool_bench(&b, image(8, 64, 112, block), 3, 2, 1);
    pool_bench(&b, image(64, 32, 28, block), 2, 2, 0);
    Desc x = image(32, 64, 28, block);
    simple_bench(&b, "relu", OP_ACTIVATION, ACT_RELU, x, 3.0);
    simple_bench(&b, "gelu", OP_ACTIVATION, ACT_GELU, x, 3.0);
    simple_bench(&b, "silu", OP_ACTIVATION, ACT_SILU, x, 3.0);
    simple_bench(&b, "add+relu", OP_ADD, ACT_RELU, x, 3.0);
    simple_bench(&b, "dropout", OP_DROPOUT, ACT_NONE, x, 2.0);
    attention_bench(&b, 8, 256, 384, 6, false);
    attention_bench(&b, 2, 256, 768, 12, false);
    attention_bench(&b, 1, 1024, 768, 12, false);
    attention_bench(&b, 1, 1024, 768, 12, true);
    gpt_bench(&b);
    backend_close(&b.backend);
    return 0;
}
