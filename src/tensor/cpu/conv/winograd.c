/* Winograd's algorithm in passes. A pass processes a range of tiles whose transforms fit a cache.
 * V, Z, U, M and D are the transforms of patches of the input, of tiles of dy, of the weight, of
 * tiles of y and of dw. Each consists of WINOGRAD_SLICES slices (simd/winograd.h):
 *
 *   forward, data    patches of the tiles -> V;   for a panel of up to 3 output blocks:
 *                    its kernels -> U, V U -> M, M -> y
 *   weight           patches -> V, tiles of dy -> Z;   for a panel of dw: V^T Z -> D, D -> dw
 *
 * Each call transforms the weight again: that costs a few percent of the products' time and saves
 * four times the weight's memory. Each thread has scratch of its own for U, M and D. dx is the
 * convolution of dy with the rotated kernel. */
#include "winograd.h"
#include "conv_weight.h"
#include "../simd/simd.h"
#include "../sizes.h"

#include <omp.h>

enum {
    TILE = 4,
    KERNEL = 3,
    TAPS = KERNEL * KERNEL,
    /* number of tiles that an item transforms, and of tiles in a product that covers all input
     * channels */
    TILES = 48,
    /* number of input channels of one product; the transformed kernels of a panel then fit in a
     * core's own cache */
    DEPTH = 64,
    /* maximum number of tiles in a pass, which is the maximum number of terms of a sum of dw within
     * a pass */
    TILES_MAX = 512,
    /* number of input channels of one product of dw */
    ROWS = 64,
    /* Maximum number of bytes of V in a pass; for dw, V and Z together have at most twice this
     * number. They then fit in a shared cache. A pass of TILES tiles may have more. */
    BYTES = 3 << 20,
    /* extra floats between slices, so that slices do not map to the same set of a cache */
    SKEW = 16,
};

struct Winograd {
    KernelKind kind;
    /* true: forward applies relu to y */
    bool relu;
    int threads;
    /* floats in a vector, and channels of a block */
    int lanes;
    /* images of which patches are transformed: x, or dy in KERNEL_CONV_DATA */
    WinogradImage in;
    /* images that are divided into tiles: y, dx, or in KERNEL_CONV_WEIGHT dy */
    WinogradImage out;
    int64_t samples;
    /* tiles of a pass */
    int64_t step;
    /* forward and data: number of blocks of input channels of one product */
    int64_t depth;
    /* forward and data: number of tiles of one product */
    int64_t tiles;
    /* number of panels of out's blocks; the items of the products are panels times parts */
    int64_t panels;
    /* number of parts of the tiles, or in KERNEL_CONV_WEIGHT of in's blocks */
    int64_t parts;
    /* floats from one slice of V to the next, and from one slice of Z to the next */
    int64_t v_slice, z_slice;
    /* floats of scratch that all threads share */
    int64_t shared;
    /* floats of scratch of one thread */
    int64_t per_thread;
};

/* One parallel loop of a call, over the tiles `first` to first + count - 1. */
typedef struct Pass {
    const Winograd *w;
    /* images of Winograd.in */
    const float *x;
    /* images of Winograd.out */
    float *y;
    /* weight; or dw, which is written although the pointer is const */
    const float *weight;
    /* bias; or db, which is written although the pointer is const; NULL: none */
    const float *bias;
    /* V and Z in the scratch */
    float *v, *z;
    int64_t first, count;
    /* computes one of `items` items */
    void (*item)(const struct Pass *p, int64_t item, float *scratch);
    int64_t items;
} Pass;

static void image_init(WinogradImage *im, int64_t blocks, int64_t h, int64_t w)
{
    *im = (WinogradImage){.blocks = blocks, .h = h, .w = w};
}

/* Chooses the number of tiles of a pass, so that passes have about equal sizes: at most as many
 * tiles as fit BYTES, but at least TILES and at most TILES_MAX. */
static void plan_passes(Winograd *w)
{
    const bool weight = w->kind == KERNEL_CONV_WEIGHT;
    const int64_t tiles = w->in.tiles, blocks = w->in.blocks + (weight ? w->out.blocks : 0);
    const int64_t each = blocks * w->lanes * WINOGRAD_SLICES * (int64_t)sizeof(float);
    int64_t step_max = (BYTES << weight) / each;
    if (step_max < TILES) step_max = TILES;
    if (step_max > TILES_MAX) step_max = TILES_MAX;
    w->step = round_up(ceil_div(tiles, ceil_div(tiles, step_max)), w->lanes);
    w->v_slice = w->in.blocks * w->step * w->lanes + SKEW;
    w->z_slice = weight ? w->out.blocks * w->step * w->lanes + SKEW : 0;
    w->shared = (w->v_slice + w->z_slice) * WINOGRAD_SLICES;
}

static void plan_items(Winograd *w)
{
    const int64_t wide = WINOGRAD_PANEL * w->lanes, depth = DEPTH / w->lanes;
    w->panels = ceil_div(w->out.blocks, WINOGRAD_PANEL);
    if (w->kind == KERNEL_CONV_WEIGHT) {
        w->parts = ceil_div(w->in.blocks * w->lanes, ROWS);
        w->per_thread = WINOGRAD_SLICES * (ROWS * wide + SKEW);
        return;
    }
    w->parts = w->panels < 2 * w->threads ? w->threads : 1;
    w->depth = w->in.blocks < depth ? w->in.blocks : depth;
    w->tiles = w->depth < w->in.blocks ? w->step : TILES;
    w->per_thread = WINOGRAD_SLICES * (w->depth * w->lanes * wide + SKEW + w->tiles * wide + SKEW);
}

Winograd *winograd_new(const WinogradSpec *s)
{
    Winograd *w = mem_new(sizeof *w);
    const int64_t p = s->h + 2 * s->pad[0] - KERNEL + 1, q = s->w + 2 * s->pad[1] - KERNEL + 1;
    const bool data = s->kind == KERNEL_CONV_DATA;
    WinogradImage *x = data ? &w->out : &w->in, *y = data ? &w->in : &w->out;
    w->kind = s->kind;
    w->lanes = simd_table(DTYPE_F32)->conv_lanes;
    w->relu = s->relu;
    w->threads = s->threads;
    w->samples = s->n;
    image_init(x, s->c / w->lanes, s->h, s->w);
    image_init(y, s->o / w->lanes, p, q);
    w->in.down = w->out.down = ceil_div(w->out.h, TILE);
    w->in.across = w->out.across = ceil_div(w->out.w, TILE);
    w->in.tiles = w->out.tiles = s->n * w->in.down * w->in.across;
    for (int d = 0; d < 2; ++d) w->in.pad[d] = data ? KERNEL - 1 - s->pad[d] : s->pad[d];
    plan_passes(w);
    plan_items(w);
    return w;
}

void winograd_free(Winograd **winograd)
{
    mem_free(winograd);
}

size_t winograd_scratch_bytes(const Winograd *w)
{
    return (size_t)(w->shared + w->threads * w->per_thread) * sizeof(float);
}

/* Runs all items of a pass. Each thread gets consecutive items. */
static void pass_run(const Pass *p)
{
    const Winograd *w = p->w;
    float *scratch = p->v + w->shared;
#pragma omp parallel num_threads(w->threads) if (w->threads > 1)
    {
        int64_t thread = omp_get_thread_num(), threads = omp_get_num_threads();
        int64_t end = p->items * (thread + 1) / threads;
        for (int64_t i = p->items * thread / threads; i < end; ++i)
            p->item(p, i, scratch + thread * w->per_thread);
    }
}

/* ---- transforms of the input: an item is up to TILES tiles of one block ---- */

/* Returns the number of items of one block. */
static int64_t block_items(const Pass *p)
{
    return ceil_div(p->count, TILES);
}

static void input_item(const Pass *p, int64_t item, float *scratch)
{
    const Winograd *w = p->w;
    const bool z = item >= w->in.blocks * block_items(p);
    if (z) item -= w->in.blocks * block_items(p);
    const int64_t block = item / block_items(p), from = item % block_items(p) * TILES;
    const int64_t count = p->count - from < TILES ? p->count - from : TILES;
    const int64_t at = (block * w->step + from) * w->lanes;
    (void)scratch;
    if (z)
        simd_table(DTYPE_F32)->winograd_gradient(&w->out, block, p->first + from, count, p->y,
                                                 p->z + at, w->z_slice);
    else
        simd_table(DTYPE_F32)->winograd_input(&w->in, block, p->first + from, count, p->x,
                                              p->v + at, w->v_slice);
}

/* ---- products ---- */
/* Returns the first of out's blocks in a panel. */
static int64_t panel_first(const Winograd *w, int64_t panel)
{
    return w->out.blocks * panel / w->panels;
}

/* Transforms the kernels between in's blocks `from` to `to` - 1 and a panel of out's blocks into u,
 * whose rows are in's channels. */
static void transform_kernels(const Pass *p, int64_t panel, int64_t from, int64_t to, float *u,
                              int64_t slice)
{
    const Winograd *w = p->w;
    const bool data = w->kind == KERNEL_CONV_DATA;
    const int64_t first = panel_first(w, panel), end = panel_first(w, panel + 1);
    const int64_t lanes = w->lanes, square = lanes * lanes;
    const int64_t row = (end - first) * lanes, c_blocks = data ? w->out.blocks : w->in.blocks;
    for (int64_t k = from; k < to; ++k)
        for (int64_t o = first; o < end; ++o) {
            const int64_t at = data ? k * c_blocks + o : o * c_blocks + k;
            simd_table(DTYPE_F32)->winograd_kernel(
                p->weight + at * TAPS * square, data,
                u + (k - from) * lanes * row + (o - first) * lanes, slice, row);
        }
}

/* Computes y of a panel for `rows` tiles, from tile number t of the pass on. If all transformed
 * kernels of the panel fit u, they are computed only if first_tiles is set, and reused for later
 * tiles. Otherwise they are computed in each call, part by part. */
static void forward_tiles(const Pass *p, int64_t panel, int64_t t, int64_t rows, bool first_tiles,
                          float *u)
{
    const Winograd *w = p->w;
    const SimdTable *simd = simd_table(DTYPE_F32);
    const int64_t block = panel_first(w, panel);
    const int vectors = (int)(panel_first(w, panel + 1) - block);
    const int64_t u_slice = w->depth * w->lanes * vectors * w->lanes + SKEW;
    const int64_t m_slice = w->tiles * vectors * w->lanes + SKEW;
    float *m = u + WINOGRAD_SLICES * u_slice;
    for (int64_t k = 0; k < w->in.blocks; k += w->depth) {
        const int64_t to = k + w->depth < w->in.blocks ? k + w->depth : w->in.blocks;
        if (first_tiles || w->depth < w->in.blocks) transform_kernels(p, panel, k, to, u, u_slice);
        simd->winograd_forward(&(WinogradProduct){.a = p->v + (k * w->step + t) * w->lanes,
                                                  .b = u,
                                                  .out = m,
                                                  .a_slice = w->v_slice,
                                                  .b_slice = u_slice,
                                                  .out_slice = m_slice,
                                                  .rows = rows,
                                                  .k = (to - k) * w->lanes,
                                                  .a_group = w->step * w->lanes,
                                                  .out_vector = w->tiles * w->lanes,
                                                  .vectors = vectors,
                                                  .add = k > 0});
    }
    for (int v = 0; v < vectors; ++v)
        simd->winograd_output(&w->out, block + v, p->first + t, rows, m + v * w->tiles * w->lanes,
                              m_slice, p->y, p->bias, w->relu);
}

static void forward_item(const Pass *p, int64_t item, float *scratch)
{
    const Winograd *w = p->w;
    const int64_t panel = item / w->parts, part = item % w->parts;
    const int64_t groups = p->count / w->lanes;
    const int64_t begin = groups * part / w->parts * w->lanes;
    const int64_t end = groups * (part + 1) / w->parts * w->lanes;
    for (int64_t t = begin; t < end; t += w->tiles)
        forward_tiles(p, panel, t, end - t < w->tiles ? end - t : w->tiles, t == begin, scratch);
}

/* An item is a panel of out's blocks and a part of in's blocks. Writes dw in the first pass; later
 * passes add to dw. */
static void weight_item(const Pass *p, int64_t item, float *scratch)
{
    const Winograd *w = p->w;
    const int64_t lanes = w->lanes;
    const SimdTable *simd = simd_table(DTYPE_F32);
    const int64_t panel = item / w->parts, part = item % w->parts;
    const int64_t from = w->in.blocks * part / w->parts;
    const int64_t to = w->in.blocks * (part + 1) / w->parts;
    const int64_t block = panel_first(w, panel);
    const int vectors = (int)(panel_first(w, panel + 1) - block);
    const int64_t row = vectors * lanes, slice = ROWS * row + SKEW;
    simd->winograd_weight(&(WinogradProduct){.a = p->v + from * w->step * lanes,
                                             .b = p->z + block * w->step * lanes,
                                             .out = scratch,
                                             .a_slice = w->v_slice,
                                             .b_slice = w->z_slice,
                                             .out_slice = slice,
                                             .rows = (to - from) * lanes,
                                             .k = p->count,
                                             .a_group = lanes * lanes,
                                             .a_row = w->step * lanes,
                                             .b_vector = w->step * lanes,
                                             .vectors = vectors});
    for (int64_t c = from; c < to; ++c)
        for (int v = 0; v < vectors; ++v)
            simd->winograd_taps(scratch + (c - from) * lanes * row + v * lanes, slice, row,
                                (float *)(uintptr_t)p->weight +
                                    ((block + v) * w->in.blocks + c) * TAPS * lanes * lanes,
                                p->first > 0);
}

/* An item is one block. Computes its db. */
static void bias_item(const Pass *p, int64_t item, float *scratch)
{
    const WinogradImage *im = &p->w->out;
    const int lanes = p->w->lanes;
    (void)scratch;
    conv_bias_gradient(p->y, p->w->samples, im->blocks, im->h * im->w, lanes, item,
                       (float *)(uintptr_t)p->bias + item * lanes);
}

void winograd_run(const Winograd *w, void *const data[ROLES], void *scratch)
{
    const bool weight = w->kind == KERNEL_CONV_WEIGHT, from_dy = w->kind == KERNEL_CONV_DATA;
    Pass p = {.w = w,
              .x = data[from_dy ? ROLE_Y : ROLE_X],
              .y = data[from_dy ? ROLE_X : ROLE_Y],
              .weight = data[ROLE_W],
              .bias = from_dy ? NULL : data[ROLE_B],
              .v = scratch,
              .z = (float *)scratch + WINOGRAD_SLICES * w->v_slice};
    for (; p.first < w->in.tiles; p.first += w->step) {
        const int64_t left = w->in.tiles - p.first;
        p.count = round_up(left < w->step ? left : w->step, w->lanes);
        p.item = input_item;
        p.items = (w->in.blocks + (weight ? w->out.blocks : 0)) * block_items(&p);
        pass_run(&p);
        p.item = weight ? weight_item : forward_item;
        p.items = w->panels * w->parts;
        pass_run(&p);
    }
    if (!weight || !p.bias) return;
    p.item = bias_item;
    p.items = w->out.blocks;
    pass_run(&p);
}
