/* The operations layer_norm and rms_norm, over the last dimension. One launcher computes dx and the
 * gradients of the parameters, because both need x and dy. If sums are cut into slices of the
 * sequence, the gradients of the parameters are computed first, slice by slice. */
#include "tensor/op_list.h"
#include "../token_sums.h"

static bool is_rms(const Op *op)
{
    return op->spec.kind == OP_RMS_NORM;
}

static LayerNormRun layer_norm_run(const Op *op, const OpRun *run)
{
    const OpSpec *s = &op->spec;
    int64_t width = s->y.shape.dim[s->y.shape.ndim - 1], rows = shape_count(s->y.shape) / width;
    return (LayerNormRun){.type = s->y.dtype,
                          .x = run->x[0],
                          .dy = run->dy,
                          .y = run->y,
                          .dx = run->dx[0],
                          .scale = run->w[0],
                          .shift = is_rms(op) ? NULL : run->w[1],
                          .dscale = run->dw[0],
                          .dshift = is_rms(op) ? NULL : run->dw[1],
                          .saved = run->saved,
                          .partial = run->workspace,
                          .eps = s->eps,
                          .add = run->dx_add,
                          .rms = is_rms(op),
                          .rows = rows,
                          .real = rows / s->y.shape.dim[0] * run->sample_count,
                          .width = width};
}

/* Implements TokenSum: sums the gradients of the parameters over the rows of a slice of the
 * sequence. */
static void sum_rows(const Op *op, const TokenRows *rows, float *out, float *partial)
{
    LayerNormRun slice = layer_norm_run(op, &(OpRun){0});
    slice.x = rows->x;
    slice.dy = rows->dy;
    slice.saved = rows->saved;
    slice.dscale = out;
    slice.dshift = slice.rms ? NULL : out + slice.width;
    slice.partial = partial;
    slice.rows = rows->rows;
    slice.real = rows->real;
    cuda_check(launch_layer_norm_backward(cuda_stream(op), slice), "kernel layer_norm_backward");
}

static TokenSums token_sums(const Op *op)
{
    const OpSpec *s = &op->spec;
    const int64_t width = s->y.shape.dim[s->y.shape.ndim - 1];
    return (TokenSums){.sums = is_rms(op) ? 1 : 2,
                       .width = width,
                       .partial = 2 * cuda_row_parts(cuda_token_rows_most(s)) * width,
                       .saved = 2,
                       .reads_x = true,
                       .sum = sum_rows};
}

static Status layer_norm_plan(Op *op, Desc preferred[SPEC_INPUTS])
{
    OpSpec *s = &op->spec;
    if (!cuda_inputs_fit(op, preferred)) return OK;
    s->y = cuda_desc(op, s->y.shape);
    int64_t width = s->y.shape.dim[s->y.shape.ndim - 1], rows = shape_count(s->y.shape) / width;
    for (int i = 0; i < s->w_count; ++i) op->w_elements[i] = width;
    op->saved_bytes = (size_t)(2 * rows) * sizeof(float);
    op->workspace_bytes = (size_t)(2 * cuda_row_parts(rows) * width) * sizeof(float);
    if (s->token_slices.total > 0) {
        const TokenSums sums = token_sums(op);
        const size_t bytes = cuda_token_sums_bytes(op, &sums);
        op->workspace_bytes += (size_t)(2 * width) * sizeof(float);
        if (op->workspace_bytes < bytes) op->workspace_bytes = bytes;
    }
    op->needs_x[0] = true;
    op->dx_inplace = op->dx_adds = true;
    op->flops_forward = op->flops_backward = 8.0 * (double)shape_count(s->y.shape);
    return OK;
}

static void layer_norm_forward(Op *op, const OpRun *run)
{
    cuda_check(launch_layer_norm(cuda_stream(op), layer_norm_run(op, run)), "kernel layer_norm");
}

/* Computes dx and the gradients of the parameters. If sums are cut into slices of the sequence, the
 * gradients of the parameters are computed first, because dx may be in dy's memory. The launch for
 * dx then also computes sums over all rows; they are written to the workspace and not used. */
static void layer_norm_backward(Op *op, const OpRun *run)
{
    LayerNormRun all = layer_norm_run(op, run);
    if (op->spec.token_slices.total > 0) {
        const TokenSums sums = token_sums(op);
        if (!op->spec.frozen) cuda_token_sums_run(op, run, &sums, 0);
        if (!run->dx[0]) return;
        all.dscale = all.partial + 2 * cuda_row_parts(all.rows) * all.width;
        all.dshift = all.rms ? NULL : all.dscale + all.width;
    }
    cuda_check(launch_layer_norm_backward(cuda_stream(op), all), "kernel layer_norm_backward");
}

/* Writes dx and the gradients of the parameters. */
static void layer_norm_backward_data(Op *op, const OpRun *run)
{
    if (run->dx[0]) layer_norm_backward(op, run);
}

/* Does nothing if there is a dx, because backward_data has then written the gradients of the
 * parameters. */
static void layer_norm_backward_weight(Op *op, const OpRun *run)
{
    if (!run->dx[0]) layer_norm_backward(op, run);
}

const OpTable cuda_layer_norm = {
    .name = "layer_norm",
    .plan = layer_norm_plan,
    .forward = layer_norm_forward,
    .backward_data = layer_norm_backward_data,
    .backward_weight = layer_norm_backward_weight,
};

const OpTable cuda_rms_norm = {
    .name = "rms_norm",
    .plan = layer_norm_plan,
    .forward = layer_norm_forward,
    .backward_data = layer_norm_backward_data,
    .backward_weight = layer_norm_backward_weight,
};
