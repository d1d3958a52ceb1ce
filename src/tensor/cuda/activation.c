/* The operation activation: one kernel forward and one backward. The backward kernel reads the
 * output if the activation has ACT_FROM_Y, else the input. */
#include "cuda.h"

static Status activation_plan(Op *op, Desc preferred[SPEC_INPUTS])
{
    OpSpec *spec = &op->spec;
    if (!cuda_inputs_fit(op, preferred)) return OK;
    spec->y = cuda_desc(op, spec->y.shape);
    op->needs_y = op->y_inplace = act_facts(spec->act) & ACT_FROM_Y;
    op->needs_x[0] = !op->needs_y;
    op->dx_inplace = true;
    op->flops_forward = op->flops_backward = (double)shape_count(spec->y.shape);
    return OK;
}

static void activation_forward(Op *op, const OpRun *run)
{
    const OpSpec *s = &op->spec;
    cuda_check(launch_activation(cuda_stream(op), s->y.dtype, s->act, s->act_factor, run->y,
                                 run->x[0], shape_count(s->y.shape)),
               "kernel activation");
}

static void activation_backward_data(Op *op, const OpRun *run)
{
    if (!run->dx[0]) return;
    const OpSpec *s = &op->spec;
    const void *at = op->needs_y ? run->y : run->x[0];
    cuda_check(launch_activation_backward(cuda_stream(op), s->y.dtype, s->act, s->act_factor,
                                          run->dx[0], run->dy, at, shape_count(s->y.shape)),
               "kernel activation_backward");
}

const OpTable cuda_activation = {
    .name = "activation",
    .plan = activation_plan,
    .forward = activation_forward,
    .backward_data = activation_backward_data,
};
