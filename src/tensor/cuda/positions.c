/* positions: adds row t of the table to position t of each sample. A sample is treated as one row
 * of length x width columns, to which that many elements of the table are added, beginning at the
 * row of the slice's first position. */
#include "cuda.h"

static int64_t sample_elements(const Op *op)
{
    const int64_t *y = op->spec.y.shape.dim;
    return y[1] * y[2];
}

static Status positions_plan(Op *op, Desc preferred[SPEC_INPUTS])
{
    OpSpec *s = &op->spec;
    if (!cuda_inputs_fit(op, preferred)) return OK;
    s->y = cuda_desc(op, s->y.shape);
    int64_t columns = sample_elements(op);
    op->w_elements[0] = shape_count(s->w[0]);
    op->workspace_bytes =
        (size_t)(cuda_sum_parts(s->y.dtype, s->y.shape.dim[0], columns) * columns) * sizeof(float);
    op->y_inplace = true;
    op->dx_alias[0] = true;
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
                     .real = run->rows,
                     .columns = sample_elements(op)};
    cuda_check(launch_add_row(cuda_stream(op), add), "kernel add_row");
}

static void positions_backward_weight(Op *op, const OpRun *run)
{
    const OpSpec *s = &op->spec;
    int64_t columns = sample_elements(op), first = s->slice.first * s->y.shape.dim[2];
    if (columns < op->w_elements[0])
        CUDA_CALL(cudaMemsetAsync(run->dw[0], 0, (size_t)op->w_elements[0] * sizeof(float),
                                  cuda_stream(op)));
    cuda_check(launch_column_sum(cuda_stream(op), s->y.dtype, run->dw[0] + first, run->workspace,
                                 run->dy, run->rows, columns, columns),
               "kernel column_sum");
}

const OpTable cuda_positions = {
    .name = "positions",
    .plan = positions_plan,
    .forward = positions_forward,
    .backward_weight = positions_backward_weight,
};
