/* group_norm with a fused relu or relu6, by the same passes as batch_norm. A part is a sample. The
 * passes compute sums per channel, and a group's statistics are computed from the sums of its
 * channels, so groups need not be the blocks of channels in memory. In forward, if there are enough
 * samples, a thread processes one sample in both passes, the second in reverse order, while the
 * sample is in the thread's cache.
 *
 * backward_begin computes the sums of each sample and channel and stores them in `saved`; dw and dx
 * are computed from these sums. `saved` has the statistics of each sample and group, the sums of
 * each sample and channel, and one bit per element that says whether act clipped its input. */
#include "norm_pass.h"

#include <math.h>
#include <omp.h>

/* Statistics of a group of a sample in `saved`. STAT_REST: the mean minus the mean rounded to
 * float. STAT_INVERSE: 1 / sqrt(variance + eps). */
enum { STAT_MEAN, STAT_REST, STAT_INVERSE, STATS };
/* Sums of a channel of a sample in `saved`: of dy, and of dy * xhat, where xhat = (x - mean) *
 * inverse. */
enum { SUM_DY, SUM_DY_X, SUMS };

static Status group_norm_check(const OpSpec *s)
{
    char text[64];
    const Shape x = s->x[0].shape;
    const bool fits = x.ndim == 4 && s->groups > 0 && x.dim[1] % s->groups == 0;
    if (!fits || (s->w_count != 2 && s->w_count != 0) || s->residual)
        return fail(ERR_CONFIG,
                    "group_norm: an input of shape %s, %d groups and %d parameters do not match",
                    shape_text(x, text), s->groups, s->w_count);
    if (s->act == ACT_NONE || s->act == ACT_RELU || s->act == ACT_RELU6) return OK;
    return fail(ERR_BUG, "group_norm: only relu and relu6 can be fused");
}

/* (N,C,H,W): y = act(norm(x) * w0[C] + w1[C]), normalised over each of `groups` equal groups of
 * neighbouring channels of a sample (Wu & He 2018). Without parameters y = act(norm(x)). */
const OpInfo info_group_norm = {
    .name = "group_norm",
    .check = group_norm_check,
    .split = SPLIT_NEVER,
    .fuse = FUSE_NEVER,
    .residual = RESIDUAL_NEVER,
    .communication = COMMUNICATES_NEVER,
    .tokens = TOKENS_TOGETHER,
    .params = PARAMS_NORM,
    .runs_without_params = true,
    .reads = READS_NOTHING,
    .traffic = TRAFFIC_TWICE,
    .dx = DX_WRITTEN,
    .acts = 1u << ACT_RELU | 1u << ACT_RELU6,
};

static Status group_norm_plan(Op *op, Desc preferred[SPEC_INPUTS])
{
    OpSpec *s = &op->spec;
    Desc x = in_precision(op, s->x[0]);
    preferred[0] = s->y = x;
    NormPlan *plan = op->impl = mem_new(sizeof *plan);
    *plan = norm_plan(x);
    plan->parts = plan->v.n;
    for (int i = 0; i < s->w_count; ++i) op->w_elements[i] = shape_count(s->w[i]);
    op->saved_bytes =
        (size_t)(plan->v.n * (STATS * s->groups + SUMS * plan->padded)) * sizeof(float);
    if (s->act != ACT_NONE) op->saved_bytes += norm_keep_bytes(plan);
    op->workspace_bytes = norm_workspace_bytes(plan, plan->parts);
    op->needs_x[0] = true;
    op->dx_inplace = true;
    return OK;
}

static void impl_free(Op *op)
{
    mem_free(&op->impl);
}

/* ---- layout of `saved` ---- */

static float *stats_at(const NormTask *t, int64_t sample, int64_t group)
{
    return (float *)t->run->saved + (sample * t->op->spec.groups + group) * STATS;
}

static float *sums_saved(const NormTask *t, int64_t sample, int which)
{
    const NormPlan *plan = t->plan;
    return (float *)t->run->saved + plan->v.n * t->op->spec.groups * STATS +
           (sample * SUMS + which) * plan->padded;
}

static NormTask task_of(const Op *op, const OpRun *run)
{
    const NormPlan *plan = op->impl;
    const int64_t floats = plan->v.n * (STATS * op->spec.groups + SUMS * plan->padded);
    return norm_task(op, run, plan, plan->parts > 1 ? plan->parts : 1, floats);
}

static int64_t group_channels(const NormTask *t)
{
    return t->plan->v.channels / t->op->spec.groups;
}

/* Returns the number of values in a group of a sample. */
static double group_size(const NormTask *t)
{
    return (double)group_channels(t) * (double)t->plan->v.hw;
}

static double sums_of_group(const NormTask *t, int64_t sample, int64_t group, int which)
{
    const double *sums = t->sums + (2 * sample + which) * t->plan->padded;
    const int64_t channels = group_channels(t);
    double total = 0.0;
    for (int64_t c = group * channels; c < (group + 1) * channels; ++c) total += sums[c];
    return total;
}

static void padding_coef(const NormTask *t, int64_t sample)
{
    for (int64_t c = t->plan->v.channels; c < t->plan->padded; ++c)
        norm_coef_set(t, sample, c, (double[COEFS]){0.0});
}

/* ---- between the passes over a sample ---- */

/* Computes the statistics of the groups of a sample, and the coefficients of y. */
static void stats_finish(const NormTask *t, int64_t sample)
{
    const int64_t channels = group_channels(t);
    const double size = group_size(t);
    for (int64_t g = 0; g < t->op->spec.groups; ++g) {
        double mean = sums_of_group(t, sample, g, 0) / size;
        double variance = sums_of_group(t, sample, g, 1) / size - mean * mean;
        if (variance < 0.0) variance = 0.0;
        const double inverse = 1.0 / sqrt(variance + t->op->spec.eps);
        float *stats = stats_at(t, sample, g);
        stats[STAT_MEAN] = (float)mean;
        stats[STAT_REST] = (float)(mean - (double)(float)mean);
        stats[STAT_INVERSE] = (float)inverse;
        for (int64_t c = g * channels; c < (g + 1) * channels; ++c)
            norm_forward_coef(t, sample, c, mean, inverse);
    }
    padding_coef(t, sample);
}

/* Sets the coefficients COEF_MEAN of a sample, which the pass for sums of dy (x - mean) reads. */
static void means_set(const NormTask *t, int64_t sample)
{
    const int64_t channels = group_channels(t);
    for (int64_t c = 0; c < t->plan->v.channels; ++c)
        norm_coef_set(t, sample, c, (double[COEFS]){stats_at(t, sample, c / channels)[STAT_MEAN]});
    padding_coef(t, sample);
}

/* Saves the sums of dy and of dy * xhat of a sample. */
static void grad_finish(const NormTask *t, int64_t sample)
{
    const NormPlan *plan = t->plan;
    const int64_t channels = group_channels(t);
    const double *sums = t->sums + 2 * sample * plan->padded;
    for (int64_t c = 0; c < plan->v.channels; ++c) {
        const float *stats = stats_at(t, sample, c / channels);
        const double sum = sums[c], sum_x = sums[plan->padded + c];
        sums_saved(t, sample, SUM_DY)[c] = (float)sum;
        sums_saved(t, sample, SUM_DY_X)[c] =
            (float)(stats[STAT_INVERSE] * (sum_x - stats[STAT_REST] * sum));
    }
}

/* Sets the coefficients of dx = inverse * (g - mean(g) - xhat * mean(g * xhat)), where g = dy * w0
 * and xhat = (x - mean - rest) * inverse, rewritten as linear in dy and x. */
static void grad_coef(const NormTask *t, int64_t sample)
{
    const int64_t channels = group_channels(t);
    const float *dy = sums_saved(t, sample, SUM_DY), *dy_x = sums_saved(t, sample, SUM_DY_X);
    for (int64_t g = 0; g < t->op->spec.groups; ++g) {
        const float *stats = stats_at(t, sample, g);
        const double inverse = stats[STAT_INVERSE];
        double mean = 0.0, mean_x = 0.0;
        for (int64_t c = g * channels; c < (g + 1) * channels; ++c) {
            const double scale = norm_scale(t, c);
            mean += scale * dy[c];
            mean_x += scale * dy_x[c];
        }
        mean /= group_size(t);
        mean_x /= group_size(t);
        const double by_x = -inverse * inverse * mean_x;
        const double shift = -inverse * mean - by_x * stats[STAT_REST];
        for (int64_t c = g * channels; c < (g + 1) * channels; ++c)
            norm_coef_set(t, sample, c,
                          (double[COEFS]){[COEF_MEAN] = stats[STAT_MEAN],
                                          [COEF_X] = by_x,
                                          [COEF_SHIFT] = shift,
                                          [COEF_DY] = norm_scale(t, c) * inverse});
    }
    padding_coef(t, sample);
}

/* ---- running ---- */

static void finish_real(const NormTask *t, int64_t sample)
{
    if (t->finish && sample < t->run->sample_count) t->finish(t, sample);
}

/* Runs the passes of the task, which may be one or both, over samples `begin` to `end` - 1. */
static void samples_body(const void *task, int64_t begin, int64_t end)
{
    const NormTask *t = task;
    const int64_t blocks = t->plan->v.groups;
    for (int64_t n = begin; n < end; ++n) {
        for (int64_t g = 0; t->sum && g < blocks; ++g) t->sum(t, n, g);
        finish_real(t, n);
        for (int64_t g = blocks - 1; t->map && g >= 0; --g) t->map(t, n, g);
    }
}

static void group_norm_run(const NormTask *t)
{
    const View *v = &t->plan->v;
    const int64_t elements = v->n * v->sample, threads = omp_get_max_threads();
    if (v->n % threads == 0 || v->n >= 4 * threads) {
        work_run(samples_body, t, v->n, elements);
        return;
    }
    if (t->sum) work_run(norm_sum_body, t, v->n * v->groups, elements);
    for (int64_t n = 0; n < v->n; ++n) finish_real(t, n);
    if (t->map) work_run(norm_map_body, t, v->n * v->groups, elements);
}

static void group_norm_forward(Op *op, const OpRun *run)
{
    NormTask t = task_of(op, run);
    t.sum = norm_stats;
    t.finish = stats_finish;
    t.map = norm_apply;
    group_norm_run(&t);
}

static void group_norm_backward_begin(Op *op, const OpRun *run)
{
    NormTask t = task_of(op, run);
    for (int64_t n = 0; n < run->sample_count; ++n) means_set(&t, n);
    t.sum = norm_grad_sums;
    t.finish = grad_finish;
    group_norm_run(&t);
}

static void group_norm_backward_weight(Op *op, const OpRun *run)
{
    const NormTask t = task_of(op, run);
    /* the sum that gives dw of the scale, and the sum that gives dw of the shift */
    static const int sum_of[] = {SUM_DY_X, SUM_DY};
    for (int i = 0; i < op->spec.w_count; ++i)
        for (int64_t c = 0; c < t.plan->v.channels; ++c) {
            double total = 0.0;
            for (int64_t n = 0; n < run->sample_count; ++n)
                total += sums_saved(&t, n, sum_of[i])[c];
            run->dw[i][c] = (float)total;
        }
}

static void group_norm_backward_data(Op *op, const OpRun *run)
{
    if (!run->dx[0]) return;
    NormTask t = task_of(op, run);
    t.finish = grad_coef;
    t.map = norm_grad;
    group_norm_run(&t);
}

const OpTable cpu_group_norm = {
    .name = "group_norm",
    .plan = group_norm_plan,
    .forward = group_norm_forward,
    .backward_begin = group_norm_backward_begin,
    .backward_data = group_norm_backward_data,
    .backward_weight = group_norm_backward_weight,
    .free = impl_free,
};
