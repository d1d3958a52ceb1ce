/* The operation group_norm with a fused relu or relu6, on channels-last images. backward_begin
 * computes sums for each channel of each sample, from which dw and dx are computed. */
#include "../cuda.h"

/* number of arrays in GroupNormSaved */
enum { SAVED = 8 };

static int64_t sample_channels(const OpSpec *s)
{
    return s->y.shape.dim[0] * s->y.shape.dim[1];
}

static Status group_norm_plan(Op *op, Desc preferred[SPEC_INPUTS])
{
    OpSpec *s = &op->spec;
    if (!cuda_inputs_fit(op, preferred)) return OK;
    s->y = cuda_desc(op, s->y.shape);
    const int64_t channels = s->y.shape.dim[1], pixels = s->y.shape.dim[2] * s->y.shape.dim[3];
    for (int i = 0; i < s->w_count; ++i) op->w_elements[i] = channels;
    op->saved_bytes = (size_t)(SAVED * sample_channels(s)) * sizeof(float);
    op->workspace_bytes =
        (size_t)(2 * cuda_sum_parts(s->y.dtype, pixels, channels) * sample_channels(s)) *
        sizeof(double);
    op->needs_x[0] = op->dx_inplace = true;
    op->flops_forward = op->flops_backward = 5.0 * (double)shape_count(s->y.shape);
    return OK;
}

static GroupNormRun group_norm_run(const Op *op, const OpRun *run)
{
    const OpSpec *s = &op->spec;
    const int64_t *y = s->y.shape.dim, each = sample_channels(s);
    float *saved = run->saved;
    return (GroupNormRun){.type = s->y.dtype,
                          .act = s->act,
                          .x = run->x[0],
                          .dy = run->dy,
                          .y = run->y,
                          .dx = run->dx[0],
                          .scale = s->w_count > 0 ? run->w[0] : NULL,
                          .shift = s->w_count > 0 ? run->w[1] : NULL,
                          .saved = {.mean = saved,
                                    .inverse = saved + each,
                                    .factor = saved + 2 * each,
                                    .shift = saved + 3 * each,
                                    .sum_dy = saved + 4 * each,
                                    .sum_dy_xhat = saved + 5 * each,
                                    .by_x = saved + 6 * each,
                                    .constant = saved + 7 * each},
                          .partial = run->workspace,
                          .eps = s->eps,
                          .samples = y[0],
                          .real = run->sample_count,
                          .pixels = y[2] * y[3],
                          .channels = y[1],
                          .groups = s->groups};
}

static void group_norm_forward(Op *op, const OpRun *run)
{
    cuda_check(launch_group_norm(cuda_stream(op), group_norm_run(op, run)), "kernel group_norm");
}

static void group_norm_backward_begin(Op *op, const OpRun *run)
{
    cuda_check(launch_group_norm_sums(cuda_stream(op), group_norm_run(op, run)),
               "kernel group_norm_sums");
}

static void group_norm_backward_data(Op *op, const OpRun *run)
{
    if (run->dx[0])
        cuda_check(launch_group_norm_data(cuda_stream(op), group_norm_run(op, run)),
                   "kernel group_norm_data");
}

static void group_norm_backward_weight(Op *op, const OpRun *run)
{
    if (op->spec.w_count > 0)
        cuda_check(launch_group_norm_weights(cuda_stream(op), group_norm_run(op, run), run->dw[0],
                                             run->dw[1]),
                   "kernel group_norm_weights");
}

const OpTable cuda_group_norm = {
    .name = "group_norm",
    .plan = group_norm_plan,
    .forward = group_norm_forward,
    .backward_begin = group_norm_backward_begin,
    .backward_data = group_norm_backward_data,
    .backward_weight = group_norm_backward_weight,
};
