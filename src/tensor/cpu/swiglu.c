/* swiglu: for each row of x, y = silu(first half) * second half. */
#include "view.h"

typedef struct SwigluTask {
    DType type;
    /* elements of a row of y */
    int64_t width;
    /* y, or in backward dx */
    void *out;
    /* NULL in forward */
    const void *dy;
    const void *x;
} SwigluTask;

static Status swiglu_check(const OpSpec *s)
{
    char a[64], b[64];
    Shape half = s->x[0].shape;
    const bool even = half.dim[half.ndim - 1] % 2 == 0;
    half.dim[half.ndim - 1] /= 2;
    if (half.ndim < 4 && even && shape_equal(half, s->y.shape)) return OK;
    return fail(ERR_CONFIG, "swiglu: input %s and output %s do not match",
                shape_text(s->x[0].shape, a), shape_text(s->y.shape, b));
}

/* y = silu(gate) * value (Shazeer 2020). x (N,2F) or (N,T,2F) has gate and value side by side; y is
 * (N,F) or (N,T,F). */
const OpInfo info_swiglu = {
    .name = "swiglu",
    .check = swiglu_check,
    .split = SPLIT_HALVES,
    .fuse = FUSE_NEVER,
    .residual = RESIDUAL_NEVER,
    .communication = COMMUNICATES_NEVER,
    .tokens = TOKENS_SEPARATE,
    .params = PARAMS_NONE,
    .reads = READS_NOTHING,
    .traffic = TRAFFIC_ONCE,
    .dx = DX_WRITTEN,
    .acts = ACTS_NONE,
};

static Status swiglu_plan(Op *op, Desc preferred[SPEC_INPUTS])
{
    OpSpec *s = &op->spec;
    preferred[0] = in_precision(op, layout_plain(s->x[0]));
    s->y = desc_plain(s->y.shape, preferred[0].dtype);
    op->needs_x[0] = true;
    return OK;
}

static void forward_body(const void *task, int64_t begin, int64_t end)
{
    const SwigluTask *t = task;
    const int64_t n = t->width;
    for (int64_t r = begin; r < end; ++r)
        simd_table(t->type)->swiglu(element_out(t->out, r * n, t->type),
                                    element_at(t->x, 2 * r * n, t->type), n);
}

static void grad_body(const void *task, int64_t begin, int64_t end)
{
    const SwigluTask *t = task;
    const int64_t n = t->width;
    for (int64_t r = begin; r < end; ++r)
        simd_table(t->type)->swiglu_grad(element_out(t->out, 2 * r * n, t->type),
                                         element_at(t->dy, r * n, t->type),
                                         element_at(t->x, 2 * r * n, t->type), n);
}

static void swiglu_run(const Op *op, WorkBody body, void *out, const void *dy, const void *x)
{
    const Shape y = op->spec.y.shape;
    const SwigluTask t = {
        .type = op->spec.y.dtype, .width = y.dim[y.ndim - 1], .out = out, .dy = dy, .x = x};
    work_run(body, &t, shape_count(y) / t.width, shape_count(y));
}

static void swiglu_forward(Op *op, const OpRun *run)
{
    swiglu_run(op, forward_body, run->y, NULL, run->x[0]);
}

static void swiglu_backward_data(Op *op, const OpRun *run)
{
    if (run->dx[0]) swiglu_run(op, grad_body, run->dx[0], run->dy, run->x[0]);
}

const OpTable cpu_swiglu = {
    .name = "swiglu",
    .plan = swiglu_plan,
    .forward = swiglu_forward,
    .backward_data = swiglu_backward_data,
};
