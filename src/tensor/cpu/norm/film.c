/* film: y = x (1 + s) + t (Perez et al. 2018). The second input has, for each sample, the factors s
 * of all channels, then the shifts t of all channels. film uses the passes of the norms, with
 * coefficients made of s and t. A part is a sample. The gradients of s and t are sums over the
 * pixels of a sample, in the order of memory, so any number of threads gives the same bits. */
#include "norm_pass.h"
#include "../vectors.h"

static Status film_check(const OpSpec *s)
{
    char a[64], b[64];
    const Shape x = s->x[0].shape, by = s->x[1].shape;
    if (s->x_count == 2 && x.ndim == 4 && by.ndim == 2 && by.dim[0] == x.dim[0] &&
        by.dim[1] == 2 * x.dim[1])
        return OK;
    return fail(ERR_CONFIG, "film: inputs of shapes %s and %s do not match", shape_text(x, a),
                shape_text(by, b));
}

/* x0 (N,C,H,W), x1 (N,2C): y[n,c] = x0[n,c] (1 + x1[n,c]) + x1[n,C+c]. */
const OpInfo info_film = {
    .name = "film",
    .check = film_check,
    .split = SPLIT_NEVER,
    .fuse = FUSE_NEVER,
    .residual = RESIDUAL_NEVER,
    .communication = COMMUNICATES_NEVER,
    .tokens = TOKENS_TOGETHER,
    .params = PARAMS_NONE,
    .reads = READS_NOTHING,
    .traffic = TRAFFIC_ONCE,
    .dx = DX_WRITTEN,
    .acts = ACTS_NONE,
};

static Status film_plan(Op *op, Desc preferred[SPEC_INPUTS])
{
    OpSpec *s = &op->spec;
    preferred[0] = s->y = in_precision(op, s->x[0]);
    preferred[1] = layout_plain(in_precision(op, s->x[1]));
    NormPlan *plan = op->impl = mem_new(sizeof *plan);
    *plan = norm_plan(s->y);
    plan->parts = plan->v.n;
    op->workspace_bytes = norm_workspace_bytes(plan, plan->parts) +
                          (size_t)(plan->v.n * 2 * plan->v.channels) * sizeof(float);
    op->needs_x[0] = op->needs_x[1] = op->dx_inplace = true;
    return OK;
}

static void impl_free(Op *op)
{
    mem_free(&op->impl);
}

/* Returns the task with the coefficients of y, or in backward of dx. Sets *rows to scratch for the
 * second input or its gradient, a float for each element. */
static NormTask task_of(const Op *op, const OpRun *run, bool backward, float **rows)
{
    const NormPlan *plan = op->impl;
    const NormTask t = norm_task(op, run, plan, plan->parts > 1 ? plan->parts : 1, 0);
    const int64_t channels = plan->v.channels, padded = plan->padded;
    *rows = t.coef + plan->parts * COEFS * padded;
    for (int64_t n = 0; n < run->sample_count; ++n) {
        const float *s = row_floats(run->x[1], n, 2 * channels, plan->type, *rows);
        for (int64_t c = 0; c < padded; ++c) {
            const bool real = c < channels;
            const double by = real ? 1.0 + (double)s[c] : 0.0;
            const double add = real && !backward ? (double)s[channels + c] : 0.0;
            norm_coef_set(&t, n, c,
                          (double[COEFS]){[COEF_X] = backward ? 0.0 : by,
                                          [COEF_SHIFT] = add,
                                          [COEF_DY] = backward ? by : 0.0});
        }
    }
    return t;
}

static void film_forward(Op *op, const OpRun *run)
{
    float *rows;
    NormTask t = task_of(op, run, false, &rows);
    const View *v = &t.plan->v;
    t.map = norm_apply;
    work_run(norm_map_body, &t, v->n * v->groups, v->n * v->sample);
}

/* An item of work_run is a block of channels in a sample. Its sums are computed before its dx,
 * because dx may share the memory of dy. */
static void backward_body(const void *task, int64_t begin, int64_t end)
{
    const NormTask *t = task;
    if (t->sum && t->map) {
        for (int64_t i = begin; i < end; ++i) {
            norm_sum_body(task, i, i + 1);
            norm_map_body(task, i, i + 1);
        }
    } else if (t->sum) {
        norm_sum_body(task, begin, end);
    } else {
        norm_map_body(task, begin, end);
    }
}

/* Writes the gradient of the second input from the sums of each sample and channel. rows: scratch
 * from task_of. */
static void write_sums(const NormTask *t, float *rows)
{
    const int64_t channels = t->plan->v.channels, width = 2 * channels, padded = t->plan->padded;
    for (int64_t n = 0; n < t->plan->v.n; ++n) {
        const double *dy = t->sums + 2 * n * padded, *dy_x = dy + padded;
        float *row = row_open(t->run->dx[1], n, width, t->plan->type, rows);
        for (int64_t c = 0; c < channels; ++c) {
            row[c] = (float)dy_x[c];
            row[channels + c] = (float)dy[c];
        }
        row_close(t->run->dx[1], n, width, t->plan->type, row);
    }
}

static void film_backward_data(Op *op, const OpRun *run)
{
    if (!run->dx[0] && !run->dx[1]) return;
    float *rows;
    NormTask t = task_of(op, run, true, &rows);
    const View *v = &t.plan->v;
    t.sum = run->dx[1] ? norm_grad_sums : NULL;
    t.map = run->dx[0] ? norm_grad : NULL;
    work_run(backward_body, &t, v->n * v->groups, 2 * v->n * v->sample);
    if (run->dx[1]) write_sums(&t, rows);
}

const OpTable cpu_film = {
    .name = "film",
    .plan = film_plan,
    .forward = film_forward,
    .backward_data = film_backward_data,
    .free = impl_free,
};
