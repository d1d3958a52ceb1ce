/* The operation pad, which pads or cuts channels-last images. */
#include "../cuda.h"

static Status pad_plan(Op *op, Desc preferred[SPEC_INPUTS])
{
    if (!cuda_inputs_fit(op, preferred)) return OK;
    op->spec.y = cuda_desc(op, op->spec.y.shape);
    return OK;
}

static PadRun pad_run(const Op *op, const void *from, void *to)
{
    const OpSpec *s = &op->spec;
    const int64_t *x = s->x[0].shape.dim, *y = s->y.shape.dim;
    const Padding *p = &s->padding;
    return (PadRun){.type = s->y.dtype,
                    .from = from,
                    .to = to,
                    .mode = {p->mode[0], p->mode[1]},
                    .low = {p->edge[0], p->edge[2]},
                    .size = {(int)x[2], (int)x[3]},
                    .out = {(int)y[2], (int)y[3]},
                    .samples = x[0],
                    .channels = x[1]};
}

static void pad_forward(Op *op, const OpRun *run)
{
    cuda_check(launch_pad(cuda_stream(op), pad_run(op, run->x[0], run->y)), "kernel pad");
}

static void pad_backward_data(Op *op, const OpRun *run)
{
    if (run->dx[0])
        cuda_check(launch_pad_backward(cuda_stream(op), pad_run(op, run->dy, run->dx[0])),
                   "kernel pad_backward");
}

const OpTable cuda_pad = {
    .name = "pad",
    .plan = pad_plan,
    .forward = pad_forward,
    .backward_data = pad_backward_data,
};
