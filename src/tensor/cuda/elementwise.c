/* activation, add, flatten, dropout: one kernel, or none. */
#include "../sliced.h"
#include "cuda.h"

static bool act_reads_y(Act act)
{
    return act == ACT_RELU || act == ACT_RELU6;
}

static Status act_plan(Op *op, Desc preferred[OP_INPUTS])
{
    OpSpec *spec = &op->spec;
    if (!cuda_inputs(op, preferred)) return OK;
    spec->y = cuda_desc(op, spec->y.shape);
    op->needs_y = op->y_inplace = act_reads_y(spec->act);
    op->needs_x[0] = !op->needs_y;
    op->dx_inplace = true;
    op->flops_forward = op->flops_backward = (double)shape_count(spec->y.shape);
    return OK;
}

static void act_forward(Op *op, const OpRun *run)
{
    cuda_check(cuda_activation(cuda_stream(op), op->spec.y.dtype, op->spec.act, run->y, run->x[0],
                               shape_count(op->spec.y.shape)),
               "kernel activation");
}

static void act_backward_data(Op *op, const OpRun *run)
{
    if (!run->dx[0]) return;
    const void *at = act_reads_y(op->spec.act) ? run->y : run->x[0];
    cuda_check(cuda_activation_backward(cuda_stream(op), op->spec.y.dtype, op->spec.act, run->dx[0],
                                        run->dy, at, shape_count(op->spec.y.shape)),
               "kernel activation_backward");
}

const OpTable cuda_act = {
    .name = "activation",
    .plan = act_plan,
    .forward = act_forward,
    .backward_data = act_backward_data,
};

/* y = act(x0 + x1 + ...); every dx is dy, masked by the fused activation. */
static Status sum_plan(Op *op, Desc preferred[OP_INPUTS])
{
    OpSpec *spec = &op->spec;
    if (!cuda_inputs(op, preferred)) return OK;
    spec->y = cuda_desc(op, spec->y.shape);
    op->needs_y = spec->act != ACT_NONE;
    op->y_inplace = true;
    for (int i = 0; i < spec->x_count; ++i) op->dx_alias[i] = true;
    op->flops_forward = (double)(spec->x_count - 1) * (double)shape_count(spec->y.shape);
    return OK;
}

static void sum_forward(Op *op, const OpRun *run)
{
    const OpSpec *spec = &op->spec;
    int64_t n = shape_count(spec->y.shape);
    const void *sum = run->x[0];
    for (int i = 1; i < spec->x_count; ++i, sum = run->y)
        cuda_check(cuda_sum(cuda_stream(op), spec->y.dtype,
                            i + 1 < spec->x_count ? ACT_NONE : spec->act, run->y, sum, run->x[i],
                            n),
                   "kernel sum");
}

static void sum_backward_begin(Op *op, const OpRun *run)
{
    if (op->spec.act == ACT_NONE) return;
    cuda_check(cuda_activation_backward(cuda_stream(op), op->spec.y.dtype, op->spec.act, run->dy,
                                        run->dy, run->y, shape_count(op->spec.y.shape)),
               "kernel activation_backward");
}

const OpTable cuda_plus = {
    .name = "add",
    .plan = sum_plan,
    .forward = sum_forward,
    .backward_begin = sum_backward_begin,
};

/* An image stays as it lies. */
static Status flatten_plan(Op *op, Desc preferred[OP_INPUTS])
{
    OpSpec *spec = &op->spec;
    const Desc x = spec->x[0];
    bool image = x.shape.ndim == 4 && x.shape.dim[2] * x.shape.dim[3] > 1;
    preferred[0] = cuda_desc(op, x.shape);
    if (image) preferred[0].block = x.block;
    if (!desc_equal(x, preferred[0])) return OK;
    spec->y = desc_plain(spec->y.shape, x.dtype);
    if (image && x.block > 1) {
        spec->y.flat = true;
        spec->y.block = x.block;
        spec->y.image = x.shape;
    }
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
};

static Status drop_plan(Op *op, Desc preferred[OP_INPUTS])
{
    OpSpec *s = &op->spec;
    if (!cuda_inputs(op, preferred)) return OK;
    s->y = cuda_desc(op, s->y.shape);
    op->y_inplace = op->dx_inplace = true;
    return OK;
}

static void drop_run(const Op *op, const OpRun *run, const void *from, void *to)
{
    const OpSpec *s = &op->spec;
    int64_t n = shape_count(s->y.shape), samples = s->y.shape.dim[0];
    int64_t channels = s->y.shape.ndim == 4 ? s->y.shape.dim[1] : 1;
    if (!run->training || s->drop == 0.0f) {
        if (from != to)
            CUDA_CALL(
                cudaMemcpyAsync(to, from, desc_bytes(s->y), cudaMemcpyDefault, cuda_stream(op)));
        return;
    }
    SampleSlice slice = sample_slice(s);
    DropoutRun drop = {.type = s->y.dtype,
                       .from = from,
                       .to = to,
                       .sample = run->sample,
                       .seed = run->seed,
                       .step = run->step,
                       .numbers = run->numbers,
                       .name = s->seed_name,
                       .purpose = RNG_DROPOUT,
                       .cut = (uint32_t)((double)s->drop * 0x1p24),
                       .scale = (float)(1.0 / (1.0 - (double)s->drop)),
                       .samples = samples,
                       .sample_elements = n / samples,
                       .channels = channels,
                       .pixels = n / samples / channels,
                       .run = slice.run,
                       .stride = slice.stride,
                       .first = slice.first};
    cuda_check(cuda_dropout(cuda_stream(op), drop), "kernel dropout");
}

static void drop_forward(Op *op, const OpRun *run)
{
    drop_run(op, run, run->x[0], run->y);
}

static void drop_backward_data(Op *op, const OpRun *run)
{
    if (run->dx[0]) drop_run(op, run, run->dy, run->dx[0]);
}

const OpTable cuda_drop = {
    .name = "dropout",
    .plan = drop_plan,
    .forward = drop_forward,
    .backward_data = drop_backward_data,
};
