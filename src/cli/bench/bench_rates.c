/* Measures times on a backend by the backend's own clock: the time of any work, and the rates of
 * matrix products and of copies. */
#include "bench.h"

#include <math.h>

/* A measurement is the median of ROUNDS rounds. A round repeats the call for about ROUND_S, but at
 * most CALLS_MAX times. */
enum { ROUNDS = 9, CALLS_MAX = 1000 };
static const double ROUND_S = 0.02;
/* smallest and largest number of rows of matrices; the first size whose product takes PRODUCT_S is
 * used */
enum { PRODUCT_MIN = 256, PRODUCT_MAX = 8192 };
static const double PRODUCT_S = 5e-3;
/* number of random elements that are generated; larger memory is filled with repetitions */
enum { BLOCK = 1 << 18 };

double bench_sum_ranks(const World *world, double mine)
{
    double *all = mem_new((size_t)world->size * sizeof *all), sum = 0;
    world_allgather(world, &mine, sizeof mine, all);
    for (int i = 0; i < world->size; ++i) sum += all[i];
    mem_free(&all);
    return sum;
}

double bench_max_ranks(const World *world, double mine)
{
    double *all = mem_new((size_t)world->size * sizeof *all), max = mine;
    world_allgather(world, &mine, sizeof mine, all);
    for (int i = 0; i < world->size; ++i) max = all[i] > max ? all[i] : max;
    mem_free(&all);
    return max;
}

/* Times `calls` calls of `work` as one lap of the stopwatch. */
static void time_lap(Stopwatch *watch, BenchWork work, void *user, int calls)
{
    stopwatch_start(watch);
    for (int i = 0; i < calls; ++i) work(user);
    stopwatch_stop(watch);
}

/* Returns the time of the fastest of three calls, after one call to warm up. */
static double estimate_s(Stopwatch *watch, BenchWork work, void *user)
{
    enum { CALLS = 3 };
    work(user);
    for (int i = 0; i < CALLS; ++i) time_lap(watch, work, user, 1);
    double seconds = stopwatch_lap_s(watch, 0);
    for (int i = 1; i < CALLS; ++i) seconds = fmin(seconds, stopwatch_lap_s(watch, i));
    stopwatch_clear(watch);
    return seconds;
}

double bench_seconds(Backend *backend, BenchWork work, void *user)
{
    Stopwatch *watch = stopwatch_new(backend);
    double once_s = estimate_s(watch, work, user), time[ROUNDS];
    int calls = once_s * CALLS_MAX < ROUND_S ? CALLS_MAX
                : once_s < ROUND_S           ? (int)(ROUND_S / once_s)
                                             : 1;
    for (int i = 0; i < ROUNDS; ++i) time_lap(watch, work, user, calls);
    for (int i = 0; i < ROUNDS; ++i) time[i] = stopwatch_lap_s(watch, i) / calls;
    stopwatch_free(&watch);
    return median(time, ROUNDS);
}

/* ---- random memory ---- */

/* Fills `bytes` bytes with repetitions of a block. */
static void repeat_block(Backend *backend, void *to, const void *block, size_t block_bytes,
                         size_t bytes)
{
    const BackendTable *table = backend->table;
    for (size_t at = 0; at < bytes; at += block_bytes)
        table->copy(table->stream(backend), (char *)to + at, block,
                    block_bytes < bytes - at ? block_bytes : bytes - at);
    table->sync(table->stream(backend));
}

void bench_fill(Backend *backend, void *to, DType type, int64_t elements, float low)
{
    size_t size = dtype_bytes(type);
    float *block = mem_new(BLOCK * sizeof *block);
    /* the same memory, used for 16-bit numbers */
    uint16_t *half = (uint16_t *)(void *)block;
    RngKey key = rng_key(1, RNG_TEST, 2, 0);
    for (int i = 0; i < BLOCK && i < elements; ++i) {
        float value = low + rng_uniform(key, (uint64_t)i);
        if (type == DTYPE_BF16)
            half[i] = bf16_of(value).bits;
        else if (type == DTYPE_F16)
            half[i] = f16_of(value).bits;
        else
            block[i] = value;
    }
    repeat_block(backend, to, block, BLOCK * size, (size_t)elements * size);
    mem_free(&block);
}

void bench_fill_integers(Backend *backend, int32_t *to, int64_t elements, int64_t limit)
{
    int32_t *block = mem_new(BLOCK * sizeof *block);
    RngKey key = rng_key(1, RNG_TEST, 3, 0);
    for (int i = 0; i < BLOCK && i < elements; ++i)
        block[i] = (int32_t)(rng_u32(key, (uint64_t)i) % (uint32_t)limit);
    repeat_block(backend, to, block, BLOCK * sizeof *block, (size_t)elements * sizeof *block);
    mem_free(&block);
}

/* ---- copies ---- */

/* Arguments of a copy of `bytes` bytes. */
typedef struct Copy {
    Backend *backend;
    void *to, *from;
    size_t bytes;
} Copy;

static void copy_work(void *user)
{
    const Copy *c = user;
    const BackendTable *table = c->backend->table;
    table->copy(table->stream(c->backend), c->to, c->from, c->bytes);
}

double bench_copy(Backend *backend, double bytes)
{
    int64_t count = (int64_t)(bytes / 2 / sizeof(float)) + 1;
    Copy c = {.backend = backend, .bytes = (size_t)count * sizeof(float)};
    c.to = backend->table->alloc(backend, c.bytes);
    c.from = backend->table->alloc(backend, c.bytes);
    bench_fill(backend, c.from, DTYPE_F32, count, 0);
    double rate = 2 * (double)c.bytes / bench_seconds(backend, copy_work, &c);
    backend->table->release(backend, c.to, c.bytes);
    backend->table->release(backend, c.from, c.bytes);
    return rate;
}

/* ---- matrix products ---- */

/* A matrix product: a dense layer of n inputs and n outputs on n rows. */
typedef struct Product {
    /* owned */
    Op *op;
    /* arguments of op; their memory is owned */
    OpRun run;
    /* size of the input, which is also that of the output */
    size_t activation_bytes;
    /* size of the weight */
    size_t weight_bytes;
} Product;

static void product_free(Product *p)
{
    Backend *backend = p->op->backend;
    const BackendTable *table = backend->table;
    table->release(backend, (void *)p->run.x[0], p->activation_bytes);
    table->release(backend, p->run.y, p->activation_bytes);
    table->release(backend, (void *)p->run.w[0], p->weight_bytes);
    table->release(backend, p->run.workspace, p->op->workspace_bytes);
    table->release(backend, p->run.cache, p->op->cache_bytes);
    op_free(&p->op);
}

static Status product_new(Product *p, Backend *backend, int64_t n)
{
    const BackendTable *table = backend->table;
    OpSpec spec = {.kind = layer_kind("dense")->op, .x_count = 1, .w_count = 1};
    spec.x[0] = spec.y = desc_plain(shape_of(2, n, n, 1, 1), backend->options.precision);
    spec.w[0] = shape_of(2, n, n, 1, 1);
    Desc preferred[SPEC_INPUTS] = {spec.x[0]};
    TRY(op_new(&p->op, backend, &spec, preferred));
    p->activation_bytes = desc_bytes(p->op->spec.y);
    p->weight_bytes = (size_t)p->op->w_elements[0] * sizeof(float);
    void *x = table->alloc(backend, p->activation_bytes);
    float *w = table->alloc(backend, p->weight_bytes);
    bench_fill(backend, x, spec.x[0].dtype, n * n, -0.5f);
    bench_fill(backend, w, DTYPE_F32, p->op->w_elements[0], -0.5f);
    p->run = (OpRun){.x = {x},
                     .w = {w},
                     .y = table->alloc(backend, p->activation_bytes),
                     .workspace = table->alloc(backend, p->op->workspace_bytes),
                     .cache = table->alloc(backend, p->op->cache_bytes),
                     .sample_count = (int)n};
    op_refresh(p->op, &p->run);
    return OK;
}

static void product_work(void *user)
{
    Product *p = user;
    op_forward(p->op, &p->run);
}

/* Finds the value of BenchProduct.size for this rank. */
static Status choose_product_size(Backend *backend, int64_t *size)
{
    double once_s = 0;
    Stopwatch *watch = stopwatch_new(backend);
    Status st = OK;
    for (*size = PRODUCT_MIN / 2; st == OK && once_s < PRODUCT_S && *size < PRODUCT_MAX;) {
        Product p;
        *size *= 2;
        st = product_new(&p, backend, *size);
        if (st != OK) break;
        once_s = estimate_s(watch, product_work, &p);
        product_free(&p);
    }
    stopwatch_free(&watch);
    return st;
}

Status bench_product(BenchProduct *product, Backend *backend, const World *world)
{
    Product p;
    TRY(status_agree(world, choose_product_size(backend, &product->size)));
    world_bcast(world, &product->size, sizeof product->size, 0);
    TRY(status_agree(world, product_new(&p, backend, product->size)));
    world_barrier(world);
    double n = (double)product->size;
    double rank_flops = 2 * n * n * n / bench_seconds(backend, product_work, &p);
    product_free(&p);
    product->flops = bench_sum_ranks(world, rank_flops);
    return OK;
}
