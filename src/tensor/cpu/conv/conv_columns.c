/* Convolutions as matrix products (conv_columns.h). A block is a range of consecutive pixels of y.
 * Two matrices belong to a block; both have a row for each pixel. A row of `columns` has the
 * elements of x that the kernel reads for the pixel, in the order of the weight, with zeros for the
 * padding. A row of `pixels` has the pixel's channels of y.
 *
 *   forward   x -> columns;           columns W^T -> pixels;     pixels -> y
 *   data      dy -> pixels;           pixels W -> columns;       columns are added to dx
 *   weight    x -> columns, dy -> pixels;   pixels^T columns is added to dw
 *
 * The work is divided into items, which threads compute. In forward, an item is one block. In the
 * other directions, an item is all blocks of one or several images, in order. For dw, an item is
 * called a slice, and the sums of the slices are joined by a binary tree. The division into items
 * depends on the shape alone. */
#include "conv_columns.h"
#include "conv_weight.h"
#include "../simd/simd.h"
#include "../sizes.h"
#include "../work.h"

#include <omp.h>
#include <string.h>

enum {
    /* maximum number of floats in a block's columns, so that they fit in a core's L2 cache; a block
     * of PIXELS_MIN pixels may have more */
    COLUMNS = 96 << 10,
    /* minimum number of pixels of a block; small blocks are slow, because the product of each block
     * copies the weight */
    PIXELS_MIN = 48,
    /* maximum number of pixels of a block */
    PIXELS_MAX = 192,
    /* number of rows of a product that AVX2's registers hold at once */
    TILE_ROWS = DENSE_TILE_ROWS(8),
    /* maximum number of slices, and so of threads that compute dw */
    SLICES = 16,
    /* parts of the scratch begin at multiples of this number of floats */
    ALIGN = 16,
};

struct ConvColumnsRun {
    ConvColumnsSpec spec;
    /* pixels of one image of y */
    int64_t pixels;
    /* pixels of all images of y */
    int64_t all;
    /* blocks of input channels in a group */
    int64_t in_blocks;
    /* elements of x that the kernel reads for one pixel */
    int64_t depth;
    /* output channels in a group */
    int64_t out;
    /* maximum number of pixels of a block */
    int64_t rows;
    /* pixels of an item */
    int64_t each;
    /* number of items */
    int64_t items;
    /* floats of dw; 0 if it is not computed */
    int64_t dw_floats;
    /* floats of a thread's columns */
    int64_t columns;
    /* floats of a thread's pixels */
    int64_t values;
    /* floats of a thread's sum of dw over one block */
    int64_t sum;
};

/* The tensors of one call, or their gradients, as in kernel_run. */
typedef struct ColumnsTask {
    const ConvColumnsRun *r;
    float *x, *weight, *y;
    const float *bias;
    /* dw of all slices except the first, in the scratch */
    float *others;
} ColumnsTask;

/* A block: pixels `first` to first + count - 1 of all images of y, and the channels of group number
 * `group`. */
typedef struct ColumnsBlock {
    int64_t first, count, group;
} ColumnsBlock;

static int64_t clamp(int64_t value, int64_t least, int64_t most)
{
    return value < least ? least : value > most ? most : value;
}

ConvColumnsRun *conv_columns_new(const ConvColumnsSpec *spec)
{
    ConvColumnsRun *r = mem_new(sizeof *r);
    const ConvColumnsSpec *s = &r->spec;
    r->spec = *spec;
    r->pixels = s->p * s->q;
    r->all = s->n * r->pixels;
    r->in_blocks = ceil_div(s->c / s->groups, s->x_block);
    r->depth = r->in_blocks * s->x_block * s->kernel[0] * s->kernel[1];
    r->out = s->o / s->groups;
    r->rows = clamp(COLUMNS / r->depth, PIXELS_MIN, PIXELS_MAX) / TILE_ROWS * TILE_ROWS;
    if (s->kind == KERNEL_CONV_FORWARD) {
        r->each = r->rows;
    } else if (s->kind == KERNEL_CONV_DATA) {
        r->each = ceil_div(r->rows, r->pixels) * r->pixels;
    } else {
        r->each = ceil_div(s->n, clamp(s->n, 1, SLICES)) * r->pixels;
        r->dw_floats = s->o * r->depth;
        r->sum = round_up(r->out * r->depth, ALIGN);
    }
    r->items = ceil_div(r->all, r->each);
    r->columns = round_up(r->rows * r->depth, ALIGN);
    r->values = round_up(r->rows * r->out, ALIGN);
    return r;
}

void conv_columns_free(ConvColumnsRun **run)
{
    mem_free(run);
}

static int64_t thread_floats(const ConvColumnsRun *r)
{
    return r->columns + r->values + r->sum + DENSE_SCRATCH;
}

size_t conv_columns_scratch_bytes(const ConvColumnsRun *r)
{
    const int64_t others = r->dw_floats ? (r->items - 1) * r->dw_floats : 0;
    return (size_t)(r->spec.threads * thread_floats(r) + others) * sizeof(float);
}

/* ---- x and columns ---- */

/* Copies to `columns` the elements that one row of the kernel reads if it begins at column `x` of a
 * row of an image. row: the first element of the image's row; NULL: the row is padding. add: adds
 * `columns` to these elements instead. */
static void row_move(const ConvColumnsSpec *s, float *row, int64_t x, float *columns, bool add)
{
    const int64_t block = s->x_block, taps = s->kernel[1];
    const int64_t begin = row ? clamp(-x, 0, taps) : taps;
    const int64_t end = row ? clamp(s->w - x, begin, taps) : taps;
    float *from = row ? row + (x + begin) * block : NULL, *to = columns + begin * block;
    const int64_t count = (end - begin) * block;
    if (add) {
        for (int64_t i = 0; i < count; ++i) from[i] += to[i];
        return;
    }
    for (int64_t i = 0; i < begin * block; ++i) columns[i] = 0;
    for (int64_t i = 0; i < count; ++i) to[i] = from[i];
    for (int64_t i = end * block; i < taps * block; ++i) columns[i] = 0;
}

/* Copies x to a block's columns. add: adds the columns to dx instead. */
static void columns_move(const ColumnsTask *t, const ColumnsBlock *b, float *columns, bool add)
{
    const ConvColumnsRun *r = t->r;
    const ConvColumnsSpec *s = &r->spec;
    const int64_t plane = s->h * s->w * s->x_block, x_planes = ceil_div(s->c, s->x_block);
    for (int64_t i = b->first; i < b->first + b->count; ++i) {
        const int64_t n = i / r->pixels, p = i % r->pixels / s->q, q = i % s->q;
        float *image = t->x + (n * x_planes + b->group * r->in_blocks) * plane;
        const int64_t top = p * s->stride[0] - s->pad[0], left = q * s->stride[1] - s->pad[1];
        for (int64_t block = 0; block < r->in_blocks; ++block, image += plane)
            for (int64_t down = top; down < top + s->kernel[0]; ++down) {
                const bool inside = down >= 0 && down < s->h;
                row_move(s, inside ? image + down * s->w * s->x_block : NULL, left, columns, add);
                columns += s->kernel[1] * s->x_block;
            }
    }
}

/* ---- y and pixels ---- */

/* Copies a block of y to values[pixel][channel of the group]. to_y: copies the values to y
 * instead. */
static void pixels_move(const ColumnsTask *t, const ColumnsBlock *b, float *values, bool to_y)
{
    const ConvColumnsRun *r = t->r;
    const int64_t lanes = r->spec.y_block, y_planes = ceil_div(r->spec.o, lanes);
    const int64_t blocks = ceil_div(r->out, lanes);
    for (int64_t i = b->first; i < b->first + b->count; ++i, values += r->out) {
        const int64_t plane = i / r->pixels * y_planes + b->group * blocks;
        for (int64_t k = 0; k < blocks; ++k) {
            float *y = t->y + ((plane + k) * r->pixels + i % r->pixels) * lanes;
            const int64_t some = clamp(r->out - k * lanes, 0, lanes);
            if (!to_y) {
                for (int64_t l = 0; l < some; ++l) values[k * lanes + l] = y[l];
                continue;
            }
            for (int64_t l = 0; l < some; ++l) y[l] = values[k * lanes + l];
            for (int64_t l = some; l < lanes; ++l) y[l] = 0;
        }
    }
}

/* ---- the products ---- */

/* Computes a product whose out is contiguous. */
static void multiply(DenseProduct *p, float *scratch)
{
    const DensePart whole = {.row_end = p->m, .column_end = p->n};
    p->out_row = p->n;
    simd_table(DTYPE_F32)->dense_product(p, &whole, scratch);
}

/* Computes a block. dw: the weight's gradient of the item's slice. is_first: the block is the first
 * of its item, so its product is written to dw; else it is added. */
static void block_run(const ColumnsTask *t, const ColumnsBlock *b, float *dw, bool is_first,
                      float *scratch)
{
    const ConvColumnsRun *r = t->r;
    const ConvColumnsSpec *s = &r->spec;
    float *columns = scratch, *values = columns + r->columns, *sum = values + r->values;
    float *const panels = sum + r->sum;
    const float *weight = t->weight + b->group * r->out * r->depth;
    DenseProduct p = {.m = b->count, .a_col = 1, .b_col = 1};
    if (s->kind != KERNEL_CONV_DATA) columns_move(t, b, columns, false);
    if (s->kind != KERNEL_CONV_FORWARD) pixels_move(t, b, values, false);
    if (s->kind == KERNEL_CONV_FORWARD) {
        p.out = values, p.n = r->out, p.k = r->depth;
        p.a = columns, p.a_row = r->depth;
        p.b = weight, p.b_row = 1, p.b_col = r->depth;
        p.bias = t->bias ? t->bias + b->group * r->out : NULL;
        p.relu = s->relu;
        multiply(&p, panels);
        pixels_move(t, b, values, true);
    } else if (s->kind == KERNEL_CONV_DATA) {
        p.out = columns, p.n = r->depth, p.k = r->out;
        p.a = values, p.a_row = r->out;
        p.b = weight, p.b_row = r->depth;
        multiply(&p, panels);
        columns_move(t, b, columns, true);
    } else {
        float *group_dw = dw + b->group * r->out * r->depth;
        p.out = is_first ? group_dw : sum, p.m = r->out, p.n = r->depth, p.k = b->count;
        p.a = values, p.a_row = 1, p.a_col = r->out;
        p.b = columns, p.b_row = r->depth;
        multiply(&p, panels);
        if (!is_first) simd_table(DTYPE_F32)->add_into(group_dw, sum, r->out * r->depth);
    }
}

static void item_run(const ColumnsTask *t, int64_t item, float *scratch)
{
    const ConvColumnsRun *r = t->r;
    const ConvColumnsSpec *s = &r->spec;
    const int64_t begin = item * r->each, end = clamp(begin + r->each, 0, r->all);
    float *dw = item ? t->others + (item - 1) * r->dw_floats : t->weight;
    if (s->kind == KERNEL_CONV_DATA) {
        const int64_t image = ceil_div(s->c, s->x_block) * s->x_block * s->h * s->w;
        memset(t->x + begin / r->pixels * image, 0,
               (size_t)((end - begin) / r->pixels * image) * sizeof *t->x);
    }
    for (ColumnsBlock b = {.first = begin}; b.first < end; b.first += b.count) {
        b.count = clamp(end - b.first, 0, r->rows);
        for (b.group = 0; b.group < s->groups; ++b.group)
            block_run(t, &b, dw, b.first == begin, scratch);
    }
}

void conv_columns_run(const ConvColumnsRun *r, void *const data[ROLES], void *scratch)
{
    const ConvColumnsSpec *s = &r->spec;
    const bool forward = s->kind == KERNEL_CONV_FORWARD, weight = s->kind == KERNEL_CONV_WEIGHT;
    ColumnsTask t = {.r = r, .x = data[ROLE_X], .weight = data[ROLE_W], .y = data[ROLE_Y]};
    t.others = (float *)scratch + s->threads * thread_floats(r);
    if (forward) t.bias = data[ROLE_B];
#pragma omp parallel num_threads(s->threads) if (s->threads > 1)
    {
        const int64_t thread = omp_get_thread_num(), threads = omp_get_num_threads();
        float *thread_scratch = (float *)scratch + thread * thread_floats(r);
        for (int64_t i = thread; i < r->items; i += threads) item_run(&t, i, thread_scratch);
    }
    if (weight) work_sum_tree(t.weight, t.others, r->items - 1, r->dw_floats);
    if (weight && data[ROLE_B])
        conv_bias_gradients(t.y, s->n, s->o, r->pixels, s->y_block, data[ROLE_B]);
}
