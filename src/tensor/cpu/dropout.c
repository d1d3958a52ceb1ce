/* dropout: in training y = x * mask / (1 - p), else y = x. The mask of an element is a function of
 * the seed, the step, the node, the sample's number in the data set, and an index. This is the
 * element's index in plain order or, with drop_channels, the channel's index. So the mask does not
 * depend on layout, micro-batch or rank. The mask is not stored: backward computes it again. */
#include "../sliced.h"
#include "view.h"

#include <string.h>

/* blocked layouts: number of pixels for which the mask is drawn at a time */
enum { TILE_PIXELS = 128 };
/* plain order: number of elements of an item */
enum { ITEM_ELEMENTS = 4096 };

typedef struct Dropout {
    View v;
    /* number of items of a sample. In plain order, an item is up to ITEM_ELEMENTS elements; in
     * blocked layouts, an item is a channel group. */
    int64_t items;
    SampleSlice slice;
} Dropout;

typedef struct DropTask {
    const Op *op;
    const Dropout *d;
    const OpRun *run;
    DType type;
    /* x, or in backward dy */
    const void *from;
    /* y, or in backward dx */
    void *to;
} DropTask;

static Status drop_plan(Op *op, Desc preferred[SPEC_INPUTS])
{
    OpSpec *s = &op->spec;
    preferred[0] = s->y = in_precision(op, s->x[0]);
    Dropout *d = op->impl = mem_new(sizeof *d);
    d->v = view_of(s->y);
    d->items = d->v.block == 1 ? (d->v.sample + ITEM_ELEMENTS - 1) / ITEM_ELEMENTS : d->v.groups;
    d->slice = sample_slice(s);
    op->y_inplace = op->dx_inplace = true;
    return OK;
}

static void impl_free(Op *op)
{
    mem_free(&op->impl);
}

/* For i < count: sets scale[i * stride] to the factor, 0 or 1 / (1 - p), of element (or channel)
 * first + i. */
static void draw(const DropTask *t, RngKey key, int64_t first, int count, float *scale, int stride)
{
    float p = t->op->spec.drop;
    simd_table(DTYPE_F32)->dropout(key, (uint64_t)first, count, (uint32_t)((double)p * 0x1p24),
                                   (float)(1.0 / (1.0 - (double)p)), scale, stride);
}

static void scale_elements(const DropTask *t, int64_t at, const float *scale, int n)
{
    simd_table(t->type)->mul(element_out(t->to, at, t->type), element_at(t->from, at, t->type),
                             scale, n);
}

/* Writes the factors of elements `from` to from + n - 1 of a sample, in plain order, if complete
 * channels are dropped. */
static void channel_factors(const DropTask *t, RngKey key, int64_t from, int n, float *scale)
{
    const int64_t hw = t->d->v.hw;
    for (int done = 0; done < n;) {
        float factor;
        const int64_t at = from + done, rest = hw - at % hw;
        const int count = rest < n - done ? (int)rest : n - done;
        draw(t, key, at / hw, 1, &factor, 1);
        for (int i = 0; i < count; ++i) scale[done + i] = factor;
        done += count;
    }
}

static void plain_item(const DropTask *t, RngKey key, int64_t base, int64_t item)
{
    int64_t from = item * ITEM_ELEMENTS, left = t->d->v.sample - from;
    int n = left < ITEM_ELEMENTS ? (int)left : ITEM_ELEMENTS;
    const SampleSlice *s = &t->d->slice;
    float scale[ITEM_ELEMENTS];
    const bool channels = t->op->spec.drop_channels;
    if (channels) channel_factors(t, key, from, n, scale);
    for (int done = channels ? n : 0; done < n;) {
        int64_t at = from + done, rest = s->contiguous - at % s->contiguous;
        int count = rest < n - done ? (int)rest : n - done;
        draw(t, key, at / s->contiguous * s->stride + s->first + at % s->contiguous, count,
             scale + done, 1);
        done += count;
    }
    scale_elements(t, base + from, scale, n);
}

/* Applies the mask to one channel group, in tiles of up to 16 channels by TILE_PIXELS pixels. The
 * factors of a tile are drawn channel by channel, but stored pixel by pixel, like the elements of a
 * block. A tile is applied in one call if the block has at most 16 channels. */
static void blocked_item(const DropTask *t, RngKey key, int64_t base, int64_t g)
{
    const View *v = &t->d->v;
    const bool channels = t->op->spec.drop_channels;
    float scale[TILE_PIXELS * SIMD_LANES];
    for (int lane = 0; lane < v->block; lane += SIMD_LANES) {
        int lanes = v->block - lane < SIMD_LANES ? v->block - lane : SIMD_LANES;
        int drawn = view_lanes(v, g) - lane < lanes ? view_lanes(v, g) - lane : lanes;
        for (int64_t pixel = 0; pixel < v->hw; pixel += TILE_PIXELS) {
            int n = v->hw - pixel < TILE_PIXELS ? (int)(v->hw - pixel) : TILE_PIXELS;
            for (int l = 0; l < drawn && !channels; ++l)
                draw(t, key, (g * v->block + lane + l) * v->hw + pixel, n, scale + l, lanes);
            if (channels) draw(t, key, g * v->block + lane, drawn, scale, 1);
            for (int i = 1; i < n && channels; ++i)
                memcpy(scale + i * lanes, scale, (size_t)drawn * sizeof *scale);
            for (int l = drawn; l < lanes; ++l)
                for (int i = 0; i < n; ++i) scale[i * lanes + l] = 0.0f;
            int64_t at = base + g * v->plane + pixel * v->block + lane;
            int calls = lanes == v->block ? 1 : n;
            for (int i = 0; i < calls; ++i, at += v->block)
                scale_elements(t, at, scale + i * lanes, n / calls * lanes);
        }
    }
}

static void drop_body(const void *task, int64_t begin, int64_t end)
{
    const DropTask *t = task;
    for (int64_t i = begin; i < end; ++i) {
        int64_t sample = i / t->d->items, item = i % t->d->items;
        uint64_t name[2] = {t->op->spec.seed_name, (uint64_t)t->run->sample[sample]};
        RngKey key =
            rng_key(t->run->seed, RNG_DROPOUT, hash_bytes(name, sizeof name), t->run->step);
        if (t->d->v.block == 1)
            plain_item(t, key, sample * t->d->v.sample, item);
        else
            blocked_item(t, key, sample * t->d->v.sample, item);
    }
}

static void drop_run(Op *op, const OpRun *run, const void *from, void *to)
{
    DropTask t = {
        .op = op, .d = op->impl, .run = run, .type = op->spec.y.dtype, .from = from, .to = to};
    int64_t n = t.d->v.n * t.d->v.sample;
    if (run->training && op->spec.drop > 0.0f)
        work_run(drop_body, &t, t.d->v.n * t.d->items, 4 * n);
    else if (from != to)
        memcpy(to, from, (size_t)n * dtype_bytes(t.type));
}

static void drop_forward(Op *op, const OpRun *run)
{
    drop_run(op, run, run->x[0], run->y);
}

static void drop_backward_data(Op *op, const OpRun *run)
{
    if (run->dx[0]) drop_run(op, run, run->dy, run->dx[0]);
}

const OpTable cpu_dropout = {
    .name = "dropout",
    .plan = drop_plan,
    .forward = drop_forward,
    .backward_data = drop_backward_data,
    .free = impl_free,
};
