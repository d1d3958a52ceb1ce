/* The operation pool: maximum, average and global average pooling of channels-last images. */
#include "../cuda.h"

static Status pool_plan(Op *op, Desc preferred[SPEC_INPUTS])
{
    OpSpec *s = &op->spec;
    if (!cuda_inputs_fit(op, preferred)) return OK;
    s->y = cuda_desc(op, s->y.shape);
    if (s->pool == POOL_MAX)
        op->saved_bytes = (size_t)shape_count(s->y.shape);
    else
        op->needs_y = s->act == ACT_RELU;
    return OK;
}

static PoolRun pool_run(const Op *op, const OpRun *run)
{
    const OpSpec *s = &op->spec;
    const int64_t *x = s->x[0].shape.dim, *y = s->y.shape.dim;
    PoolRun p = {.type = s->y.dtype,
                 .x = run->x[0],
                 .dy = run->dy,
                 .y = run->y,
                 .dx = run->dx[0],
                 .relu = s->act == ACT_RELU,
                 .h = (int)x[2],
                 .w = (int)x[3],
                 .p = (int)y[2],
                 .q = (int)y[3],
                 .samples = x[0],
                 .channels = x[1]};
    for (int d = 0; d < 2; ++d) {
        p.kernel[d] = s->kernel[d];
        p.stride[d] = s->stride[d];
        p.pad[d] = s->pad[d];
    }
    switch (s->pool) {
    case POOL_MAX:
        p.max_index = run->saved;
        break;
    case POOL_AVG:
        break;
    case POOL_GLOBAL_AVG:
        for (int d = 0; d < 2; ++d) p.kernel[d] = (int)x[2 + d], p.stride[d] = 1, p.pad[d] = 0;
        break;
    }
    return p;
}

static void pool_forward(Op *op, const OpRun *run)
{
    cuda_check(launch_pool(cuda_stream(op), pool_run(op, run)), "kernel pool");
}

static void pool_backward_begin(Op *op, const OpRun *run)
{
    if (op->needs_y)
        cuda_check(launch_activation_backward(cuda_stream(op), op->spec.y.dtype, ACT_RELU, 0,
                                              run->dy, run->dy, run->y,
                                              shape_count(op->spec.y.shape)),
                   "kernel activation_backward");
}

static void pool_backward_data(Op *op, const OpRun *run)
{
    if (run->dx[0])
        cuda_check(launch_pool_backward(cuda_stream(op), pool_run(op, run)),
                   "kernel pool_backward");
}

const OpTable cuda_pool = {
    .name = "pool",
    .plan = pool_plan,
    .forward = pool_forward,
    .backward_begin = pool_backward_begin,
    .backward_data = pool_backward_data,
};
