/* The gradient of a convolution's weight (conv_weight.h). The rows of all images of dy are divided
 * into chunks that fit a core's cache; several consecutive chunks are a slice. Output channels are
 * divided into panels; several consecutive panels are a group. The division depends on the shape
 * alone. An item of work_run is one slice and one group: a thread computes the group's dw, chunk by
 * chunk over the slice. The sums of the slices are joined by a binary tree. */
#include "conv_weight.h"
#include "../simd/simd.h"
#include "../sizes.h"
#include "../work.h"

#include <string.h>

enum {
    /* approximate number of pixels in a chunk of dy */
    CHUNK_PIXELS = 512,
    /* minimum number of pixels of a slice, so that joining its sums takes a small part of the
     * time */
    SLICE_PIXELS = 1024,
    /* approximate number of items, which is the maximum number of threads that share the work */
    ITEMS = 16,
    LANES_MAX = 16,
};

struct ConvWeightRun {
    ConvWeightSpec spec;
    /* channels of a block */
    int lanes;
    /* rows and columns of y */
    int64_t p, q;
    /* number of blocks of input channels */
    int64_t in_blocks;
    /* number of blocks of output channels */
    int64_t out_blocks;
    /* positions in the kernel */
    int64_t taps;
    /* rows of y in a chunk */
    int64_t rows;
    /* number of chunks of one image */
    int64_t image_chunks;
    /* number of chunks of all images */
    int64_t chunks;
    int64_t panels, groups, slices;
    /* floats of dw */
    int64_t dw_floats;
};

typedef struct ConvWeightTask {
    const ConvWeightRun *r;
    const float *x, *dy;
    /* dw of slice 0, to which the other slices are added at the end */
    float *dw;
    /* dw of the other slices, in the scratch */
    float *others;
} ConvWeightTask;

static int64_t clamp(int64_t value, int64_t most)
{
    return value < 1 ? 1 : value > most ? most : value;
}

ConvWeightRun *conv_weight_new(const ConvWeightSpec *spec)
{
    ConvWeightRun *r = mem_new(sizeof *r);
    const ConvWeightSpec *s = &r->spec;
    r->spec = *spec;
    r->lanes = simd_table(DTYPE_F32)->conv_lanes;
    r->p = (s->h + 2 * s->pad[0] - s->kernel[0]) / s->stride[0] + 1;
    r->q = (s->w + 2 * s->pad[1] - s->kernel[1]) / s->stride[1] + 1;
    r->in_blocks = ceil_div(s->c, r->lanes);
    r->out_blocks = ceil_div(s->o, r->lanes);
    r->taps = s->kernel[0] * s->kernel[1];
    r->rows = clamp(CHUNK_PIXELS / r->q, r->p);
    r->image_chunks = ceil_div(r->p, r->rows);
    r->chunks = s->n * r->image_chunks;
    r->panels = ceil_div(r->out_blocks, CONV_WEIGHT_PANEL);
    r->slices = clamp(s->n * r->p * r->q / SLICE_PIXELS, r->chunks < ITEMS ? r->chunks : ITEMS);
    r->groups = clamp(ceil_div(ITEMS, r->slices), r->panels);
    r->dw_floats = r->out_blocks * r->in_blocks * r->taps * r->lanes * r->lanes;
    return r;
}

void conv_weight_free(ConvWeightRun **run)
{
    mem_free(run);
}

size_t conv_weight_scratch_bytes(const ConvWeightRun *r)
{
    return (size_t)((r->slices - 1) * r->dw_floats) * sizeof(float);
}

/* Returns the first row (or column) of y, `from` or later, for which `tap` reads a pixel and not
 * the padding before the first pixel. tap: row (or column) of the kernel. */
static int64_t reach_begin(int64_t tap, int64_t pad, int64_t stride, int64_t from)
{
    const int64_t first = pad > tap ? ceil_div(pad - tap, stride) : 0;
    return first > from ? first : from;
}

/* Returns the end, at most `to`, of the rows (or columns) of y for which `tap` reads one of `size`
 * pixels and not the padding behind the last pixel. */
static int64_t reach_end(int64_t tap, int64_t pad, int64_t stride, int64_t size, int64_t to)
{
    const int64_t last = size + pad - tap > 0 ? ceil_div(size + pad - tap, stride) : 0;
    return last < to ? last : to;
}

/* Computes dw of one tap, one panel and one block of input channels over a chunk. The panel is the
 * blocks `block` to block + vectors - 1 of output channels. in: the input block. add: adds to dw;
 * else writes it. */
static void tap_run(const ConvWeightTask *t, int64_t chunk, int64_t block, int vectors, int64_t in,
                    int64_t tap, float *dw, bool add)
{
    const ConvWeightRun *r = t->r;
    const ConvWeightSpec *s = &r->spec;
    const int64_t n = chunk / r->image_chunks, first = chunk % r->image_chunks * r->rows;
    const int64_t down = tap / s->kernel[1], across = tap % s->kernel[1], lanes = r->lanes;
    const int64_t last = first + r->rows < r->p ? first + r->rows : r->p;
    const int64_t p = reach_begin(down, s->pad[0], s->stride[0], first);
    const int64_t q = reach_begin(across, s->pad[1], s->stride[1], 0);
    const int64_t rows = reach_end(down, s->pad[0], s->stride[0], s->h, last) - p;
    const int64_t columns = reach_end(across, s->pad[1], s->stride[1], s->w, r->q) - q;
    const int64_t y = p * s->stride[0] - s->pad[0] + down;
    const int64_t x = q * s->stride[1] - s->pad[1] + across;
    const bool any = rows > 0 && columns > 0;
    const ConvWeight a = {
        .x = any ? t->x + (((n * r->in_blocks + in) * s->h + y) * s->w + x) * lanes : t->x,
        .dy = any ? t->dy + (((n * r->out_blocks + block) * r->p + p) * r->q + q) * lanes : t->dy,
        .dw = dw + ((block * r->in_blocks + in) * r->taps + tap) * lanes * lanes,
        .rows = any ? rows : 0,
        .columns = columns,
        .x_row = s->stride[0] * s->w * lanes,
        .x_column = s->stride[1] * lanes,
        .dy_row = r->q * lanes,
        .dy_block = r->p * r->q * lanes,
        .dw_block = r->in_blocks * r->taps * lanes * lanes,
        .vectors = vectors,
        .add = add};
    simd_table(DTYPE_F32)->conv_weight(&a);
}

/* Computes one group's dw over the chunks of one slice. */
static void item_run(const ConvWeightTask *t, int64_t slice, int64_t group)
{
    const ConvWeightRun *r = t->r;
    float *dw = slice ? t->others + (slice - 1) * r->dw_floats : t->dw;
    const int64_t begin = r->chunks * slice / r->slices, end = r->chunks * (slice + 1) / r->slices;
    const int64_t first = r->panels * group / r->groups;
    const int64_t last = r->panels * (group + 1) / r->groups;
    for (int64_t chunk = begin; chunk < end; ++chunk)
        for (int64_t panel = first; panel < last; ++panel) {
            const int64_t block = r->out_blocks * panel / r->panels;
            const int vectors = (int)(r->out_blocks * (panel + 1) / r->panels - block);
            for (int64_t in = 0; in < r->in_blocks; ++in)
                for (int64_t tap = 0; tap < r->taps; ++tap)
                    tap_run(t, chunk, block, vectors, in, tap, dw, chunk > begin);
        }
}

static void items_body(const void *task, int64_t begin, int64_t end)
{
    const ConvWeightTask *t = task;
    for (int64_t i = begin; i < end; ++i) item_run(t, i / t->r->groups, i % t->r->groups);
}

void conv_bias_gradient(const float *dy, int64_t n, int64_t blocks, int64_t pixels, int lanes,
                        int64_t block, float *db)
{
    double sum[LANES_MAX] = {0};
    for (int64_t i = 0; i < n; ++i) {
        float mean[LANES_MAX];
        simd_table(DTYPE_F32)->mean_rows(dy + (i * blocks + block) * pixels * lanes, pixels, lanes,
                                         mean);
        for (int l = 0; l < lanes; ++l) sum[l] += (double)mean[l] * (double)pixels;
    }
    for (int l = 0; l < lanes; ++l) db[l] = (float)sum[l];
}

/* Arguments of conv_bias_gradients. blocks: number of blocks of channels. */
typedef struct BiasTask {
    const float *dy;
    int64_t n, o, pixels, blocks;
    int lanes;
    float *db;
} BiasTask;

/* An item of work_run is a block. The bias has no padding, so its last block may be shorter than a
 * vector. */
static void bias_body(const void *task, int64_t begin, int64_t end)
{
    const BiasTask *t = task;
    for (int64_t b = begin; b < end; ++b) {
        float sum[LANES_MAX];
        const int64_t left = t->o - b * t->lanes;
        conv_bias_gradient(t->dy, t->n, t->blocks, t->pixels, t->lanes, b, sum);
        memcpy(t->db + b * t->lanes, sum,
               (size_t)(left < t->lanes ? left : t->lanes) * sizeof *sum);
    }
}

void conv_bias_gradients(const float *dy, int64_t n, int64_t o, int64_t pixels, int lanes,
                         float *db)
{
    const BiasTask t = {.dy = dy,
                        .n = n,
                        .o = o,
                        .pixels = pixels,
                        .blocks = ceil_div(o, lanes),
                        .lanes = lanes,
                        .db = db};
    work_run(bias_body, &t, t.blocks, n * pixels * o);
}

void conv_weight_run(const ConvWeightRun *r, void *const data[ROLES], void *scratch)
{
    const ConvWeightTask t = {
        .r = r, .x = data[ROLE_X], .dy = data[ROLE_Y], .dw = data[ROLE_W], .others = scratch};
    const int64_t pixels = r->spec.n * r->p * r->q;
    work_run(items_body, &t, r->slices * r->groups, r->dw_floats * pixels / r->lanes);
    work_sum_tree(t.dw, t.others, r->slices - 1, r->dw_floats);
    if (data[ROLE_B])
        conv_bias_gradients(t.dy, r->spec.n, r->spec.o, r->p * r->q, r->lanes, data[ROLE_B]);
}
