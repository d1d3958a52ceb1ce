/* activation, add, flatten: one kernel, or none. */
#include "cuda.h"

static void nothing_free(Op *op)
{
    (void)op;
}

static bool act_reads_y(Act act)
{
    return act == ACT_RELU || act == ACT_RELU6;
}

static Status act_plan(Op *op, Desc wish[OP_INPUTS])
{
    OpSpec *spec = &op->spec;
    if (!cuda_inputs_plain(op, wish)) return OK;
    spec->y = desc_plain(spec->y.shape, DTYPE_F32);
    op->needs_y = op->y_inplace = act_reads_y(spec->act);
    op->needs_x[0] = !op->needs_y;
    op->dx_inplace = true;
    op->flops_forward = op->flops_backward = (double)shape_count(spec->y.shape);
    return OK;
}

static void act_forward(Op *op, const OpRun *run)
{
    cuda_check(cuda_activation(cuda_stream(op), op->spec.act, run->y, run->x[0],
                               shape_count(op->spec.y.shape)),
               "kernel activation");
}

static void act_backward_data(Op *op, const OpRun *run)
{
    if (!run->dx[0]) return;
    const float *at = act_reads_y(op->spec.act) ? run->y : run->x[0];
    cuda_check(cuda_activation_backward(cuda_stream(op), op->spec.act, run->dx[0], run->dy, at,
                                        shape_count(op->spec.y.shape)),
               "kernel activation_backward");
}

const OpTable cuda_act = {
    .name = "activation",
    .plan = act_plan,
    .forward = act_forward,
    .backward_data = act_backward_data,
    .free = nothing_free,
};

/* y = act(x0 + x1 + ...); every dx is dy, masked by the fused activation. */
static Status sum_plan(Op *op, Desc wish[OP_INPUTS])
{
    OpSpec *spec = &op->spec;
    if (!cuda_inputs_plain(op, wish)) return OK;
    if (spec->act != ACT_NONE && !act_reads_y(spec->act))
        return fail(ERR_BUG, "cuda: add runs with relu or relu6 fused, with no other activation");
    spec->y = desc_plain(spec->y.shape, DTYPE_F32);
    op->needs_y = spec->act != ACT_NONE;
    op->y_inplace = true;
    for (int i = 0; i < spec->x_count; ++i) op->dx_alias[i] = true;
    op->flops_forward = (double)(spec->x_count - 1) * (double)shape_count(spec->y.shape);
    return OK;
}

static void sum_forward(Op *op, const OpRun *run)
{
    int64_t n = shape_count(op->spec.y.shape);
    const float *sum = run->x[0];
    for (int i = 1; i < op->spec.x_count; ++i, sum = run->y)
        cuda_check(cuda_add(cuda_stream(op), run->y, sum, run->x[i], n), "kernel add");
    if (op->spec.act != ACT_NONE)
        cuda_check(cuda_activation(cuda_stream(op), op->spec.act, run->y, run->y, n),
                   "kernel activation");
}

static void sum_backward_begin(Op *op, const OpRun *run)
{
    if (op->spec.act == ACT_NONE) return;
    cuda_check(cuda_activation_backward(cuda_stream(op), op->spec.act, run->dy, run->dy, run->y,
                                        shape_count(op->spec.y.shape)),
               "kernel activation_backward");
}

const OpTable cuda_sum = {
    .name = "add",
    .plan = sum_plan,
    .forward = sum_forward,
    .backward_begin = sum_backward_begin,
    .free = nothing_free,
};

static Status flatten_plan(Op *op, Desc wish[OP_INPUTS])
{
    OpSpec *spec = &op->spec;
    if (!cuda_inputs_plain(op, wish)) return OK;
    spec->y = desc_plain(spec->y.shape, spec->x[0].dtype);
    op->y_alias = op->dx_alias[0] = true;
    return OK;
}

static void flatten_forward(Op *op, const OpRun *run)
{
    (void)op; /* y is x */
    (void)run;
}

const OpTable cuda_flatten = {
    .name = "flatten",
    .plan = flatten_plan,
    .forward = flatten_forward,
    .free = nothing_free,
};
