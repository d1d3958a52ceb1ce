/* conv_transpose2d runs the kernels of a convolution that has y as its input and x as its output.
 * Forward runs that convolution's kernel for the gradient of its input; the gradient of x runs its
 * forward kernel; and the gradient of the weight runs its kernel for the gradient of the weight.
 * The bias is added to y by a pass of norm/norm_pass.h (in bf16, y is rounded before and after that
 * pass). The gradient of the bias is the sum of dy over the pixels of each plane, then over the
 * samples in their order. */
#include "conv2d.h"
#include "../dnnl/linear.h"
#include "../norm/norm_pass.h"

static Status transpose_check(const OpSpec *s)
{
    char a[64], b[64], c[64];
    const int64_t *x = s->x[0].shape.dim, *y = s->y.shape.dim, *w = s->w[0].dim;
    const int64_t groups = s->groups > 1 ? s->groups : 1;
    bool fits = s->x[0].shape.ndim == 4 && s->y.shape.ndim == 4 && s->w[0].ndim == 4 &&
                x[1] == w[0] && y[1] == w[1] * groups && x[1] % groups == 0;
    for (int d = 0; d < 2; ++d)
        fits = fits && w[2 + d] == s->kernel[d] && s->stride[d] > 0 && s->output_pad[d] >= 0 &&
               s->output_pad[d] < s->stride[d] &&
               y[2 + d] ==
                   (x[2 + d] - 1) * s->stride[d] - 2 * s->pad[d] + s->kernel[d] + s->output_pad[d];
    if (fits) return OK;
    return fail(ERR_CONFIG,
                "conv_transpose2d: input %s, weight %s, %d groups and output %s do not match",
                shape_text(s->x[0].shape, a), shape_text(s->w[0], b), (int)groups,
                shape_text(s->y.shape, c));
}

static double transpose_macs(const OpSpec *s)
{
    return (double)shape_count(s->x[0].shape) * (double)s->w[0].dim[1] * s->kernel[0] *
           s->kernel[1];
}

/* Consider a convolution from (N,O,P,Q) to (N,C,H,W) with weight w[C,O/groups,R,S]. If x[N,C,H,W]
 * is the gradient of its output, y[N,O,P,Q] is the gradient of its input plus b[O] (Dumoulin &
 * Visin 2016, "A guide to convolution arithmetic for deep learning", section 4). */
const OpInfo info_conv_transpose2d = {
    .name = "conv_transpose2d",
    .check = transpose_check,
    .macs = transpose_macs,
    .split = SPLIT_NEVER,
    .fuse = FUSE_NEVER,
    .residual = RESIDUAL_NEVER,
    .communication = COMMUNICATES_NEVER,
    .tokens = TOKENS_TOGETHER,
    .params = PARAMS_WEIGHT,
    .reads = READS_NOTHING,
    .traffic = TRAFFIC_ONCE,
    .dx = DX_WRITTEN,
    .acts = ACTS_NONE,
};

/* Returns the plan of the passes over y or dy. A part is a sample. */
static NormPlan bias_plan(const Op *op)
{
    NormPlan plan = norm_plan(op->spec.y);
    plan.parts = plan.v.n;
    return plan;
}

static Status transpose_plan(Op *op, Desc preferred[SPEC_INPUTS])
{
    OpSpec *s = &op->spec;
    ConvBlocks blocks;
    OpSpec conv = *s;
    preferred[0] = in_precision(op, s->x[0]);
    conv.x[0] = desc_plain(s->y.shape, preferred[0].dtype);
    conv.y = desc_plain(s->x[0].shape, preferred[0].dtype);
    conv.w_count = 1;
    conv.need_dx[0] = true;
    TRY(conv_plan_linear(op, &conv, &blocks));
    preferred[0].block = blocks.y;
    s->y.dtype = preferred[0].dtype;
    s->y.block = blocks.x;
    const NormPlan plan = bias_plan(op);
    const size_t passes = norm_workspace_bytes(&plan, 1);
    if (s->w_count > 1 && passes > op->workspace_bytes) op->workspace_bytes = passes;
    op->flops_forward = 2 * transpose_macs(s);
    op->flops_backward = op->flops_forward * (s->need_dx[0] + !s->frozen);
    return OK;
}

/* Adds the bias to y. */
static void add_bias(const Op *op, const OpRun *run)
{
    const NormPlan plan = bias_plan(op);
    OpRun from_y = *run;
    from_y.x[0] = run->y;
    NormTask t = norm_task(op, &from_y, &plan, 1, 0);
    for (int64_t c = 0; c < plan.padded; ++c) {
        const bool real = c < plan.v.channels;
        norm_coef_set(&t, 0, c,
                      (double[COEFS]){[COEF_X] = 1, [COEF_SHIFT] = real ? run->w[1][c] : 0});
    }
    t.map = norm_apply;
    work_run(norm_map_body, &t, plan.v.n * plan.v.groups, plan.v.n * plan.v.sample);
}

/* Sets the gradient of the bias to the sums of dy. */
static void sum_bias(const Op *op, const OpRun *run)
{
    const NormPlan plan = bias_plan(op);
    OpRun from_dy = *run;
    from_dy.x[0] = run->dy;
    NormTask t = norm_task(op, &from_dy, &plan, 1, 0);
    t.sum = norm_stats;
    work_run(norm_sum_body, &t, plan.v.n * plan.v.groups, plan.v.n * plan.v.sample);
    for (int64_t c = 0; c < plan.v.channels; ++c) run->dw[1][c] = (float)norm_total(&t, c, 0);
}

static void transpose_forward(Op *op, const OpRun *run)
{
    OpRun conv = *run;
    conv.dx[0] = run->y;
    conv.dy = (void *)(uintptr_t)run->x[0];
    linear_backward_data(op, &conv);
    if (op->spec.w_count > 1) add_bias(op, run);
}

static void transpose_backward_data(Op *op, const OpRun *run)
{
    OpRun conv = *run;
    if (!run->dx[0]) return;
    conv.x[0] = run->dy;
    conv.y = run->dx[0];
    conv.w[1] = NULL;
    linear_forward(op, &conv);
}

static void transpose_backward_weight(Op *op, const OpRun *run)
{
    OpRun conv = *run;
    conv.x[0] = run->dy;
    conv.dy = (void *)(uintptr_t)run->x[0];
    conv.dw[1] = NULL;
    linear_backward_weight(op, &conv);
    if (op->spec.w_count > 1) sum_bias(op, run);
}

const OpTable cpu_conv_transpose2d = {
    .name = "conv_transpose2d",
    .plan = transpose_plan,
    .refresh = linear_refresh,
    .forward = transpose_forward,
    .backward_data = transpose_backward_data,
    .backward_weight = transpose_backward_weight,
    .pack = linear_pack,
    .unpack = linear_unpack,
    .stored_plain = linear_stored_plain,
    .free = linear_free,
};
