/* activation: one kernel forward, one backward. The derivative of relu and relu6 is computed from
 * their output, that of gelu and silu from their input. */
#include "cuda.h"

static bool act_reads_y(Act act)
{
    return act == ACT_RELU || act == ACT_RELU6;
}

static Status activation_plan(Op *op, Desc preferred[SPEC_INPUTS])
{
    OpSpec *spec = &op->spec;
    if (!cuda_inputs_fit(op, preferred)) return OK;
    spec->y = cuda_desc(op, spec->y.shape);
    op->needs_y = op->y_inplace = act_reads_y(spec->act);
    op->needs_x[0] = !op->needs_y;
    op->dx_inplace = true;
    op->flops_forward = op->flops_backward = (double)shape_count(spec->y.shape);
    return OK;
}

static void activation_forward(Op *op, const OpRun *run)
{
    cuda_check(launch_activation(cuda_stream(op), op->spec.y.dtype, op->spec.act, run->y, run->x[0],
                                 shape_count(op->spec.y.shape)),
               "kernel activation");
}

static void activation_backward_data(Op *op, const OpRun *run)
{
    if (!run->dx[0]) return;
    const void *at = act_reads_y(op->spec.act) ? run->y : run->x[0];
    cuda_check(launch_activation_backward(cuda_stream(op), op->spec.y.dtype, op->spec.act,
                                          run->dx[0], run->dy, at, shape_count(op->spec.y.shape)),
               "kernel activation_backward");
}

const OpTable cuda_activation = {
    .name = "activation",
    .plan = activation_plan,
    .forward = activation_forward,
    .backward_data = activation_backward_data,
};
