/* layer_norm and rms_norm over the last dimension. Forward and dx compute each row independently;
 * the gradients of the parameters are sums over rows (token_sums.h). */
#include "../token_sums.h"

/* y = x / sqrt(mean(x^2) + eps) * w0 over the last dimension (Zhang & Sennrich 2019) */
const OpInfo info_rms_norm = {
    .name = "rms_norm",
    .split = SPLIT_NEVER,
    .fuse = FUSE_NEVER,
    .residual = RESIDUAL_NEVER,
    .communication = COMMUNICATES_NEVER,
    .tokens = TOKENS_SUMMED,
    .params = PARAMS_NORM,
    .reads = READS_NOTHING,
    .traffic = TRAFFIC_ONCE,
    .dx = DX_WRITTEN,
    .acts = ACTS_NONE,
};

typedef struct LayerNorm {
    /* number of samples */
    int64_t n;
    /* rows of all samples */
    int64_t rows;
    /* elements of a row */
    int64_t width;
    TokenSums sums;
} LayerNorm;

typedef struct LayerNormTask {
    const Op *op;
    const OpRun *run;
    const LayerNorm *plan;
    /* number of rows of samples that are not padding */
    int64_t real;
    void (*forward)(LayerNormRow *row);
    void (*grad)(const LayerNormRow *row);
    void (*sums)(const LayerNormRow *row, float *dscale, float *dshift);
} LayerNormTask;

static Status layer_norm_plan(Op *op, Desc preferred[SPEC_INPUTS])
{
    OpSpec *s = &op->spec;
    preferred[0] = s->y = in_precision(op, layout_plain(s->x[0]));
    Shape x = s->x[0].shape;
    LayerNorm *plan = op->impl = mem_new(sizeof *plan);
    plan->n = x.dim[0];
    plan->width = x.dim[x.ndim - 1];
    plan->rows = shape_count(x) / plan->width;
    plan->sums = token_sums_plan(&s->token_slices, x, s->w_count);
    for (int i = 0; i < s->w_count; ++i) op->w_elements[i] = plan->width;
    op->saved_bytes = (size_t)(2 * plan->rows) * sizeof(float);
    op->workspace_bytes = token_sums_bytes(&plan->sums);
    op->needs_x[0] = true;
    op->dx_inplace = true;
    return OK;
}

static void impl_free(Op *op)
{
    mem_free(&op->impl);
}

static LayerNormTask task_of(Op *op, const OpRun *run)
{
    const LayerNorm *plan = op->impl;
    const SimdTable *simd = simd_table(op->spec.y.dtype);
    const bool rms = op_info(op->spec.kind) == &info_rms_norm;
    return (LayerNormTask){.op = op,
                           .run = run,
                           .plan = plan,
                           .real = plan->rows / plan->n * run->sample_count,
                           .forward = rms ? simd->rms_norm_forward : simd->layer_norm_forward,
                           .grad = rms ? simd->rms_norm_grad : simd->layer_norm_grad,
                           .sums = rms ? simd->rms_norm_sums : simd->layer_norm_sums};
}

static LayerNormRow row_at(const LayerNormTask *t, int64_t r)
{
    const OpRun *run = t->run;
    int64_t at = r * t->plan->width;
    const DType type = t->op->spec.y.dtype;
    const float *saved = run->saved;
    return (LayerNormRow){.x = element_at(run->x[0], at, type),
                          .y = run->y ? element_out(run->y, at, type) : NULL,
                          .dy = run->dy ? element_at(run->dy, at, type) : NULL,
                          .dx = run->dx[0] ? element_out(run->dx[0], at, type) : NULL,
                          .scale = run->w[0],
                          .shift = run->w[1],
                          .width = t->plan->width,
                          .eps = t->op->spec.eps,
                          .mean = saved[2 * r],
                          .inverse = saved[2 * r + 1]};
}

static void forward_body(const void *task, int64_t begin, int64_t end)
{
    const LayerNormTask *t = task;
    const DType type = t->op->spec.y.dtype;
    float *saved = t->run->saved;
    for (int64_t r = begin; r < end; ++r) {
        LayerNormRow row = row_at(t, r);
        if (r < t->real)
            t->forward(&row);
        else {
            elements_zero(row.y, row.width, type);
            row.mean = row.inverse = 0.0f;
        }
        saved[2 * r] = row.mean;
        saved[2 * r + 1] = row.inverse;
    }
}

static void layer_norm_forward(Op *op, const OpRun *run)
{
    LayerNormTask t = task_of(op, run);
    work_run(forward_body, &t, t.plan->rows, t.plan->rows * t.plan->width);
}

static void grad_body(const void *task, int64_t begin, int64_t end)
{
    const LayerNormTask *t = task;
    const DType type = t->op->spec.y.dtype;
    for (int64_t r = begin; r < end; ++r) {
        LayerNormRow row = row_at(t, r);
        if (r < t->real)
            t->grad(&row);
        else
            elements_zero(row.dx, row.width, type);
    }
}

static void layer_norm_backward_data(Op *op, const OpRun *run)
{
    LayerNormTask t = task_of(op, run);
    if (run->dx[0]) work_run(grad_body, &t, t.plan->rows, t.plan->rows * t.plan->width);
}

/* Adds a row's terms to the gradient of the scale, sum[width], and to the gradient of the shift,
 * which follows it. rms_norm has no shift. */
static void add_row(const void *task, int64_t r, float *sum)
{
    const LayerNormTask *t = task;
    LayerNormRow row = row_at(t, r);
    t->sums(&row, sum, sum + t->plan->width);
}

static void layer_norm_backward_weight(Op *op, const OpRun *run)
{
    LayerNormTask t = task_of(op, run);
    token_sums_run(&t.plan->sums, run, add_row, &t, run->workspace, 0);
}

const OpTable cpu_layer_norm = {
    .name = "layer_norm",
    .plan = layer_norm_plan,
    .forward = layer_norm_forward,
    .backward_data = layer_norm_backward_data,
    .backward_weight = layer_norm_backward_weight,
    .free = impl_free,
};

const OpTable cpu_rms_norm = {
    .name = "rms_norm",
    .plan = layer_norm_plan,
    .forward = layer_norm_forward,
    .backward_data = layer_norm_backward_data,
    .backward_weight = layer_norm_backward_weight,
    .free = impl_free,
};
