/* Expresses each direction of a dense layer as a matrix product, and divides the product's result
 * into parts for threads (dense_product.h). The bits of weft's kernels do not depend on the parts,
 * so there is one part for each thread. The bits of oneDNN's product depend on the parts, so the
 * parts depend on the shape alone; one thread computes a part. */
#include "dense_product.h"
#include "../../sliced.h"
#include "../simd/simd.h"
#include "../sizes.h"

#include <omp.h>

/* Without slices, weft's AVX2 kernel (simd/dense.c) computes products of OWN_ROWS to
 * OWN_ROWS_END - 1 rows. With fewer rows, half of its registers would be unused; with more rows, a
 * whole training step is faster with oneDNN (a step of gpt by a seventh, on two threads). */
enum { OWN_ROWS = 16, OWN_ROWS_END = 256 };
/* Division of a product that oneDNN computes. PARTS: maximum number of parts. PART_UNIT: parts
 * begin at rows and columns that are multiples of this number. PART_LEAST: minimum number of rows
 * and of columns of a part, if there are several in that direction. In a layer from 384 to 1536
 * features with 2048 rows, 16 parts take 2 % more time than one. */
enum { PARTS = 16, PART_UNIT = 16, PART_LEAST = 64 };
/* With slices, oneDNN is used with the vectors of AVX-512 (so never with CPU_PORTABLE) if a layer
 * has at least these sizes, but not in forward if the sums of forward are cut. ONEDNN_LEAST: size
 * of the dimension, inputs or outputs, that is not divided among ranks; with fewer, oneDNN has
 * kernels that add in another order. ONEDNN_ROWS: rows. ONEDNN_TERMS: terms of a slice. With fewer
 * rows or terms, weft's kernel, which joins slices in registers, is faster (a step of mlp with 64
 * rows by 5 %, of lenet with 16 terms by 4 %). BLOCK_ROWS, BLOCK_COLUMNS: size of a block of the
 * result, whose partial sums fit a core's cache. */
enum {
    ONEDNN_LEAST = 16,
    ONEDNN_ROWS = 128,
    ONEDNN_TERMS = 32,
    BLOCK_ROWS = 128,
    BLOCK_COLUMNS = 768
};

struct DenseRun {
    DenseSpec spec;
    /* true: oneDNN computes the product; false: weft's kernels do */
    bool onednn;
    /* DenseProduct's fields with the same names. slices is 0 if the sums of this direction are not
     * cut. range is owned. */
    int slices, ranges;
    DenseRange *range;
    /* number of parts of the result along its rows, and along its columns */
    int64_t row_parts, column_parts;
};

/* Returns a product with only the sizes set: rows (m) and columns (n) of the result, terms of each
 * sum (k). */
static DenseProduct shape_of_product(const DenseSpec *s)
{
    switch (s->kind) {
    case KERNEL_DENSE_FORWARD:
        return (DenseProduct){.m = s->rows, .n = s->out, .k = s->in};
    case KERNEL_DENSE_DATA:
        return (DenseProduct){.m = s->rows, .n = s->in, .k = s->out};
    default:
        return (DenseProduct){.m = s->out, .n = s->in, .k = s->rows};
    }
}

/* Returns the first element of part number `part` if `size` elements are divided into `parts` parts
 * of complete units. There are `units` units of `unit` elements each; the last unit may be
 * shorter. */
static int64_t part_begin(int64_t units, int64_t part, int64_t parts, int64_t unit, int64_t size)
{
    int64_t begin = units * part / parts * unit;
    return begin < size ? begin : size;
}

/* Returns the number of rows that weft's kernel computes at once. */
static int64_t own_rows(void)
{
    return DENSE_TILE_ROWS(own_block_channels());
}

/* Chooses the division that gives the busiest thread the least work. The work is the number of the
 * thread's multiply-adds plus DENSE_COLUMNS times the number of elements of a and b that the thread
 * copies. */
static void divide(DenseRun *d, const DenseProduct *p)
{
    double best = 0;
    const int64_t threads = d->spec.threads, unit = own_rows();
    for (int64_t across = 1; across <= threads; ++across) {
        if (threads % across) continue;
        const int64_t down = threads / across;
        double rows = (double)ceil_div(ceil_div(p->m, unit), down) * (double)unit;
        double columns = (double)ceil_div(ceil_div(p->n, DENSE_COLUMNS), across) * DENSE_COLUMNS;
        double cost = rows * columns + DENSE_COLUMNS * (rows + columns);
        if (across > 1 && cost >= best) continue;
        best = cost;
        d->column_parts = across;
        d->row_parts = down;
    }
}

/* Divides the result into as many parts as possible, up to PARTS. If there are several ways, takes
 * the one that copies the fewest elements: each part copies its rows of a and its columns of b. */
static void divide_by_shape(DenseRun *d, const DenseProduct *p)
{
    int64_t best = 0;
    for (int64_t parts = PARTS; best == 0; parts /= 2)
        for (int64_t across = 1; across <= parts; across *= 2) {
            const int64_t down = parts / across, cost = across * p->m + down * p->n;
            if ((down > 1 && p->m < PART_LEAST * down) ||
                (across > 1 && p->n < PART_LEAST * across) || (best && cost >= best))
                continue;
            best = cost;
            d->column_parts = across;
            d->row_parts = down;
        }
}

bool dense_product_own(int64_t rows)
{
    return cpu_portable() || rows <= DENSE_FEW ||
           (own_block_channels() == 8 && rows >= OWN_ROWS && rows < OWN_ROWS_END);
}

/* ---- slices ---- */

static bool is_sliced(const DenseRun *d)
{
    return d->spec.slices.total > 0;
}

/* Returns whether the sums of this direction are cut into slices. */
static bool cuts_sums(const DenseSpec *s)
{
    return s->slices.total > 0 &&
           s->kind == (s->slices_inputs ? KERNEL_DENSE_FORWARD : KERNEL_DENSE_DATA);
}

DenseRange *dense_ranges(const SumSlices *s, int64_t k)
{
    DenseRange *range = mem_new((size_t)(s->count * s->parts) * sizeof *range);
    for (int i = 0; i < s->count * s->parts; ++i) {
        const SumRange terms = sum_range(s, k, i / s->parts, i % s->parts);
        range[i] = (DenseRange){terms.first, terms.end};
    }
    return range;
}

/* Returns whether oneDNN computes this product of a layer with slices. The choice depends on the
 * size of the layer's smallest slice, not on the number of slices of this rank, so it is the same
 * on any number of ranks. */
static bool onednn_is_faster(const DenseSpec *s)
{
    const int64_t divided = s->slices_inputs ? s->in : s->out,
                  undivided = s->slices_inputs ? s->out : s->in;
    const int64_t least = sum_least_terms(&s->slices, divided);
    const bool transposes_blocks = s->kind == KERNEL_DENSE_FORWARD && cuts_sums(s);
    return own_block_channels() == 16 && !transposes_blocks && s->rows >= ONEDNN_ROWS &&
           undivided >= ONEDNN_LEAST && least >= ONEDNN_TERMS;
}

DenseRun *dense_product_new(const DenseSpec *spec)
{
    DenseRun *d = mem_new(sizeof *d);
    d->spec = *spec;
    d->onednn = is_sliced(d) ? onednn_is_faster(spec) : !dense_product_own(spec->rows);
    const DenseProduct shape = shape_of_product(spec);
    if (cuts_sums(spec)) {
        d->slices = spec->slices.count;
        d->ranges = spec->slices.parts;
        d->range = dense_ranges(&spec->slices, shape.k);
    }
    if (d->onednn) {
        divide_by_shape(d, &shape);
        dnnl_product_prepare();
    } else {
        divide(d, &shape);
    }
    return d;
}

void dense_product_free(DenseRun **run)
{
    if (*run) mem_free(&(*run)->range);
    mem_free(run);
}

/* Returns the floats of scratch of each thread. */
static int64_t scratch_floats(const DenseRun *d)
{
    const int64_t k = shape_of_product(&d->spec).k;
    if (d->onednn) return d->slices > 1 ? sum_levels(d->slices) * BLOCK_ROWS * BLOCK_COLUMNS : 0;
    if (d->slices > 0)
        return DENSE_ROWS_ROOM + sum_levels(d->slices) * DENSE_LEVEL + k * dense_slice_columns(k);
    return d->spec.rows > DENSE_FEW || is_sliced(d) ? DENSE_SCRATCH : 0;
}

size_t dense_product_scratch_bytes(const DenseRun *d)
{
    return (size_t)d->spec.threads * (size_t)scratch_floats(d) * sizeof(float);
}

static DenseProduct product_of(const DenseSpec *s, void *const data[ROLES])
{
    DenseProduct p = shape_of_product(s);
    p.out_row = p.n;
    switch (s->kind) {
    case KERNEL_DENSE_FORWARD:
        p.out = data[ROLE_Y];
        p.a = data[ROLE_X];
        p.b = data[ROLE_W];
        p.bias = data[ROLE_B];
        p.relu = s->relu;
        p.a_row = p.b_col = s->in;
        p.a_col = p.b_row = 1;
        break;
    case KERNEL_DENSE_DATA:
        p.out = data[ROLE_X];
        p.a = data[ROLE_Y];
        p.b = data[ROLE_W];
        p.a_row = s->out;
        p.b_row = s->in;
        p.a_col = p.b_col = 1;
        break;
    default:
        p.out = data[ROLE_W];
        p.a = data[ROLE_Y];
        p.b = data[ROLE_X];
        p.a_col = s->out;
        p.b_row = s->in;
        p.a_row = p.b_col = 1;
    }
    return p;
}

/* Computes a part of the result from a range of terms, DENSE_DEPTH terms at a time. adds: the sum
 * is added to p->out, which has the sum of earlier terms. */
static void onednn_range(const DenseProduct *p, const DensePart *part, DenseRange range, bool adds)
{
    for (; range.first < range.end; range.first += DENSE_DEPTH, adds = true) {
        DenseProduct some = *p;
        some.a += range.first * p->a_col;
        some.b += range.first * p->b_row;
        some.k = least(range.end - range.first, DENSE_DEPTH);
        dnnl_product(&some, part, adds);
    }
}

/* Computes a block of a product whose sums are cut into slices. Level l of `levels` has a sum of
 * 2^l slices that waits to be joined. If the last n bits of i are 1, the sum of slice i is joined
 * with the sums of levels 0 to n - 1. */
static void onednn_slices(const DenseProduct *p, const DensePart *block, float *levels)
{
    const SimdTable *simd = simd_table(DTYPE_F32);
    const int64_t columns = block->column_end - block->column;
    for (int i = 0; i < p->slices; ++i) {
        int joins = 0;
        while (i >> joins & 1) ++joins;
        DenseProduct slice = *p;
        if (i < p->slices - 1) {
            slice.out_row = BLOCK_COLUMNS;
            slice.out = levels + joins * BLOCK_ROWS * BLOCK_COLUMNS - block->row * BLOCK_COLUMNS -
                        block->column;
        }
        for (int j = 0; j < p->ranges; ++j)
            onednn_range(&slice, block, p->range[i * p->ranges + j], j > 0);
        for (int64_t r = block->row; r < block->row_end && joins > 0; ++r) {
            float *out = slice.out + r * slice.out_row + block->column;
            for (int l = 0; l < joins; ++l)
                simd->add_floats(
                    out, out, levels + (l * BLOCK_ROWS + r - block->row) * BLOCK_COLUMNS, columns);
        }
    }
}

/* Computes a part of a product whose sums are cut into slices, block by block. */
static void onednn_blocks(const DenseProduct *p, const DensePart *part, float *levels)
{
    DensePart block = *part;
    for (; block.row < part->row_end; block.row = block.row_end) {
        block.row_end = least(block.row + BLOCK_ROWS, part->row_end);
        for (block.column = part->column; block.column < part->column_end;
             block.column = block.column_end) {
            block.column_end = least(block.column + BLOCK_COLUMNS, part->column_end);
            onednn_slices(p, &block, levels);
        }
    }
}

/* Computes a part by oneDNN, then adds the bias and applies relu. */
static void onednn_part(const DenseRun *d, const DenseProduct *p, const DensePart *part,
                        float *scratch)
{
    const SimdTable *simd = simd_table(DTYPE_F32);
    const int64_t columns = part->column_end - part->column;
    if (p->slices > 0)
        onednn_blocks(p, part, scratch);
    else if (is_sliced(d))
        onednn_range(p, part, (DenseRange){0, p->k}, false);
    else
        dnnl_product(p, part, false);
    for (int64_t i = part->row; i < part->row_end && (p->bias || p->relu); ++i) {
        float *out = p->out + i * p->out_row + part->column;
        if (p->bias) simd->add_floats(out, out, p->bias + part->column, columns);
        if (p->relu) simd->act(ACT_RELU, 0.0f, out, out, columns);
    }
}

static void part_run(const DenseRun *d, const DenseProduct *p, int64_t i, float *scratch)
{
    const SimdTable *simd = simd_table(DTYPE_F32);
    const int64_t row_unit = d->onednn ? PART_UNIT : own_rows();
    const int64_t column_unit = d->onednn ? PART_UNIT : DENSE_COLUMNS;
    const int64_t rows = ceil_div(p->m, row_unit), columns = ceil_div(p->n, column_unit);
    const int64_t y = i / d->column_parts, x = i % d->column_parts;
    const DensePart part = {.row = part_begin(rows, y, d->row_parts, row_unit, p->m),
                            .row_end = part_begin(rows, y + 1, d->row_parts, row_unit, p->m),
                            .column = part_begin(columns, x, d->column_parts, column_unit, p->n),
                            .column_end =
                                part_begin(columns, x + 1, d->column_parts, column_unit, p->n)};
    if (part.row == part.row_end || part.column == part.column_end) return;
    if (d->onednn)
        onednn_part(d, p, &part, scratch);
    else if (d->spec.rows > DENSE_FEW || is_sliced(d))
        simd->dense_product(p, &part, scratch);
    else
        simd->dense_few(p, &part);
}

/* Computes part i of the bias's gradient, which is the sums of dy's columns. The columns are
 * divided into row_parts parts, as the rows of dw are. */
static void bias_part(const DenseRun *d, const float *dy, int64_t i, float *db)
{
    const int64_t units = ceil_div(d->spec.out, PART_UNIT), parts = d->row_parts;
    simd_table(DTYPE_F32)->dense_columns(
        dy, d->spec.rows, d->spec.out, part_begin(units, i, parts, PART_UNIT, d->spec.out),
        part_begin(units, i + 1, parts, PART_UNIT, d->spec.out), db);
}

void dense_product_run(const DenseRun *d, void *const data[ROLES], void *scratch)
{
    const DenseSpec *s = &d->spec;
    DenseProduct p = product_of(s, data);
    p.slices = d->slices;
    p.ranges = d->ranges;
    p.range = d->range;
    p.bias_last = is_sliced(d);
    const bool bias = s->kind == KERNEL_DENSE_WEIGHT && data[ROLE_B];
#pragma omp parallel num_threads(s->threads) if (s->threads > 1)
    {
        const int64_t thread = omp_get_thread_num(), threads = omp_get_num_threads();
        float *thread_scratch = (float *)scratch + thread * scratch_floats(d);
        const int64_t parts = d->row_parts * d->column_parts;
        for (int64_t i = parts * thread / threads; i < parts * (thread + 1) / threads; ++i)
            part_run(d, &p, i, thread_scratch);
        const int64_t columns = bias ? d->row_parts : 0;
        for (int64_t i = columns * thread / threads; i < columns * (thread + 1) / threads; ++i)
            bias_part(d, data[ROLE_Y], i, data[ROLE_B]);
    }
}
