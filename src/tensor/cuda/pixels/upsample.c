/* The operation upsample on channels-last images, by integer factors. */
#include "../cuda.h"

static Status upsample_plan(Op *op, Desc preferred[SPEC_INPUTS])
{
    if (!cuda_inputs_fit(op, preferred)) return OK;
    op->spec.y = cuda_desc(op, op->spec.y.shape);
    return OK;
}

static UpsampleRun upsample_run(const Op *op, const void *from, void *to)
{
    const OpSpec *s = &op->spec;
    const int64_t *x = s->x[0].shape.dim;
    return (UpsampleRun){.type = s->y.dtype,
                         .mode = s->upsample,
                         .align_corners = s->align_corners,
                         .from = from,
                         .to = to,
                         .scale = s->scale,
                         .h = (int)x[2],
                         .w = (int)x[3],
                         .samples = x[0],
                         .channels = x[1]};
}

static void upsample_forward(Op *op, const OpRun *run)
{
    cuda_check(launch_upsample(cuda_stream(op), upsample_run(op, run->x[0], run->y)),
               "kernel upsample");
}

static void upsample_backward_data(Op *op, const OpRun *run)
{
    if (run->dx[0])
        cuda_check(launch_upsample_backward(cuda_stream(op), upsample_run(op, run->dy, run->dx[0])),
                   "kernel upsample_backward");
}

const OpTable cuda_upsample = {
    .name = "upsample",
    .plan = upsample_plan,
    .forward = upsample_forward,
    .backward_data = upsample_backward_data,
};
