/* Measures kernels on flat arrays: updates of the optimizers, a sum of squares, and a sum of two
 * arrays. Each is compared with a copy of the same number of bytes. */
#include "bench_op.h"

/* largest number of arrays that a kernel uses */
enum { ARRAYS = 5 };

/* Arguments of the kernels. */
typedef struct Flat {
    Backend *backend;
    /* fp32 arrays, each of n elements; owned */
    float *array[ARRAYS];
    /* number of elements of each array */
    int64_t n;
    /* output of the kernel `squares`: a partial sum for each FLAT_CHUNK elements; owned */
    double *sums;
} Flat;

static UpdatePiece piece_of(const Flat *f, Average average)
{
    return (UpdatePiece){.w = f->array[0],
                         .g = f->array[1],
                         .m = f->array[2],
                         .v = f->array[3],
                         .average = average.to,
                         .n = f->n,
                         .weight_decay = 1e-4f};
}

static void sgd_update(const Flat *f, Average average)
{
    const SgdArgs a = {
        .lr = 1e-6f, .momentum = 0.9f, .grad_scale = 1, .average_rate = average.rate};
    const UpdatePiece piece = piece_of(f, average);
    f->backend->table->flat->sgd(f->backend->table->stream(f->backend), &a, &piece, 1);
}

/* Returns arguments by which an update also makes array[4] a moving average of the parameters,
 * array[0] (train.ema). */
static Average average_of(const Flat *f)
{
    return (Average){.to = f->array[4], .rate = 1e-4f};
}

static void sgd(void *user)
{
    sgd_update(user, (Average){0});
}

static void sgd_ema(void *user)
{
    sgd_update(user, average_of(user));
}

static AdamArgs adam_args(Average average)
{
    return (AdamArgs){.average_rate = average.rate,
                      .lr = 1e-6f,
                      .beta1 = 0.9f,
                      .beta2 = 0.999f,
                      .eps = 1e-8f,
                      .grad_scale = 1,
                      .correct1 = 0.1f,
                      .correct2 = 1e-3f,
                      .decoupled = true};
}

static void adamw_update(const Flat *f, Average average)
{
    const AdamArgs a = adam_args(average);
    const UpdatePiece piece = piece_of(f, average);
    f->backend->table->flat->adam(f->backend->table->stream(f->backend), &a, &piece, 1);
}

static void adamw(void *user)
{
    adamw_update(user, (Average){0});
}

static void adamw_ema(void *user)
{
    adamw_update(user, average_of(user));
}

static void lamb(void *user)
{
    const Flat *f = user;
    const AdamArgs a = adam_args((Average){0});
    const UpdatePiece piece = piece_of(f, (Average){0});
    f->backend->table->flat->adam_direction(f->backend->table->stream(f->backend), &a, f->array[4],
                                            &piece);
}

static void norm(void *user)
{
    const Flat *f = user;
    f->backend->table->flat->squares(f->backend->table->stream(f->backend), f->sums, f->array[0],
                                     f->n);
}

static void add(void *user)
{
    const Flat *f = user;
    f->backend->table->flat->add(f->backend->table->stream(f->backend), f->array[0], f->array[0],
                                 f->array[1], f->n);
}

static const struct {
    const char *name, *direction;
    BenchWork work;
    /* number of reads and writes of array elements for each element of array[0] */
    int accesses;
} kernels[] = {{"sgd", "update", sgd, 5},      {"sgd_ema", "update", sgd_ema, 7},
               {"adamw", "update", adamw, 7},  {"adamw_ema", "update", adamw_ema, 9},
               {"lamb", "direction", lamb, 7}, {"grad_norm", "squares", norm, 1},
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
    for (int i = 0; i < ARRAYS; ++i) {
        f.array[i] = backend->table->alloc(backend, bytes);
        bench_fill(backend, f.array[i], DTYPE_F32, elements, 0);
    }
    f.sums = backend->table->alloc(backend, sums_bytes);
    *line = (BenchLine){.occurrences = 1, .direction = kernels[kernel].direction};
    snprintf(line->label, BENCH_LABEL, "%s", kernels[kernel].name);
    shape_text(shape_of(1, elements, 1, 1, 1), line->shape);
    line->bytes = (double)kernels[kernel].accesses * (double)bytes;
    line->seconds = bench_seconds(backend, kernels[kernel].work, &f);
    line->copy_rate = bench_copy(backend, line->bytes);
    for (int i = 0; i < ARRAYS; ++i) backend->table->release(backend, f.array[i], bytes);
    backend->table->release(backend, f.sums, sums_bytes);
}
