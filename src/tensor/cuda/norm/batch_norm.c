/* The operation batch_norm, with a fused residual and a fused relu or relu6. backward_begin
 * computes the sums from which dw and dx are computed. With a residual and an activation it also
 * multiplies dy, in place, by the activation's derivative; dy is then the gradient of the
 * residual. */
#include "../cuda.h"

/* number of arrays in BatchNormSaved */
enum { SAVED = 7 };

static Status batch_norm_plan(Op *op, Desc preferred[SPEC_INPUTS])
{
    OpSpec *s = &op->spec;
    if (s->fixed_stats)
        return fail(ERR_CONFIG,
                    "cuda: batch_norm cannot train with fixed statistics: set model.freeze_norm: "
                    "affine or none");
    if (s->synced)
        return fail(ERR_CONFIG, "train.sync_batch_norm is for CPUs: leave it out and set a larger "
                                "train.micro_batch, or set train.device to cpu");
    if (!cuda_inputs_fit(op, preferred)) return OK;
    s->y = cuda_desc(op, s->y.shape);
    int64_t channels = s->y.shape.dim[1], rows = shape_count(s->y.shape) / channels;
    for (int i = 0; i < s->w_count; ++i) op->w_elements[i] = channels;
    op->saved_bytes = (size_t)(SAVED * channels) * sizeof(float);
    op->workspace_bytes =
        (size_t)(2 * cuda_sum_parts(s->y.dtype, rows, channels) * channels) * sizeof(double);
    op->needs_x[0] = true;
    op->needs_y = s->residual && s->act != ACT_NONE;
    op->dx_inplace = !s->residual;
    op->dx_is_dy[1] = s->residual;
    op->flops_forward = op->flops_backward = 5.0 * (double)shape_count(s->y.shape);
    return OK;
}

static BatchNormRun batch_norm_run(const Op *op, const OpRun *run)
{
    const OpSpec *s = &op->spec;
    int64_t channels = s->y.shape.dim[1], rows = shape_count(s->y.shape) / channels;
    float *saved = run->saved;
    return (BatchNormRun){.type = s->y.dtype,
                          .act = s->act,
                          .training = run->training,
                          .x = run->x[0],
                          .residual = s->residual ? run->x[1] : NULL,
                          .dy = run->dy,
                          .y = run->y,
                          .dx = run->dx[0],
                          .scale = run->w[0],
                          .shift = run->w[1],
                          .running_mean = run->w[2],
                          .running_variance = run->w[3],
                          .saved = {.mean = saved,
                                    .inverse = saved + channels,
                                    .variance = saved + 2 * channels,
                                    .sum_dy = saved + 3 * channels,
                                    .sum_dy_xhat = saved + 4 * channels,
                                    .factor = saved + 5 * channels,
                                    .shift = saved + 6 * channels},
                          .partial = run->workspace,
                          .eps = s->eps,
                          .rows = rows,
                          .real = rows / s->y.shape.dim[0] * run->sample_count,
                          .channels = channels};
}

static void batch_norm_forward(Op *op, const OpRun *run)
{
    cuda_check(launch_batch_norm(cuda_stream(op), batch_norm_run(op, run)), "kernel batch_norm");
}

static void batch_norm_backward_begin(Op *op, const OpRun *run)
{
    cuda_check(launch_batch_norm_sums(cuda_stream(op), batch_norm_run(op, run)),
               "kernel batch_norm_sums");
}

static void batch_norm_backward_data(Op *op, const OpRun *run)
{
    if (run->dx[0])
        cuda_check(launch_batch_norm_data(cuda_stream(op), batch_norm_run(op, run)),
                   "kernel batch_norm_data");
}

static void batch_norm_backward_weight(Op *op, const OpRun *run)
{
    cuda_check(launch_batch_norm_weights(cuda_stream(op), batch_norm_run(op, run), run->dw),
               "kernel batch_norm_weights");
}

const OpTable cuda_batch_norm = {
    .name = "batch_norm",
    .plan = batch_norm_plan,
    .forward = batch_norm_forward,
    .backward_begin = batch_norm_backward_begin,
    .backward_data = batch_norm_backward_data,
    .backward_weight = batch_norm_backward_weight,
};
