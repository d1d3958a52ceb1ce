/* Measures the update kernels of the optimizers, and the kernels that they consist of, next to a
 * copy of the same size: each fp32 range is read or written once. */
#include "bench_op.h"

enum { MEMORIES = 5 };

typedef struct Flat {
    Backend *backend;
    float *memory[MEMORIES];
    int64_t n;
    double *sums;
} Flat;

static void sgd(void *user)
{
    const Flat *f = user;
    const SgdArgs a = {.lr = 1e-6f, .momentum = 0.9f, .weight_decay = 1e-4f, .grad_scale = 1};
    f->backend->table->flat->sgd(f->backend->table->stream(f->backend), &a, f->memory[0],
                                 f->memory[1], f->memory[2], f->n);
}

static AdamArgs adam_args_of(void)
{
    return (AdamArgs){.lr = 1e-6f,
                      .beta1 = 0.9f,
                      .beta2 = 0.999f,
                      .eps = 1e-8f,
                      .weight_decay = 1e-4f,
                      .grad_scale = 1,
                      .correct1 = 0.1f,
                      .correct2 = 1e-3f,
                      .decoupled = true};
}

static void adamw(void *user)
{
    const Flat *f = user;
    const AdamArgs a = adam_args_of();
    f->backend->table->flat->adam(f->backend->table->stream(f->backend), &a, f->memory[0],
                                  f->memory[1], f->memory[2], f->memory[3], f->n);
}

static void lamb(void *user)
{
    const Flat *f = user;
    const AdamArgs a = adam_args_of();
    f->backend->table->flat->adam_direction(f->backend->table->stream(f->backend), &a, f->memory[4],
                                            f->memory[0], f->memory[1], f->memory[2], f->memory[3],
                                            f->n);
}

static void norm(void *user)
{
    const Flat *f = user;
    f->backend->table->flat->squares(f->backend->table->stream(f->backend), f->sums, f->memory[0],
                                     f->n);
}

static void add(void *user)
{
    const Flat *f = user;
    f->backend->table->flat->add(f->backend->table->stream(f->backend), f->memory[0], f->memory[0],
                                 f->memory[1], f->n);
}

/* touches: number of reads and writes of an element */
static const struct {
    const char *name, *direction;
    BenchWork work;
    int touches;
} kernels[] = {{"sgd", "update", sgd, 5},
               {"adamw", "update", adamw, 7},
               {"lamb", "direction", lamb, 7},
               {"grad_norm", "squares", norm, 1},
               {"grad_add", "sum", add, 3}};
enum { KERNELS = sizeof kernels / sizeof *kernels };

const char *bench_flat_name(int kernel)
{
    return kernel < KERNELS ? kernels[kernel].name : NULL;
}

void bench_flat(BenchLine *line, Backend *backend, int kernel, int64_t elements)
{
    Flat f = {.backend = backend, .n = elements};
    const size_t bytes = (size_t)elements * sizeof(float);
    const size_t sums_bytes = (size_t)(elements / FLAT_CHUNK + 1) * sizeof *f.sums;
    for (int i = 0; i < MEMORIES; ++i) {
        f.memory[i] = backend->table->alloc(backend, bytes);
        bench_fill(backend, f.memory[i], DTYPE_F32, elements, 0);
    }
    f.sums = backend->table->alloc(backend, sums_bytes);
    *line = (BenchLine){.times = 1, .direction = kernels[kernel].direction};
    snprintf(line->label, BENCH_LABEL, "%s", kernels[kernel].name);
    shape_text(shape_of(1, elements, 1, 1, 1), line->shape);
    line->bytes = (double)kernels[kernel].touches * (double)bytes;
    line->seconds = bench_seconds(backend, kernels[kernel].work, &f);
    line->copy = bench_copy(backend, line->bytes);
    for (int i = 0; i < MEMORIES; ++i) backend->table->release(backend, f.memory[i], bytes);
    backend->table->release(backend, f.sums, sums_bytes);
}
