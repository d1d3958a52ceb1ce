/* batch_norm with fused residual and relu or relu6, or with silu. Forward reads x in two passes
 * (sums for the statistics, then the result), and so does backward (sums, then dx). The samples are
 * divided into parts by shape alone, and the sums of the parts are added in order, so any number of
 * threads gives the same bits. In forward, if there are enough blocks of channels, a thread
 * processes one block in both passes, the second in reverse order, while the block is in the
 * thread's cache.
 *
 * backward_begin computes the sums and stores them in `saved`; dw and dx are computed from these
 * sums. `saved` has one bit per element that says whether act clipped its input, so that backward
 * need not read y. dy is masked by these bits: an element counts as 0 where act clipped its input.
 * If dy is also the residual's gradient, backward_begin sets such elements to 0 in memory. With
 * silu, backward_begin computes silu's input from x again, with the coefficients of y in `saved`,
 * and multiplies dy by silu's slope in place. With fixed statistics, forward is the same as in
 * evaluation, dx is the masked dy times a constant per channel, and `saved` has only the bits.
 *
 * If synced, the sums of all replicas' micro-batches are added between the two passes:
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

/* approximate number of items (parts x blocks of channels) in a pass */
enum { ITEMS = 32 };
/* Rows of `saved`, one float per channel. SAVED_REST: the mean minus the mean rounded to float.
 * SAVED_INVERSE: 1 / sqrt(variance + eps). SAVED_VARIANCE: the unbiased variance, or 0 if a channel
 * has a single number. SAVED_DY, SAVED_DY_X: sums of dy and of dy * xhat over this micro-batch,
 * where xhat = (x - mean) * inverse. SAVED: number of the rows above. */
enum { SAVED_MEAN, SAVED_REST, SAVED_INVERSE, SAVED_VARIANCE, SAVED_DY, SAVED_DY_X, SAVED };
/* Further rows of `saved` if synced. SAVED_MEAN_DY, SAVED_MEAN_DY_X: means of dy and of dy * xhat
 * over all replicas. SAVED_NUMBERS: number of values per channel in these means. SAVED_SYNCED:
 * number of rows if synced. */
enum { SAVED_MEAN_DY = SAVED, SAVED_MEAN_DY_X, SAVED_NUMBERS, SAVED_SYNCED };

/* Further rows of `saved` with silu, behind the other rows: the coefficients of silu's input (x -
 * mean) * scale + shift. */
enum { SILU_SCALE, SILU_SHIFT, SILU_ROWS };

/* Returns the number of rows of `saved` before those of silu. */
static int64_t saved_rows(const Op *op)
{
    return op->spec.synced ? SAVED_SYNCED : SAVED;
}

/* Returns the number of floats in `saved` before NormTask.keep. */
static int64_t saved_floats(const Op *op)
{
    const NormPlan *plan = op->impl;
    if (op->spec.fixed_stats) return 0;
    return (saved_rows(op) + (op->spec.act == ACT_SILU ? SILU_ROWS : 0)) * plan->padded;
}

/* Returns row SILU_SCALE or SILU_SHIFT of `saved`, one coefficient per channel; NULL without
 * silu. */
static float *silu_row(const NormTask *t, int row)
{
    if (t->op->spec.act != ACT_SILU) return NULL;
    return (float *)t->run->saved + (saved_rows(t->op) + row) * t->plan->padded;
}

static Status batch_norm_plan(Op *op, Desc preferred[SPEC_INPUTS])
{
    OpSpec *s = &op->spec;
    Desc x = layout_common(s);
    x = in_precision(op, x.flat ? layout_plain(x) : x);
    for (int i = 0; i < s->x_count; ++i) preferred[i] = x;
    s->y = x;
    NormPlan *plan = op->impl = mem_new(sizeof *plan);
    *plan = norm_plan(x);
    int64_t parts = (ITEMS + plan->v.groups - 1) / plan->v.groups;
    plan->parts = parts < plan->v.n ? parts : plan->v.n;
    for (int i = 0; i < s->w_count; ++i) op->w_elements[i] = shape_count(s->w[i]);
    bool back = !s->fixed_stats || s->need_dx[0] || (s->residual && s->need_dx[1]);
    op->saved_bytes = (size_t)saved_floats(op) * sizeof(float);
    if (s->act != ACT_NONE && s->act != ACT_SILU && back) op->saved_bytes += norm_keep_bytes(plan);
    /* two sums per channel, and one number of values */
    if (s->synced) op->synced_sums = 2 * plan->padded + 1;
    op->workspace_bytes = norm_workspace_bytes(plan, 1) + (size_t)op->synced_sums * sizeof(double);
    op->needs_x[0] = !s->fixed_stats;
    op->dx_inplace = !s->residual;
    op->dx_is_dy[1] = s->residual;
    return OK;
}

static void impl_free(Op *op)
{
    mem_free(&op->impl);
}

/* Returns the number of values per channel in this micro-batch. */
static double channel_values(const NormTask *t)
{
    return (double)t->run->sample_count * (double)t->plan->v.hw;
}

/* Saves a channel's coefficients of silu's input, for silu's slope in backward. */
static void save_silu(const NormTask *t, int64_t c)
{
    if (t->op->spec.act != ACT_SILU) return;
    silu_row(t, SILU_SCALE)[c] = t->coef[COEF_X * t->plan->padded + c];
    silu_row(t, SILU_SHIFT)[c] = t->coef[COEF_SHIFT * t->plan->padded + c];
}

/* Computes the statistics of block g of channels from the sums, and the coefficients of y. */
static void stats_finish(const NormTask *t, int64_t g)
{
    const NormPlan *plan = t->plan;
    float *saved = t->run->saved;
    double n = t->total ? t->total[2 * plan->padded] : channel_values(t);
    for (int64_t c = g * plan->v.block; c < (g + 1) * plan->v.block; ++c) {
        double mean = n > 0.0 ? norm_total(t, c, 0) / n : 0.0;
        double variance = n > 0.0 ? norm_total(t, c, 1) / n - mean * mean : 0.0;
        if (variance < 0.0) variance = 0.0;
        double inverse = 1.0 / sqrt(variance + t->op->spec.eps);
        saved[SAVED_MEAN * plan->padded + c] = (float)mean;
        saved[SAVED_REST * plan->padded + c] = (float)(mean - (double)(float)mean);
        saved[SAVED_INVERSE * plan->padded + c] = (float)inverse;
        if (t->total) saved[SAVED_NUMBERS * plan->padded + c] = (float)n;
        if (c >= plan->v.channels) {
            norm_coef_set(t, 0, c, (double[COEFS]){0.0});
            save_silu(t, c);
            continue;
        }
        norm_forward_coef(t, 0, c, mean, inverse);
        save_silu(t, c);
        saved[SAVED_VARIANCE * plan->padded + c] =
            (float)(n > 1.0 ? variance * (n / (n - 1.0)) : 0.0);
    }
}

/* Computes the coefficients of y from the running statistics. */
static void running_finish(const NormTask *t, int64_t g)
{
    const NormPlan *plan = t->plan;
    for (int64_t c = g * plan->v.block; c < (g + 1) * plan->v.block; ++c)
        if (c >= plan->v.channels)
            norm_coef_set(t, 0, c, (double[COEFS]){0.0});
        else
            norm_forward_coef(t, 0, c, t->run->w[2][c],
                              1.0 / sqrt((double)t->run->w[3][c] + t->op->spec.eps));
}

/* Saves the sums of dy and of dy * xhat of this micro-batch. */
static void grad_finish(const NormTask *t, int64_t g)
{
    const NormPlan *plan = t->plan;
    float *saved = t->run->saved;
    for (int64_t c = g * plan->v.block; c < (g + 1) * plan->v.block; ++c) {
        double sum = norm_total(t, c, 0), rest = saved[SAVED_REST * plan->padded + c];
        double inverse = saved[SAVED_INVERSE * plan->padded + c];
        saved[SAVED_DY * plan->padded + c] = (float)sum;
        saved[SAVED_DY_X * plan->padded + c] =
            (float)(inverse * (norm_total(t, c, 1) - rest * sum));
    }
}

/* Saves the means of dy and of dy * xhat over all replicas. */
static void means_finish(const NormTask *t, int64_t g)
{
    const NormPlan *plan = t->plan;
    float *saved = t->run->saved;
    double n = t->total[2 * plan->padded];
    for (int64_t c = g * plan->v.block; c < (g + 1) * plan->v.block; ++c) {
        double sum = norm_total(t, c, 0), rest = saved[SAVED_REST * plan->padded + c];
        double sum_x = saved[SAVED_INVERSE * plan->padded + c] * (norm_total(t, c, 1) - rest * sum);
        saved[SAVED_MEAN_DY * plan->padded + c] = (float)(n > 0.0 ? sum / n : 0.0);
        saved[SAVED_MEAN_DY_X * plan->padded + c] = (float)(n > 0.0 ? sum_x / n : 0.0);
    }
}

/* Sets the coefficients of dx = scale (dy - sum(dy)/n - xhat sum(dy xhat)/n), where xhat = (x -
 * mean - rest) inverse and scale = w0 inverse, rewritten as linear in dy and x. If synced, the
 * saved means over all replicas are used in place of sum / n. */
static void grad_coef(const NormTask *t, int64_t g)
{
    const NormPlan *plan = t->plan;
    const float *saved = t->run->saved;
    const bool synced = t->op->spec.synced;
    const float *sum = saved + (synced ? SAVED_MEAN_DY : SAVED_DY) * plan->padded;
    const float *sum_x = saved + (synced ? SAVED_MEAN_DY_X : SAVED_DY_X) * plan->padded;
    double n = synced ? 1.0 : channel_values(t);
    for (int64_t c = g * plan->v.block; c < (g + 1) * plan->v.block; ++c) {
        if (c >= plan->v.channels || n == 0.0) {
            norm_coef_set(t, 0, c, (double[COEFS]){0.0});
            continue;
        }
        double inverse = saved[SAVED_INVERSE * plan->padded + c], scale = t->run->w[0][c] * inverse;
        double by_x = -scale * inverse * sum_x[c] / n;
        double shift = -scale * sum[c] / n - by_x * saved[SAVED_REST * plan->padded + c];
        norm_coef_set(t, 0, c,
                      (double[COEFS]){saved[SAVED_MEAN * plan->padded + c], by_x, shift, scale});
    }
}

static void zero_coef(const NormTask *t, int64_t g)
{
    for (int64_t c = g * t->plan->v.block; c < (g + 1) * t->plan->v.block; ++c)
        norm_coef_set(t, 0, c, (double[COEFS]){0.0});
}

/* Sets the coefficients of dx = scale dy, with running statistics. */
static void fixed_coef(const NormTask *t, int64_t g)
{
    const float *const *w = t->run->w;
    for (int64_t c = g * t->plan->v.block; c < (g + 1) * t->plan->v.block; ++c) {
        double scale = 0.0;
        if (c < t->plan->v.channels) scale = w[0][c] / sqrt((double)w[3][c] + t->op->spec.eps);
        norm_coef_set(t, 0, c, (double[COEFS]){0.0, 0.0, 0.0, scale});
    }
}

/* Runs the passes of the task, which may be one or both, over blocks `begin` to `end` - 1. */
static void groups_body(const void *task, int64_t begin, int64_t end)
{
    const NormTask *t = task;
    for (int64_t g = begin; g < end; ++g) {
        for (int64_t p = 0; t->sum && p < t->plan->parts; ++p) t->sum(t, p, g);
        t->finish(t, g);
        for (int64_t p = t->plan->parts - 1; t->map && p >= 0; --p) t->map(t, p, g);
    }
}

static NormTask task_of(const Op *op, const OpRun *run)
{
    return norm_task(op, run, op->impl, 1, saved_floats(op));
}

static void batch_norm_run(const NormTask *t)
{
    const NormPlan *plan = t->plan;
    int64_t elements = plan->v.n * plan->v.sample, threads = omp_get_max_threads();
    if (plan->v.groups % threads == 0 || plan->v.groups >= 4 * threads) {
        work_run(groups_body, t, plan->v.groups, elements);
        return;
    }
    if (t->sum) work_run(norm_sum_body, t, plan->parts * plan->v.groups, elements);
    for (int64_t g = 0; g < plan->v.groups; ++g) t->finish(t, g);
    if (t->map) work_run(norm_map_body, t, plan->parts * plan->v.groups, elements);
}

/* ---- synced: over all replicas ---- */

/* Computes the sums of this micro-batch over all parts, at the end of the workspace. */
static void sums_this_replica(NormTask *t)
{
    const NormPlan *plan = t->plan;
    double *total = (double *)(void *)(t->coef + COEFS * plan->padded);
    work_run(norm_sum_body, t, plan->parts * plan->v.groups, plan->v.n * plan->v.sample);
    for (int64_t c = 0; c < plan->padded; ++c)
        for (int which = 0; which < 2; ++which)
            total[which * plan->padded + c] = norm_total(t, c, which);
    total[2 * plan->padded] = channel_values(t);
    t->total = total;
}

/* Adds the sums of all replicas. */
static void sums_all_replicas(const NormTask *t)
{
    const Replicas *replicas = t->run->replicas;
    replicas->sum(replicas, t->total, t->op->synced_sums);
}

static void each_group(const NormTask *t, NormFinish finish)
{
    for (int64_t g = 0; g < t->plan->v.groups; ++g) finish(t, g);
}

/* ---- the operation ---- */

static void batch_norm_forward(Op *op, const OpRun *run)
{
    NormTask t = task_of(op, run);
    bool batch_stats = run->training && !op->spec.fixed_stats;
    t.sum = batch_stats ? norm_stats : NULL;
    t.finish = batch_stats ? stats_finish : running_finish;
    t.map = norm_apply;
    if (!op->spec.synced || !run->training) {
        batch_norm_run(&t);
        return;
    }
    sums_this_replica(&t);
    sums_all_replicas(&t);
    each_group(&t, t.finish);
    work_run(norm_map_body, &t, t.plan->parts * t.plan->v.groups, t.plan->v.n * t.plan->v.sample);
}

/* Does what backward_begin does with fixed statistics: masks dy in memory if dy is also the
 * residual's gradient. The pass also computes sums, which are not used. */
static void fixed_begin(Op *op, const OpRun *run)
{
    NormTask t = task_of(op, run);
    if (!op->spec.residual || op->spec.act == ACT_NONE) return;
    OpRun copy = *run;
    /* x was not saved; the kernel reads dy in its place, for the unused sums */
    copy.x[0] = run->dy;
    t.run = &copy;
    t.sum = norm_grad_sums;
    t.finish = zero_coef;
    for (int64_t g = 0; g < t.plan->v.groups; ++g) zero_coef(&t, g);
    batch_norm_run(&t);
}

static void batch_norm_backward_begin(Op *op, const OpRun *run)
{
    if (op->spec.fixed_stats) {
        fixed_begin(op, run);
        return;
    }
    NormTask t = task_of(op, run);
    const int64_t padded = t.plan->padded;
    t.sum = norm_grad_sums;
    t.finish = grad_finish;
    t.silu_scale = silu_row(&t, SILU_SCALE);
    t.silu_shift = silu_row(&t, SILU_SHIFT);
    memcpy(t.coef + COEF_MEAN * padded, (float *)run->saved + SAVED_MEAN * padded,
           (size_t)padded * sizeof(float));
    if (!op->spec.synced) {
        batch_norm_run(&t);
        return;
    }
    sums_this_replica(&t);
    each_group(&t, t.finish);
    sums_all_replicas(&t);
    each_group(&t, means_finish);
}

/* Copies dw of scale and shift, and the mean and variance for the running statistics. If a channel
 * has a single value, it has no variance: both are then 0, and the executor leaves the micro-batch
 * out of the running statistics. */
static void batch_norm_backward_weight(Op *op, const OpRun *run)
{
    const NormPlan *plan = op->impl;
    const float *saved = run->saved;
    size_t bytes = (size_t)plan->v.channels * sizeof(float);
    double n = op->spec.synced ? (double)saved[SAVED_NUMBERS * plan->padded]
                               : (double)run->sample_count * (double)plan->v.hw;
    memcpy(run->dw[0], saved + SAVED_DY_X * plan->padded, bytes);
    memcpy(run->dw[1], saved + SAVED_DY * plan->padded, bytes);
    memcpy(run->dw[3], saved + SAVED_VARIANCE * plan->padded, bytes);
    if (n > 1.0)
        memcpy(run->dw[2], saved + SAVED_MEAN * plan->padded, bytes);
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
        /* x was not saved; the kernel reads dy in its place, with the factor 0 */
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
