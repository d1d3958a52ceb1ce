/* The operation positions: adds row t of the table to position t of each sample. A sample is
 * treated as one row of length x width columns. A range of the table with that number of elements
 * is added to this row. The range begins at the table's row for the first position of the slice. */
#include "cuda.h"

static int64_t sample_elements(const Op *op)
{
    const int64_t *y = op->spec.y.shape.dim;
    return y[1] * y[2];
}

/* Returns the number of columns of a sample that are summed together: the columns of slice i of the
 * sequence if sums are cut, else all. */
static int64_t columns_of(const OpSpec *s, int i)
{
    const SumSlices *cut = &s->token_slices;
    if (cut->total == 0) return s->y.shape.dim[1] * s->y.shape.dim[2];
    return (slice_first(cut->units, cut->total, i + 1) - slice_first(cut->units, cut->total, i)) *
           s->y.shape.dim[2];
}

/* Returns the number of floats of scratch that the largest sum over samples needs. */
static int64_t sum_floats(const OpSpec *s)
{
    int64_t most = 0;
    for (int i = s->token_slices.first; i == 0 || i < s->token_slices.first + s->token_slices.count;
         ++i) {
        const int64_t columns = columns_of(s, i);
        const int64_t floats = cuda_sum_parts(s->y.dtype, s->y.shape.dim[0], columns) * columns;
        if (floats > most) most = floats;
    }
    return most;
}

static Status positions_plan(Op *op, Desc preferred[SPEC_INPUTS])
{
    OpSpec *s = &op->spec;
    if (!cuda_inputs_fit(op, preferred)) return OK;
    s->y = cuda_desc(op, s->y.shape);
    op->w_elements[0] = shape_count(s->w[0]);
    op->workspace_bytes = (size_t)sum_floats(s) * sizeof(float);
    if (s->token_slices.total > 0) op->workspace_bytes += desc_bytes(s->y);
    op->y_inplace = true;
    op->dx_is_dy[0] = true;
    return OK;
}

static void positions_forward(Op *op, const OpRun *run)
{
    const OpSpec *s = &op->spec;
    AddRowRun add = {.type = s->y.dtype,
                     .x = run->x[0],
                     .y = run->y,
                     .row = run->w[0] + s->slice.first * s->y.shape.dim[2],
                     .rows = s->y.shape.dim[0],
                     .real = run->sample_count,
                     .columns = sample_elements(op)};
    cuda_check(launch_add_row(cuda_stream(op), add), "kernel add_row");
}

/* Sums dy over the samples, for `columns` neighbouring elements of a sample from element `first`
 * on, and writes the sums to dw[first ...]. */
static void sum_columns(const Op *op, const OpRun *run, int64_t first, int64_t columns, float *dw)
{
    const DType type = op->spec.y.dtype;
    const size_t bytes = dtype_bytes(type), all = (size_t)sample_elements(op) * bytes;
    float *partial = run->workspace;
    const char *dy = run->dy;
    if (columns < sample_elements(op)) {
        const CudaRows rows = {(char *)(partial + sum_floats(&op->spec)), (size_t)columns * bytes};
        cuda_copy_rows(cuda_stream(op), rows,
                       (CudaRows){(char *)run->dy + (size_t)first * bytes, all},
                       (size_t)columns * bytes, (size_t)run->sample_count);
        dy = rows.first;
    }
    cuda_check(launch_column_sum(cuda_stream(op), type, dw + first, partial, dy, run->sample_count,
                                 columns, columns),
               "kernel column_sum");
}

/* Sums dy over the samples. If sums are cut into slices of the sequence, each slice is summed
 * separately. So the order of a sum over samples does not depend on the tokens that a rank has. */
static void positions_backward_weight(Op *op, const OpRun *run)
{
    const OpSpec *s = &op->spec;
    const SumSlices *cut = &s->token_slices;
    const int64_t width = s->y.shape.dim[2], first = s->slice.first;
    const int64_t whole = s->slice.ranks ? s->slice.whole : s->y.shape.dim[1];
    float *dw = run->dw[0] + first * width;
    /* -0, because the sum of -0 and the gradient of the rank that has the row has the bits of that
     * gradient */
    if (s->y.shape.dim[1] < whole)
        cuda_check(launch_fill(cuda_stream(op), run->dw[0], -0.0f, whole * width), "kernel fill");
    if (whole * width < op->w_elements[0])
        cuda_check(launch_fill(cuda_stream(op), run->dw[0] + whole * width, 0,
                               op->w_elements[0] - whole * width),
                   "kernel fill");
    if (cut->total == 0) {
        sum_columns(op, run, 0, sample_elements(op), dw);
        return;
    }
    for (int i = cut->first; i < cut->first + cut->count; ++i) {
        const int64_t from = slice_first(cut->units, cut->total, i) - first;
        sum_columns(op, run, from * width, columns_of(s, i), dw);
    }
}

const OpTable cuda_positions = {
    .name = "positions",
    .plan = positions_plan,
    .forward = positions_forward,
    .backward_weight = positions_backward_weight,
};
