/* Slices of dense layers (dense_slices.h). The columns of the divided tensor that belong to a slice
 * are in one or several ranges (queries, keys, values). They are copied next to each other before a
 * product reads them, and copied back to their ranges after a product has written them. A row of
 * the copy has `padded` columns, for alignment; the columns after the slice's own columns are 0.
 *
 *   divided inputs     y = sum of x_s w_s^T     dx_s = dy w_s            dw_s = dy^T x_s
 *   divided outputs    y_s = x w_s^T + b_s      dx = sum of dy_s w_s     dw_s = dy_s^T x
 */
#include "dense_slices.h"
#include "../../sliced.h"
#include "../libraries/matmul.h"
#include "../token_sums.h"

/* WIDTHS: largest number of different widths of slices. It is 2, because all parts of the sum have
 * the same number of units, and a slice has at most one unit of each part more than another slice.
 * COLUMNS: the columns of a slice are padded to a multiple of this number. */
enum { WIDTHS = 2, COLUMNS = 8 };

/* The sizes and products of all slices that have the same width. */
typedef struct Slice {
    /* number of divided inputs or outputs of the slice */
    int64_t width;
    /* width, rounded up to a multiple of COLUMNS */
    int64_t padded;
    /* products for y, dx and dw; owned */
    Matmul forward, data, weight;
} Slice;

typedef struct Layer {
    /* numbers of rows of x, of inputs and of outputs, over all slices of this rank */
    int64_t rows, in, out;
    /* number of slices on this rank */
    int slices;
    /* number of ranges of columns of each slice */
    int ranges;
    /* true: the inputs are divided; false: the outputs */
    bool inputs;
    /* true: other ranks have slices, too; then the undivided tensor is fp32: y, which an exchange
     * reads, or x, which an exchange writes */
    bool wide;
    /* type of the products' factors */
    DType type;
    /* one entry for each width of this rank's slices, [kinds] */
    Slice kind[WIDTHS];
    int kinds;
    /* largest of Slice.padded */
    int64_t columns;
} Layer;

/* Returns the size of the dimension that is not divided. */
static int64_t undivided(const Layer *l)
{
    return l->inputs ? l->out : l->in;
}

static int64_t slice_width(const Op *op, int slice)
{
    const Layer *l = op->impl;
    const int64_t divided = l->inputs ? l->in : l->out;
    int64_t width = 0;
    for (int i = 0; i < l->ranges; ++i) {
        const SumRange range = sum_range(&op->spec.slices, divided, slice, i);
        width += range.end - range.first;
    }
    return width;
}

static const Slice *slice_kind(const Op *op, int slice)
{
    const Layer *l = op->impl;
    const int64_t width = slice_width(op, slice);
    const Slice *kind = l->kind;
    while (kind->width != width) ++kind;
    return kind;
}

/* ---- planning ---- */

/* Plans the products of slices of s->padded inputs or outputs. */
static Status plan_products(const Op *op, Slice *s)
{
    const Layer *l = op->impl;
    CudaState *state = cuda_state(op);
    const int in = (int)(l->inputs ? s->padded : l->in), rows = (int)l->rows;
    const int out = (int)(l->inputs ? l->out : s->padded);
    MatmulSpec product = {.name = "a slice of dense",
                          .transpose_a = true,
                          .m = out,
                          .n = rows,
                          .k = in,
                          .lda = in,
                          .ldb = in,
                          .ldd = out,
                          .in = l->type,
                          .out = l->inputs ? DTYPE_F32 : l->type,
                          .epilogue =
                              op->spec.w_count > 1 && !l->inputs ? MATMUL_BIAS : MATMUL_PLAIN};
    TRY(matmul_plan(&s->forward, state, &product));
    if (op->spec.need_dx[0]) {
        product = (MatmulSpec){.name = "a slice of dense's inputs",
                               .m = in,
                               .n = rows,
                               .k = out,
                               .lda = in,
                               .ldb = out,
                               .ldd = in,
                               .in = l->type,
                               .out = l->inputs ? l->type : DTYPE_F32};
        TRY(matmul_plan(&s->data, state, &product));
    }
    if (op->spec.frozen) return OK;
    product = (MatmulSpec){.name = "a slice of dense's weights",
                           .transpose_b = true,
                           .m = in,
                           .n = out,
                           .k = rows,
                           .lda = in,
                           .ldb = out,
                           .ldd = in,
                           .in = l->type,
                           .out = DTYPE_F32};
    return matmul_plan(&s->weight, state, &product);
}

/* Plans the products for each width that this rank's slices have. */
static Status plan_kinds(const Op *op)
{
    Layer *l = op->impl;
    for (int i = 0; i < l->slices; ++i) {
        const int64_t width = slice_width(op, i);
        int k = 0;
        while (k < l->kinds && l->kind[k].width != width) ++k;
        if (k < l->kinds) continue;
        if (k == WIDTHS) die("a dense layer has slices of more than %d sizes", WIDTHS);
        Slice *s = &l->kind[l->kinds++];
        s->width = width;
        s->padded = (width + COLUMNS - 1) / COLUMNS * COLUMNS;
        if (s->padded > l->columns) l->columns = s->padded;
        TRY(plan_products(op, s));
    }
    return OK;
}

/* Addresses of the arrays in the workspace. */
typedef struct Memory {
    /* copy of the undivided tensor in the products' type, if the tensor has another type */
    void *other;
    /* columns of the divided tensor that belong to a slice, next to each other */
    void *columns;
    /* forward and backward_data: sums of the tree's levels (sum_slices) */
    float *sums;
    /* backward_weight and refresh, in the memory of `sums`: a slice of dw or of w */
    float *dw;
    /* in the memory of `sums`, too: a slice of the bias or of its gradient */
    float *db;
    /* in the memory of `sums`, too: scratch of the sum for the bias gradient */
    float *partial;
    /* bytes of the workspace */
    size_t bytes;
} Memory;

/* Returns the addresses of the arrays in the workspace, and its size. workspace: NULL if only the
 * size is needed. */
static Memory memory_of(const Op *op, void *workspace)
{
    const Layer *l = op->impl;
    const size_t size = dtype_bytes(l->type), rows = (size_t)l->rows;
    const size_t n = (size_t)undivided(l), most = (size_t)l->columns;
    const size_t dw = cuda_aligned(most * n * sizeof(float)),
                 db = cuda_aligned(most * sizeof(float));
    const size_t levels = (size_t)(1 + sum_levels(l->slices)) * rows * n * sizeof(float);
    const size_t partial = CUDA_SUM_BLOCKS * (l->inputs ? n : most) * sizeof(float);
    char *at = workspace;
    Memory m = {.other = at};
    at += l->wide && l->type != DTYPE_F32 ? cuda_aligned(rows * n * size) : 0;
    m.columns = at;
    at += cuda_aligned(rows * most * size);
    m.sums = m.dw = (float *)(void *)at;
    m.db = (float *)(void *)(at + dw);
    m.partial = (float *)(void *)(at + dw + db);
    m.bytes = (size_t)(at - (char *)workspace) +
              (levels > dw + db + partial ? levels : dw + db + partial);
    return m;
}

/* weight_bytes and bias_bytes return the bytes of a slice's weight and of its bias in the cache. */
static size_t weight_bytes(const Op *op, const Slice *s)
{
    const Layer *l = op->impl;
    return cuda_aligned((size_t)(s->padded * undivided(l)) * dtype_bytes(l->type));
}

static size_t bias_bytes(const Op *op, const Slice *s)
{
    const Layer *l = op->impl;
    return op->spec.w_count > 1 && !l->inputs
               ? cuda_aligned((size_t)s->padded * dtype_bytes(l->type))
               : 0;
}

static const OpTable slices_table;

Status cuda_dense_slices_plan(Op *op, Desc preferred[SPEC_INPUTS])
{
    OpSpec *s = &op->spec;
    const SumSlices *cut = &s->slices;
    Layer *l = mem_new(sizeof *l);
    op->table = &slices_table;
    op->impl = l;
    *l = (Layer){.in = s->w[0].dim[1],
                 .out = s->w[0].dim[0],
                 .slices = cut->count,
                 .ranges = cut->parts,
                 .inputs = s->slices_inputs,
                 .wide = cut->count < cut->total,
                 .type = op->backend->options.precision};
    l->rows = shape_count(s->y.shape) / l->out;
    if (l->inputs) s->y = cuda_desc(op, s->y.shape);
    preferred[0] = cuda_desc(op, s->x[0].shape);
    if (l->wide) (l->inputs ? &s->y : &preferred[0])->dtype = DTYPE_F32;
    if (s->residual) preferred[1] = s->y;
    for (int i = 0; i < s->x_count; ++i)
        if (!desc_equal(preferred[i], s->x[i])) return OK;
    TRY(plan_kinds(op));
    for (int i = 0; i < s->w_count; ++i) op->w_elements[i] = shape_count(s->w[i]);
    op->workspace_bytes = memory_of(op, NULL).bytes;
    if (s->token_slices.total > 0 && op->spec.w_count > 1) {
        const TokenSums bias = cuda_token_bias(op);
        const size_t bytes = cuda_token_sums_bytes(op, &bias);
        if (op->workspace_bytes < bytes) op->workspace_bytes = bytes;
    }
    for (int i = 0; i < l->slices; ++i) {
        const Slice *kind = slice_kind(op, i);
        op->cache_bytes += weight_bytes(op, kind) + bias_bytes(op, kind);
    }
    if (s->act == ACT_GELU) op->saved_bytes = desc_bytes(s->y);
    op->needs_x[0] = !s->frozen;
    op->needs_y = s->act != ACT_NONE && s->act != ACT_GELU;
    op->dx_is_dy[1] = s->residual;
    op->weight_may_wait = true;
    op->kernels = "cuBLASLt, in slices";
    op->flops_forward = 2.0 * (double)l->rows * (double)l->in * (double)l->out;
    op->flops_backward = op->flops_forward * (s->need_dx[0] + !s->frozen);
    return OK;
}

/* ---- one run ---- */

/* A matrix whose columns are divided into slices. */
typedef struct Matrix {
    const void *data;
    /* bytes from one row to the next */
    size_t row;
    int64_t rows;
} Matrix;

/* Copies the columns of the matrix that belong to a slice to `columns` or, if `back` is true, from
 * `columns` to the matrix. bytes: bytes of an element. */
static void move_columns(const Op *op, int slice, Matrix matrix, void *columns, size_t bytes,
                         bool back)
{
    const Layer *l = op->impl;
    const Slice *s = slice_kind(op, slice);
    const size_t row = (size_t)s->padded * bytes;
    const int64_t divided = l->inputs ? l->in : l->out;
    size_t at = 0;
    if (!back && s->padded > s->width)
        CUDA_CALL(cudaMemsetAsync(columns, 0, row * (size_t)matrix.rows, cuda_stream(op)));
    for (int i = 0; i < l->ranges; ++i) {
        const SumRange range = sum_range(&op->spec.slices, divided, slice, i);
        const size_t n = (size_t)(range.end - range.first) * bytes;
        char *whole = (char *)(uintptr_t)matrix.data + (size_t)range.first * bytes;
        const CudaRows out = {whole, matrix.row}, side = {(char *)columns + at, row};
        cuda_copy_rows(cuda_stream(op), back ? out : side, back ? side : out, n,
                       (size_t)matrix.rows);
        at += n;
    }
}

static Matrix matrix_of(const void *data, int64_t columns, size_t bytes, int64_t rows)
{
    return (Matrix){.data = data, .row = (size_t)columns * bytes, .rows = rows};
}

/* Returns the divided tensor (x or y, or its gradient) at address `data` as a matrix. */
static Matrix side_matrix(const Op *op, const void *data)
{
    const Layer *l = op->impl;
    const Desc d = l->inputs ? op->spec.x[0] : op->spec.y;
    return matrix_of(data, desc_row_stride(d), dtype_bytes(l->type), l->rows);
}

/* Returns the address of a slice's weight in the cache; the slice's bias follows it. */
static char *weight_at(const Op *op, void *cache, int slice)
{
    char *at = cache;
    for (int i = 0; i < slice; ++i) {
        const Slice *s = slice_kind(op, i);
        at += weight_bytes(op, s) + bias_bytes(op, s);
    }
    return at;
}

/* Returns the undivided tensor `other` in the type of the products' factors. If it has another
 * type, converts it to m->other and returns m->other. */
static const void *narrow(const Op *op, const void *other, const Memory *m)
{
    const Layer *l = op->impl;
    if (!l->wide || l->type == DTYPE_F32) return other;
    cuda_check(launch_convert(cuda_stream(op), l->type, m->other, DTYPE_F32, other,
                              l->rows * undivided(l)),
               "kernel convert");
    return m->other;
}

/* Computes the sum over slices, with the divided tensor `side` as a factor. Level k of m->sums has
 * a sum of 2^k slices to which another such sum will be added. To the product of slice i, the sums
 * of levels 0, 1, ... are added, one for each trailing 1 bit of i. Returns the address of the sum:
 * `wide` or, if `wide` is NULL, an address in m->sums. backward: computes dx instead of y. */
static float *sum_slices(const Op *op, const OpRun *run, const void *side, bool backward,
                         const Memory *m, float *wide)
{
    const Layer *l = op->impl;
    const int64_t level = l->rows * undivided(l);
    float *sum = m->sums;
    for (int i = 0; i < l->slices; ++i) {
        const Slice *s = slice_kind(op, i);
        int joins = 0;
        while (i >> joins & 1) ++joins;
        sum = i == l->slices - 1 && wide ? wide : m->sums + joins * level;
        move_columns(op, i, side_matrix(op, side), m->columns, dtype_bytes(l->type), false);
        const MatmulRun product = {.a = weight_at(op, run->cache, i), .b = m->columns, .d = sum};
        matmul_run(backward ? &s->data : &s->forward, cuda_state(op), product);
        for (int k = 0; k < joins; ++k)
            cuda_check(launch_add(cuda_stream(op), sum, m->sums + k * level, sum, level),
                       "kernel add");
    }
    return sum;
}

/* Computes the divided tensor `side` from the undivided one, slice by slice. backward: computes dx
 * instead of y. */
static void side_slices(const Op *op, const OpRun *run, const void *other, void *side,
                        bool backward, const Memory *m)
{
    const Layer *l = op->impl;
    for (int i = 0; i < l->slices; ++i) {
        const Slice *s = slice_kind(op, i);
        char *w = weight_at(op, run->cache, i);
        MatmulRun product = {.a = w, .b = other, .d = m->columns};
        if (!backward && bias_bytes(op, s) > 0) product.bias = w + weight_bytes(op, s);
        matmul_run(backward ? &s->data : &s->forward, cuda_state(op), product);
        move_columns(op, i, side_matrix(op, side), m->columns, dtype_bytes(l->type), true);
    }
}

static void forward(Op *op, const OpRun *run)
{
    const Layer *l = op->impl;
    const OpSpec *s = &op->spec;
    const Memory m = memory_of(op, run->workspace);
    void *y = s->act == ACT_GELU ? run->saved : run->y;
    if (l->inputs) {
        float *sum = sum_slices(op, run, run->x[0], false, &m, l->wide ? y : NULL);
        if (l->wide) return;
        const AddRowRun bias = {.type = DTYPE_F32,
                                .x = sum,
                                .y = sum,
                                .row = run->w[1],
                                .rows = l->rows,
                                .real = l->rows,
                                .columns = l->out};
        if (op->spec.w_count > 1)
            cuda_check(launch_add_row(cuda_stream(op), bias), "kernel add_row");
        cuda_check(launch_convert(cuda_stream(op), l->type, y, DTYPE_F32, sum, l->rows * l->out),
                   "kernel convert");
    } else {
        if (desc_row_stride(s->y) > l->out)
            CUDA_CALL(cudaMemsetAsync(y, 0, desc_bytes(s->y), cuda_stream(op)));
        side_slices(op, run, narrow(op, run->x[0], &m), y, false, &m);
    }
    cuda_dense_finish(op, run, s->residual, s->act != ACT_NONE);
}

static void backward_data(Op *op, const OpRun *run)
{
    const Layer *l = op->impl;
    const OpSpec *s = &op->spec;
    const Memory m = memory_of(op, run->workspace);
    void *dx = run->dx[0];
    if (!dx) return;
    if (l->inputs) {
        side_slices(op, run, narrow(op, run->dy, &m), dx, true, &m);
    } else {
        float *sum = sum_slices(op, run, run->dy, true, &m, l->wide ? dx : NULL);
        if (!l->wide)
            cuda_check(
                launch_convert(cuda_stream(op), l->type, dx, DTYPE_F32, sum, l->rows * l->in),
                "kernel convert");
    }
    if (s->x_act != ACT_NONE)
        cuda_check(launch_activation_backward(cuda_stream(op), s->x[0].dtype, s->x_act, 0, dx, dx,
                                              run->x_saved, shape_count(s->x[0].shape)),
                   "kernel activation_backward");
}

/* Computes a slice of dw and, if the outputs are divided, of the bias gradient. other: x or dy,
 * whichever is undivided. */
static void slice_gradient(const Op *op, const OpRun *run, int slice, const void *other,
                           const Memory *m)
{
    const Layer *l = op->impl;
    const Slice *s = slice_kind(op, slice);
    const void *side = l->inputs ? run->x[0] : run->dy;
    move_columns(op, slice, side_matrix(op, side), m->columns, dtype_bytes(l->type), false);
    const MatmulRun product = {
        .a = l->inputs ? m->columns : other, .b = l->inputs ? other : m->columns, .d = m->dw};
    matmul_run(&s->weight, cuda_state(op), product);
    if (l->inputs) {
        move_columns(op, slice, matrix_of(run->dw[0], l->in, sizeof(float), l->out), m->dw,
                     sizeof(float), true);
        return;
    }
    move_columns(op, slice, matrix_of(run->dw[0], 0, 0, 1), m->dw, (size_t)l->in * sizeof(float),
                 true);
    if (op->spec.w_count < 2) return;
    cuda_check(launch_column_sum(cuda_stream(op), l->type, m->db, m->partial, m->columns, l->rows,
                                 s->padded, s->padded),
               "kernel column_sum");
    move_columns(op, slice, matrix_of(run->dw[1], 0, 0, 1), m->db, sizeof(float), true);
}

static void backward_weight(Op *op, const OpRun *run)
{
    const Layer *l = op->impl;
    const Memory m = memory_of(op, run->workspace);
    const void *other = narrow(op, l->inputs ? run->dy : run->x[0], &m);
    for (int i = 0; i < l->slices; ++i) slice_gradient(op, run, i, other, &m);
    if (op->spec.w_count < 2 || !l->inputs) return;
    if (op->spec.token_slices.total > 0) {
        const TokenSums bias = cuda_token_bias(op);
        cuda_token_sums_run(op, run, &bias, 1);
        return;
    }
    cuda_check(launch_column_sum(cuda_stream(op), l->type, run->dw[1], m.partial, run->dy, l->rows,
                                 l->out, l->out),
               "kernel column_sum");
}

/* Copies n floats to the cache, and converts them to the type of the products' factors. */
static void convert_to(const Op *op, void *to, const float *from, int64_t n)
{
    const Layer *l = op->impl;
    cuda_check(launch_convert(cuda_stream(op), l->type, to, DTYPE_F32, from, n), "kernel convert");
}

static void refresh(Op *op, const OpRun *run)
{
    const Layer *l = op->impl;
    const Memory m = memory_of(op, run->workspace);
    for (int i = 0; i < l->slices; ++i) {
        const Slice *s = slice_kind(op, i);
        char *w = weight_at(op, run->cache, i);
        if (l->inputs)
            move_columns(op, i, matrix_of(run->w[0], l->in, sizeof(float), l->out), m.dw,
                         sizeof(float), false);
        else
            move_columns(op, i, matrix_of(run->w[0], 0, 0, 1), m.dw, (size_t)l->in * sizeof(float),
                         false);
        convert_to(op, w, m.dw, s->padded * undivided(l));
        if (bias_bytes(op, s) == 0) continue;
        move_columns(op, i, matrix_of(run->w[1], 0, 0, 1), m.db, sizeof(float), false);
        convert_to(op, w + weight_bytes(op, s), m.db, s->padded);
    }
}

static void layer_free(Op *op)
{
    Layer *l = op->impl;
    if (!l) return;
    for (int k = 0; k < l->kinds; ++k) {
        matmul_free(&l->kind[k].forward);
        matmul_free(&l->kind[k].data);
        matmul_free(&l->kind[k].weight);
    }
    mem_free(&op->impl);
}

static const OpTable slices_table = {
    .name = "dense",
    .plan = cuda_dense_slices_plan,
    .refresh = refresh,
    .forward = forward,
    .backward_begin = cuda_dense_backward_begin,
    .backward_data = backward_data,
    .backward_weight = backward_weight,
    .free = layer_free,
};
