/* The operation add: y = act(x0 + x1 + ...). Every dx is dy times the derivative of the activation,
 * in dy's memory. */
#include "cuda.h"

static Status add_plan(Op *op, Desc preferred[SPEC_INPUTS])
{
    OpSpec *spec = &op->spec;
    if (!cuda_inputs_fit(op, preferred)) return OK;
    spec->y = cuda_desc(op, spec->y.shape);
    op->needs_y = spec->act != ACT_NONE;
    op->y_inplace = true;
    for (int i = 0; i < spec->x_count; ++i) op->dx_is_dy[i] = true;
    op->flops_forward = (double)(spec->x_count - 1) * (double)shape_count(spec->y.shape);
    return OK;
}

static void add_forward(Op *op, const OpRun *run)
{
    const OpSpec *spec = &op->spec;
    int64_t n = shape_count(spec->y.shape);
    const void *sum = run->x[0];
    for (int i = 1; i < spec->x_count; ++i, sum = run->y)
        cuda_check(launch_add_act(cuda_stream(op), spec->y.dtype,
                                  i + 1 < spec->x_count ? ACT_NONE : spec->act, run->y, sum,
                                  run->x[i], n),
                   "kernel add_act");
}

static void add_backward_begin(Op *op, const OpRun *run)
{
    if (op->spec.act == ACT_NONE) return;
    cuda_check(launch_activation_backward(cuda_stream(op), op->spec.y.dtype, op->spec.act, 0,
                                          run->dy, run->dy, run->y, shape_count(op->spec.y.shape)),
               "kernel activation_backward");
}

const OpTable cuda_add = {
    .name = "add",
    .plan = add_plan,
    .forward = add_forward,
    .backward_begin = add_backward_begin,
};
