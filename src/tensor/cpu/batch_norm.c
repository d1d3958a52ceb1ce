/* batch_norm with fused residual and relu or relu6. Forward reads x twice (statistics, result), and
 * so does backward (sums, dx). The samples are cut into parts by shape alone, and the parts' sums
 * are joined in order, so that any number of threads gives the same bits. If there are enough
 * channel groups, a thread runs one group through both passes, the second in reverse order, while
 * the group is in its cache. backward_begin computes the sums, and masks dy in place if dy is also
 * the residual's gradient; dw and dx then come from `saved`. One bit per element says whether act
 * cut it, so that backward neither reads y nor writes dy. With fixed statistics forward is the same
 * as in evaluation, dx is dy times a constant per channel, and only those bits are saved.
 *
 * If synced, the sums of all replicas' micro-batches are joined between the two passes:
 *
 *     forward          x: sums --- + --- all x: mean, variance ---> y
 *     backward_begin   dy: sums -- + --- all dy: means ----------> saved, for dx
 *                            \---------------------------------> saved, for dw
 *
 * dw is over this micro-batch alone: it is summed over the replicas with all other gradients. */
#include "norm_pass.h"

#include <math.h>
#include <omp.h>
#include <string.h>

/* parts x groups, approximately */
enum { ITEMS = 32 };
enum { SAVED_MEAN, SAVED_REST, SAVED_INVERSE, SAVED_VARIANCE, SAVED_DY, SAVED_DY_X, SAVED };
/* Further rows of `saved` if synced: means of dy and of dy * xhat over all replicas, and the count
 * of numbers in these means. */
enum { SAVED_MEAN_DY = SAVED, SAVED_MEAN_DY_X, SAVED_NUMBERS, SAVED_SYNCED };

/* Floats in `saved` before the bits of act. */
static int64_t saved_floats(const Op *op)
{
    const NormPlan *b = op->impl;
    if (op->spec.fixed_stats) return 0;
    return (op->spec.synced ? SAVED_SYNCED : SAVED) * b->padded;
}

static Status batch_norm_plan(Op *op, Desc preferred[SPEC_INPUTS])
{
    OpSpec *s = &op->spec;
    Desc x = layout_common(s);
    x = in_precision(op, x.flat ? layout_plain(x) : x);
    for (int i = 0; i < s->x_count; ++i) preferred[i] = x;
    s->y = x;
    NormPlan *b = op->impl = mem_new(sizeof *b);
    *b = norm_plan(x);
    int64_t parts = (ITEMS + b->v.groups - 1) / b->v.groups;
    b->parts = parts < b->v.n ? parts : b->v.n;
    for (int i = 0; i < s->w_count; ++i) op->w_elements[i] = shape_count(s->w[i]);
    bool back = !s->fixed_stats || s->need_dx[0] || (s->residual && s->need_dx[1]);
    op->saved_bytes = (size_t)saved_floats(op) * sizeof(float);
    if (s->act != ACT_NONE && back) op->saved_bytes += norm_keep_bytes(b);
    /* two sums per channel, and the count of numbers */
    if (s->synced) op->synced_sums = 2 * b->padded + 1;
    op->workspace_bytes = norm_workspace_bytes(b, 1) + (size_t)op->synced_sums * sizeof(double);
    op->needs_x[0] = !s->fixed_stats;
    op->dx_inplace = !s->residual;
    op->dx_alias[1] = s->residual;
    return OK;
}

static void impl_free(Op *op)
{
    mem_free(&op->impl);
}

static double sums_total(const NormTask *t, int64_t c, int which)
{
    double total = 0.0;
    if (t->total) return t->total[which * t->b->padded + c];
    for (int64_t p = 0; p < t->b->parts; ++p) total += t->sums[(2 * p + which) * t->b->padded + c];
    return total;
}

/* The count of numbers in a channel of this micro-batch. */
static double numbers(const NormTask *t)
{
    return (double)t->run->rows * (double)t->b->v.hw;
}

static void stats_finish(const NormTask *t, int64_t g)
{
    const NormPlan *b = t->b;
    float *saved = t->run->saved;
    double n = t->total ? t->total[2 * b->padded] : numbers(t);
    for (int64_t c = g * b->v.block; c < (g + 1) * b->v.block; ++c) {
        double mean = n > 0.0 ? sums_total(t, c, 0) / n : 0.0;
        double variance = n > 0.0 ? sums_total(t, c, 1) / n - mean * mean : 0.0;
        if (variance < 0.0) variance = 0.0;
        double inverse = 1.0 / sqrt(variance + t->op->spec.eps);
        saved[SAVED_MEAN * b->padded + c] = (float)mean;
        saved[SAVED_REST * b->padded + c] = (float)(mean - (double)(float)mean);
        saved[SAVED_INVERSE * b->padded + c] = (float)inverse;
        if (t->total) saved[SAVED_NUMBERS * b->padded + c] = (float)n;
        if (c >= b->v.channels) {
            norm_coef_set(t, 0, c, (double[COEFS]){0.0});
            continue;
        }
        norm_forward_coef(t, 0, c, mean, inverse);
        saved[SAVED_VARIANCE * b->padded + c] = (float)(n > 1.0 ? variance * (n / (n - 1.0)) : 0.0);
    }
}

static void running_finish(const NormTask *t, int64_t g)
{
    const NormPlan *b = t->b;
    for (int64_t c = g * b->v.block; c < (g + 1) * b->v.block; ++c)
        if (c >= b->v.channels)
            norm_coef_set(t, 0, c, (double[COEFS]){0.0});
        else
            norm_forward_coef(t, 0, c, t->run->w[2][c],
                              1.0 / sqrt((double)t->run->w[3][c] + t->op->spec.eps));
}

static void grad_finish(const NormTask *t, int64_t g)
{
    const NormPlan *b = t->b;
    float *saved = t->run->saved;
    for (int64_t c = g * b->v.block; c < (g + 1) * b->v.block; ++c) {
        double sum = sums_total(t, c, 0), rest = saved[SAVED_REST * b->padded + c];
        double inverse = saved[SAVED_INVERSE * b->padded + c];
        saved[SAVED_DY * b->padded + c] = (float)sum;
        saved[SAVED_DY_X * b->padded + c] = (float)(inverse * (sums_total(t, c, 1) - rest * sum));
    }
}

static void grad_join(const NormTask *t, int64_t g)
{
    const NormPlan *b = t->b;
    float *saved = t->run->saved;
    double n = t->total[2 * b->padded];
    for (int64_t c = g * b->v.block; c < (g + 1) * b->v.block; ++c) {
        double sum = sums_total(t, c, 0), rest = saved[SAVED_REST * b->padded + c];
        double sum_x = saved[SAVED_INVERSE * b->padded + c] * (sums_total(t, c, 1) - rest * sum);
        saved[SAVED_MEAN_DY * b->padded + c] = (float)(n > 0.0 ? sum / n : 0.0);
        saved[SAVED_MEAN_DY_X * b->padded + c] = (float)(n > 0.0 ? sum_x / n : 0.0);
    }
}

/* Coefficients of dx = scale (dy - sum(dy)/n - xhat sum(dy xhat)/n), xhat = (x - mean - rest)
 * inverse, rewritten as linear in dy and x. If synced, saved has means instead of sums. */
static void grad_coef(const NormTask *t, int64_t g)
{
    const NormPlan *b = t->b;
    const float *saved = t->run->saved;
    const bool synced = t->op->spec.synced;
    const float *sum = saved + (synced ? SAVED_MEAN_DY : SAVED_DY) * b->padded;
    const float *sum_x = saved + (synced ? SAVED_MEAN_DY_X : SAVED_DY_X) * b->padded;
    double n = synced ? 1.0 : numbers(t);
    for (int64_t c = g * b->v.block; c < (g + 1) * b->v.block; ++c) {
        if (c >= b->v.channels || n == 0.0) {
            norm_coef_set(t, 0, c, (double[COEFS]){0.0});
            continue;
        }
        double inverse = saved[SAVED_INVERSE * b->padded + c], scale = t->run->w[0][c] * inverse;
        double by_x = -scale * inverse * sum_x[c] / n;
        double shift = -scale * sum[c] / n - by_x * saved[SAVED_REST * b->padded + c];
        norm_coef_set(t, 0, c,
                      (double[COEFS]){saved[SAVED_MEAN * b->padded + c], by_x, shift, scale});
    }
}

static void zero_coef(const NormTask *t, int64_t g)
{
    for (int64_t c = g * t->b->v.block; c < (g + 1) * t->b->v.block; ++c)
        norm_coef_set(t, 0, c, (double[COEFS]){0.0});
}

/* Coefficients of dx = scale dy, with running statistics. */
static void fixed_coef(const NormTask *t, int64_t g)
{
    const float *const *w = t->run->w;
    for (int64_t c = g * t->b->v.block; c < (g + 1) * t->b->v.block; ++c) {
        double scale = 0.0;
        if (c < t->b->v.channels) scale = w[0][c] / sqrt((double)w[3][c] + t->op->spec.eps);
        norm_coef_set(t, 0, c, (double[COEFS]){0.0, 0.0, 0.0, scale});
    }
}

/* Runs both passes over a range of groups. */
static void groups_body(const void *task, int64_t begin, int64_t end)
{
    const NormTask *t = task;
    for (int64_t g = begin; g < end; ++g) {
        for (int64_t p = 0; t->sum && p < t->b->parts; ++p) t->sum(t, p, g);
        t->finish(t, g);
        for (int64_t p = t->b->parts - 1; t->map && p >= 0; --p) t->map(t, p, g);
    }
}

static NormTask task_of(const Op *op, const OpRun *run)
{
    return norm_task(op, run, op->impl, 1, saved_floats(op));
}

static void batch_norm_run(const NormTask *t)
{
    const NormPlan *b = t->b;
    int64_t elements = b->v.n * b->v.sample, threads = omp_get_max_threads();
    if (b->v.groups % threads == 0 || b->v.groups >= 4 * threads) {
        work_run(groups_body, t, b->v.groups, elements);
        return;
    }
    if (t->sum) work_run(norm_sum_body, t, b->parts * b->v.groups, elements);
    for (int64_t g = 0; g < b->v.groups; ++g) t->finish(t, g);
    if (t->map) work_run(norm_map_body, t, b->parts * b->v.groups, elements);
}

/* ---- synced: over all replicas ---- */

/* Computes the sums of this micro-batch in the last bytes of the workspace. */
static void sums_make(NormTask *t)
{
    const NormPlan *b = t->b;
    double *total = (double *)(void *)(t->coef + COEFS * b->padded);
    work_run(norm_sum_body, t, b->parts * b->v.groups, b->v.n * b->v.sample);
    for (int64_t c = 0; c < b->padded; ++c)
        for (int which = 0; which < 2; ++which)
            total[which * b->padded + c] = sums_total(t, c, which);
    total[2 * b->padded] = numbers(t);
    t->total = total;
}

static void sums_join(const NormTask *t)
{
    const Replicas *replicas = t->run->replicas;
    replicas->sum(replicas, t->total, t->op->synced_sums);
}

static void each_group(const NormTask *t, NormFinish finish)
{
    for (int64_t g = 0; g < t->b->v.groups; ++g) finish(t, g);
}

/* ---- the operation ---- */

static void batch_norm_forward(Op *op, const OpRun *run)
{
    NormTask t = task_of(op, run);
    bool measures = run->training && !op->spec.fixed_stats;
    t.sum = measures ? norm_stats : NULL;
    t.finish = measures ? stats_finish : running_finish;
    t.map = norm_apply;
    if (!op->spec.synced || !run->training) {
        batch_norm_run(&t);
        return;
    }
    sums_make(&t);
    sums_join(&t);
    each_group(&t, t.finish);
    work_run(norm_map_body, &t, t.b->parts * t.b->v.groups, t.b->v.n * t.b->v.sample);
}

/* Fixed statistics: masks dy in place if it is also the residual's gradient. The pass also computes
 * sums, which are not used. */
static void fixed_begin(Op *op, const OpRun *run)
{
    NormTask t = task_of(op, run);
    if (!op->spec.residual || op->spec.act == ACT_NONE) return;
    OpRun copy = *run;
    /* the kernel needs some x for its sums */
    copy.x[0] = run->dy;
    t.run = &copy;
    t.sum = norm_grad_sums;
    t.finish = zero_coef;
    for (int64_t g = 0; g < t.b->v.groups; ++g) zero_coef(&t, g);
    batch_norm_run(&t);
}

static void batch_norm_backward_begin(Op *op, const OpRun *run)
{
    if (op->spec.fixed_stats) {
        fixed_begin(op, run);
        return;
    }
    NormTask t = task_of(op, run);
    const int64_t padded = t.b->padded;
    t.sum = norm_grad_sums;
    t.finish = grad_finish;
    memcpy(t.coef + COEF_MEAN * padded, (float *)run->saved + SAVED_MEAN * padded,
           (size_t)padded * sizeof(float));
    if (!op->spec.synced) {
        batch_norm_run(&t);
        return;
    }
    sums_make(&t);
    each_group(&t, t.finish);
    sums_join(&t);
    each_group(&t, grad_join);
}

/* dw of the scale and shift, and this micro-batch's mean and variance for the running statistics. A
 * single number per channel has no variance: then both are zero, and the executor does not count
 * the micro-batch. */
static void batch_norm_backward_weight(Op *op, const OpRun *run)
{
    const NormPlan *b = op->impl;
    const float *saved = run->saved;
    size_t bytes = (size_t)b->v.channels * sizeof(float);
    double n = op->spec.synced ? (double)saved[SAVED_NUMBERS * b->padded]
                               : (double)run->rows * (double)b->v.hw;
    memcpy(run->dw[0], saved + SAVED_DY_X * b->padded, bytes);
    memcpy(run->dw[1], saved + SAVED_DY * b->padded, bytes);
    memcpy(run->dw[3], saved + SAVED_VARIANCE * b->padded, bytes);
    if (n > 1.0)
        memcpy(run->dw[2], saved + SAVED_MEAN * b->padded, bytes);
    else
        memset(run->dw[2], 0, bytes);
}

static void batch_norm_backward_data(Op *op, const OpRun *run)
{
    if (!run->dx[0]) return;
    NormTask t = task_of(op, run);
    OpRun copy;
    t.finish = grad_coef;
    if (op->spec.fixed_stats) {
        copy = *run;
        /* by_x is 0, so x does not matter */
        copy.x[0] = run->dy;
        t.run = &copy;
        t.finish = fixed_coef;
    }
    t.map = norm_grad;
    batch_norm_run(&t);
}

const OpTable cpu_batch_norm = {
    .name = "batch_norm",
    .plan = batch_norm_plan,
    .forward = batch_norm_forward,
    .backward_begin = batch_norm_backward_begin,
    .backward_data = batch_norm_backward_data,
    .backward_weight = batch_norm_backward_weight,
    .free = impl_free,
};
