/* Attention, causal or full. Forward saves the log-sum-exp of each query's scores; backward
 * computes the probabilities again, tile by tile. The work is divided into items, and a thread
 * computes an item. In forward, an item is a tile of one head's queries. In backward, an item is a
 * key head with all query heads that share it, if such items give all threads about the same work;
 * else a first loop has tiles of queries as items, and a second loop has tiles of keys. With every
 * kind of item, dk and dv of a key head are summed over its query heads in the same order. So any
 * number of threads gives the same bits. If OpSpec.slices cuts these sums, each slice of query
 * heads is summed on its own, and the slices are joined by the binary tree of neighbours. */
#include "../sliced.h"
#include "view.h"

#include <math.h>
#include <omp.h>
#include <string.h>

/* with at least this number of key heads per thread, items that are whole key heads balance the
 * threads well enough */
enum { HEADS_A_THREAD = 4 };

typedef struct Attention {
    int64_t samples;
    /* tokens of a sequence */
    int64_t length;
    /* elements of a head in one token */
    int64_t width;
    /* tiles of a sequence */
    int64_t tiles;
    /* number of query heads */
    int64_t heads;
    /* number of key heads, and also of value heads */
    int64_t kv_heads;
    /* query heads per key head */
    int64_t group;
    /* OpSpec.slices, which cuts the query heads */
    SumSlices cut;
    /* number of slices per key head; 1 if the sums are not cut */
    int64_t slices;
    /* number of keys that a query attends to: its own and those before it; 0: no limit */
    int64_t window;
    /* true: a query attends to all keys */
    bool full;
    /* elements of a token in x */
    int64_t x_width;
    /* elements of a token in y */
    int64_t y_width;
    /* floats of a thread's scratch for the kernels */
    int64_t kernel_scratch;
    /* floats of a thread's whole scratch: kernel_scratch, and room for dk and dv of the slices of a
     * key head that wait to be joined */
    int64_t scratch;
    DType type;
    int threads;
    /* cosines and sines of the rotary angles of each position, times the factor that rotary_speeds
     * returns, float[length][width / 2], owned; NULL: no rotation */
    float *cosine, *sine;
} Attention;

typedef struct AttentionTask {
    const Attention *a;
    const OpRun *run;
    /* computes one item; scratch: of the calling thread, Attention.scratch floats */
    void (*body)(const struct AttentionTask *t, int64_t item, float *scratch);
    int64_t items;
} AttentionTask;

/* Makes Attention.cosine and Attention.sine. */
static void angles_new(Attention *a, const OpSpec *spec)
{
    int64_t half = a->width / 2;
    double *speed = mem_new((size_t)half * sizeof *speed);
    const double gain = rotary_speeds(spec, a->width, a->length, speed);
    a->cosine = mem_new((size_t)(a->length * half) * sizeof *a->cosine);
    a->sine = mem_new((size_t)(a->length * half) * sizeof *a->sine);
    for (int64_t i = 0; i < half; ++i)
        for (int64_t t = 0; t < a->length; ++t) {
            a->cosine[t * half + i] = (float)(gain * cos((double)t * speed[i]));
            a->sine[t * half + i] = (float)(gain * sin((double)t * speed[i]));
        }
    mem_free(&speed);
}

static void plan_sizes(Op *op, const Attention *a)
{
    double pairs = (double)(a->samples * a->heads) * attention_pairs(&op->spec, a->length);
    op->saved_bytes = (size_t)(a->samples * a->heads * a->length) * sizeof(float);
    op->workspace_bytes = (size_t)(a->threads * a->scratch) * sizeof(float);
    op->needs_x[0] = op->needs_y = true;
    op->flops_forward = 4.0 * pairs * (double)a->width;
    op->flops_backward = 2.5 * op->flops_forward;
}

/* Sets the fields of *a for slices and scratch. ERR_BUG if sums are cut, but the type is not fp32
 * or the number of slices is not a multiple of the number of key heads. */
static Status plan_slices(Attention *a, const OpSpec *s)
{
    a->cut = s->slices;
    a->slices = s->slices.total > 0 ? s->slices.count / a->kv_heads : 1;
    if (s->slices.total > 0 && (a->type != DTYPE_F32 || s->slices.count % a->kv_heads != 0))
        return fail(ERR_BUG, "attention: %d slices of %s cannot be those of %lld key heads",
                    s->slices.count, dtype_name(a->type), (long long)a->kv_heads);
    a->kernel_scratch = attention_scratch(a->length, a->width, a->type);
    a->scratch = a->kernel_scratch + sum_levels((int)a->slices) * 2 * a->length * a->width;
    return OK;
}

static Status attention_plan(Op *op, Desc preferred[SPEC_INPUTS])
{
    OpSpec *s = &op->spec;
    preferred[0] = in_precision(op, layout_plain(s->x[0]));
    s->y = desc_plain(s->y.shape, preferred[0].dtype);
    Attention *a = op->impl = mem_new(sizeof *a);
    a->samples = s->y.shape.dim[0];
    a->length = s->y.shape.dim[1];
    a->heads = s->heads;
    a->kv_heads = attention_kv_heads(s);
    a->group = a->heads / a->kv_heads;
    a->full = s->bidirectional;
    a->window = s->window > 0 && s->window < a->length ? s->window : 0;
    a->x_width = s->x[0].shape.dim[2];
    a->y_width = s->y.shape.dim[2];
    a->width = a->y_width / s->heads;
    a->tiles = (a->length + ATTENTION_TILE - 1) / ATTENTION_TILE;
    a->type = s->y.dtype;
    TRY(plan_slices(a, s));
    a->threads = op->backend->options.threads;
    if (s->rotary) angles_new(a, s);
    plan_sizes(op, a);
    return OK;
}

static void attention_free(Op *op)
{
    Attention *a = op->impl;
    if (!a) return;
    mem_free(&a->cosine);
    mem_free(&a->sine);
    mem_free(&op->impl);
}

/* Returns the tensors of one query head of a sample. The query heads that share keys and values are
 * neighbours in memory. */
static AttentionHead head_at(const AttentionTask *t, int64_t sample, int64_t head)
{
    const Attention *a = t->a;
    const OpRun *run = t->run;
    const int64_t at = head * a->width, y_at = sample * a->length * a->y_width + at;
    const int64_t k = a->y_width - at + head / a->group * a->width;
    const int64_t v = k + a->kv_heads * a->width;
    const int64_t x_at = sample * a->length * a->x_width + at;
    const void *x = element_at(run->x[0], x_at, a->type);
    void *dx = run->dx[0] ? element_out(run->dx[0], x_at, a->type) : NULL;
    return (AttentionHead){.q = x,
                           .k = element_at(x, k, a->type),
                           .v = element_at(x, v, a->type),
                           .dq = dx,
                           .dk = dx ? element_out(dx, k, a->type) : NULL,
                           .dv = dx ? element_out(dx, v, a->type) : NULL,
                           .y = element_out(run->y, y_at, a->type),
                           .dy = run->dy ? element_at(run->dy, y_at, a->type) : NULL,
                           .lse = (float *)run->saved + (sample * a->heads + head) * a->length,
                           .cosine = a->cosine,
                           .sine = a->sine,
                           .stride = a->x_width,
                           .key_stride = a->x_width,
                           .y_stride = a->y_width,
                           .length = a->length,
                           .width = a->width,
                           .group = a->group,
                           .window = a->window,
                           .full = a->full,
                           .scale = 1.0f / sqrtf((float)a->width)};
}

/* Runs all items. Threads take items dynamically, which does not change the result. */
static void attention_run(const AttentionTask *t)
{
#pragma omp parallel for schedule(dynamic) num_threads(t->a->threads) if (t->a->threads > 1)
    for (int64_t i = 0; i < t->items; ++i)
        t->body(t, i, (float *)t->run->workspace + omp_get_thread_num() * t->a->scratch);
}

static void forward_item(const AttentionTask *t, int64_t item, float *scratch)
{
    const Attention *a = t->a;
    /* tiles with the most keys come first, which balances the threads */
    int64_t tile = a->tiles - 1 - item % a->tiles;
    AttentionHead h = head_at(t, item / a->tiles / a->heads, item / a->tiles % a->heads);
    simd_table(a->type)->attention_forward(&h, tile, scratch);
}

/* Sets the rows of padding samples, which come last, to 0. */
static void zero_samples(const Attention *a, const OpRun *run, void *out, int64_t width)
{
    int64_t sample = a->length * width;
    elements_zero(element_out(out, run->sample_count * sample, a->type),
                  (a->samples - run->sample_count) * sample, a->type);
}

static void attention_forward(Op *op, const OpRun *run)
{
    const Attention *a = op->impl;
    attention_run(&(AttentionTask){.a = a,
                                   .run = run,
                                   .body = forward_item,
                                   .items = run->sample_count * a->heads * a->tiles});
    zero_samples(a, run, run->y, a->y_width);
}

/* Gradients of the keys and values of a key head. stride: elements from one row to the next. */
typedef struct KeySums {
    void *dk, *dv;
    int64_t stride;
} KeySums;

/* Returns the memory of number `level` of the sums that wait to be joined; they form a stack.
 * Number 0 is h->dk and h->dv, which are in dx; the others are in scratch. */
static KeySums level_sums(const Attention *a, const AttentionHead *h, int64_t level, float *scratch)
{
    if (level == 0) return (KeySums){h->dk, h->dv, h->key_stride};
    const int64_t size = a->length * a->width;
    float *sums = scratch + a->kernel_scratch + 2 * (level - 1) * size;
    return (KeySums){sums, sums + size, a->width};
}

/* Adds rows `first` to `end` - 1 of `from` to the same rows of `to`. */
static void join_sums(const Attention *a, KeySums to, KeySums from, int64_t first, int64_t end)
{
    for (int64_t r = first; r < end; ++r) {
        float *dk = (float *)to.dk + r * to.stride, *dv = (float *)to.dv + r * to.stride;
        const float *more_k = (const float *)from.dk + r * from.stride;
        const float *more_v = (const float *)from.dv + r * from.stride;
        simd_table(DTYPE_F32)->add_floats(dk, dk, more_k, a->width);
        simd_table(DTYPE_F32)->add_floats(dv, dv, more_v, a->width);
    }
}

/* Returns slice i of the query heads that share a key head, as a range of this rank's query
 * heads. */
static SumRange slice_heads(const Attention *a, int64_t key_head, int64_t i)
{
    if (a->slices == 1) return (SumRange){key_head * a->group, (key_head + 1) * a->group};
    return sum_range(&a->cut, a->heads, (int)(key_head * a->slices + i), 0);
}

/* Computes dk and dv of tile number `tile` of a key head. With ALL_TILES, computes dk and dv of the
 * whole key head, and dq of its query heads, too. */
enum { ALL_TILES = -1 };
static void key_head_grad(const AttentionTask *t, int64_t sample, int64_t key_head, int64_t tile,
                          float *scratch)
{
    const Attention *a = t->a;
    const int64_t first = tile == ALL_TILES ? 0 : tile * ATTENTION_TILE;
    const bool to_end = tile == ALL_TILES || tile == a->tiles - 1;
    const int64_t end = to_end ? a->length : first + ATTENTION_TILE;
    for (int64_t i = 0, waiting = 0; i < a->slices; ++i) {
        const SumRange heads = slice_heads(a, key_head, i);
        const AttentionHead head = head_at(t, sample, heads.first);
        const KeySums sums = level_sums(a, &head, waiting, scratch);
        AttentionHead slice = head;
        slice.group = heads.end - heads.first;
        slice.dk = sums.dk;
        slice.dv = sums.dv;
        slice.key_stride = sums.stride;
        if (tile == ALL_TILES)
            simd_table(a->type)->attention_grad(&slice, scratch);
        else
            simd_table(a->type)->attention_grad_keys(&slice, tile, scratch);
        ++waiting;
        for (int64_t joins = i; joins & 1; joins >>= 1, --waiting)
            join_sums(a, level_sums(a, &head, waiting - 2, scratch),
                      level_sums(a, &head, waiting - 1, scratch), first, end);
    }
}

static void head_item(const AttentionTask *t, int64_t item, float *scratch)
{
    key_head_grad(t, item / t->a->kv_heads, item % t->a->kv_heads, ALL_TILES, scratch);
}

static void queries_item(const AttentionTask *t, int64_t item, float *scratch)
{
    const Attention *a = t->a;
    int64_t tile = a->tiles - 1 - item % a->tiles;
    AttentionHead h = head_at(t, item / a->tiles / a->heads, item / a->tiles % a->heads);
    simd_table(a->type)->attention_grad_queries(&h, tile, scratch);
}

static void keys_item(const AttentionTask *t, int64_t item, float *scratch)
{
    const Attention *a = t->a;
    const int64_t head = item / a->tiles;
    key_head_grad(t, head / a->kv_heads, head % a->kv_heads, item % a->tiles, scratch);
}

/* The items are whole key heads if that balances the threads. Otherwise dq is computed by tiles of
 * queries, and dk and dv by tiles of keys, so the scores are computed twice. */
static void attention_backward_data(Op *op, const OpRun *run)
{
    const Attention *a = op->impl;
    int64_t heads = run->sample_count * a->kv_heads;
    if (!run->dx[0]) return;
    if (heads % a->threads == 0 || heads >= HEADS_A_THREAD * a->threads) {
        attention_run(&(AttentionTask){.a = a, .run = run, .body = head_item, .items = heads});
    } else {
        attention_run(&(AttentionTask){
            .a = a, .run = run, .body = queries_item, .items = heads * a->group * a->tiles});
        attention_run(
            &(AttentionTask){.a = a, .run = run, .body = keys_item, .items = heads * a->tiles});
    }
    zero_samples(a, run, run->dx[0], a->x_width);
}

const OpTable cpu_attention = {
    .name = "attention",
    .plan = attention_plan,
    .forward = attention_forward,
    .backward_data = attention_backward_data,
    .free = attention_free,
};
