/* conv_transpose2d runs the kernels of a convolution from y to x: forward is its gradient of
 * data, the gradient of data its forward, and the weight's gradient its weight's gradient. The
 * bias is added to y in a pass of its own (in bf16 y is rounded before and after it); its
 * gradient is the sum of dy over the pixels of each plane, then over the samples in their order. */
#include "conv2d.h"
#include "linear.h"
#include "sizes.h"
#include "view.h"

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

/* y[N,O,P,Q] = b[O] + the gradient, with respect to its input, of the convolution with weight
 * w[C,O/groups,R,S] from (N,O,P,Q) to (N,C,H,W), for the gradient x[N,C,H,W] of its output
 * (Dumoulin & Visin 2016, "A guide to convolution arithmetic for deep learning", section 4). */
const OpInfo info_conv_transpose2d = {
    .name = "conv_transpose2d",
    .check = transpose_check,
    .macs = transpose_macs,
    .split = SPLIT_NEVER,
    .fuse = FUSE_NEVER,
    .residual = RESIDUAL_NEVER,
    .talks = TALKS_NEVER,
    .tokens = TOKENS_TOGETHER,
    .params = PARAMS_WEIGHT,
    .reads = READS_NOTHING,
    .traffic = TRAFFIC_ONCE,
};

/* Doubles of a plane in the workspace: its sums by channel, and as many that are not used. */
static int64_t plane_doubles(const View *v)
{
    return 2 * (v->block > SIMD_LANES ? v->block : SIMD_LANES);
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
    const View v = view_of(s->y);
    const size_t sums = (size_t)(v.n * v.groups * plane_doubles(&v)) * sizeof(double);
    if (s->w_count > 1 && sums > op->workspace_bytes) op->workspace_bytes = sums;
    op->flops_forward = 2 * transpose_macs(s);
    op->flops_backward = op->flops_forward * (s->need_dx[0] + !s->frozen);
    return OK;
}

typedef struct BiasTask {
    View v;
    DType type;
    /* forward: y and the bias; backward: dy, sums of planes, and db */
    void *y;
    const float *bias;
    double *sums;
    float *db;
} BiasTask;

static BiasTask bias_task(const Op *op)
{
    return (BiasTask){.v = view_of(op->spec.y), .type = op->spec.y.dtype};
}

/* Adds the bias to planes. */
static void add_body(const void *task, int64_t begin, int64_t end)
{
    enum { REPEATED = 256 };
    const BiasTask *t = task;
    const View *v = &t->v;
    const SimdTable *simd = simd_table(t->type);
    float bias[REPEATED];
    for (int64_t i = begin; i < end; ++i) {
        const int64_t g = i % v->groups;
        const float *b = t->bias + g * v->block;
        const int lanes = view_lanes(v, g);
        void *y = element_out(t->y, i * v->plane, t->type);
        if (v->block > REPEATED) {
            for (int64_t p = 0; p < v->hw; ++p) {
                void *pixel = element_out(y, p * v->block, t->type);
                simd->add_floats(pixel, pixel, b, lanes);
            }
            continue;
        }
        const int64_t whole = REPEATED / v->block * v->block;
        for (int k = 0; k < whole; ++k) bias[k] = k % v->block < lanes ? b[k % v->block] : 0;
        for (int64_t at = 0; at < v->plane; at += whole) {
            void *part = element_out(y, at, t->type);
            simd->add_floats(part, part, bias, least(whole, v->plane - at));
        }
    }
}

/* Sums planes of dy by channel. */
static void sum_body(const void *task, int64_t begin, int64_t end)
{
    const BiasTask *t = task;
    const View *v = &t->v;
    const SimdTable *simd = simd_table(t->type);
    for (int64_t i = begin; i < end; ++i) {
        double *sum = t->sums + i * plane_doubles(v), *square = sum + plane_doubles(v) / 2;
        const void *dy = element_at(t->y, i * v->plane, t->type);
        memset(sum, 0, (size_t)plane_doubles(v) * sizeof *sum);
        if (SIMD_LANES % v->block) {
            simd->batch_norm_stats(dy, v->hw, v->block, sum, square);
            continue;
        }
        const int64_t rows = v->plane / SIMD_LANES, rest = v->plane - rows * SIMD_LANES;
        simd->batch_norm_stats(dy, rows, SIMD_LANES, sum, square);
        simd->batch_norm_stats(element_at(dy, rows * SIMD_LANES, t->type), rest / v->block,
                               v->block, sum, square);
        for (int l = v->block; l < SIMD_LANES; ++l) sum[l % v->block] += sum[l];
    }
}

/* Adds the sums of the samples, for blocks of channels. */
static void join_body(const void *task, int64_t begin, int64_t end)
{
    const BiasTask *t = task;
    const View *v = &t->v;
    for (int64_t g = begin; g < end; ++g)
        for (int l = 0; l < view_lanes(v, g); ++l) {
            double sum = 0;
            for (int64_t n = 0; n < v->n; ++n)
                sum += t->sums[(n * v->groups + g) * plane_doubles(v) + l];
            t->db[g * v->block + l] = (float)sum;
        }
}

static void transpose_forward(Op *op, const OpRun *run)
{
    OpRun conv = *run;
    conv.dx[0] = run->y;
    conv.dy = (void *)(uintptr_t)run->x[0];
    linear_backward_data(op, &conv);
    if (op->spec.w_count < 2) return;
    BiasTask t = bias_task(op);
    t.y = run->y;
    t.bias = run->w[1];
    work_run(add_body, &t, t.v.n * t.v.groups, t.v.n * t.v.sample);
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
    if (op->spec.w_count < 2) return;
    BiasTask t = bias_task(op);
    t.y = run->dy;
    t.sums = run->workspace;
    t.db = run->dw[1];
    work_run(sum_body, &t, t.v.n * t.v.groups, t.v.n * t.v.sample);
    work_run(join_body, &t, t.v.groups, t.v.n * t.v.groups * t.v.block);
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
