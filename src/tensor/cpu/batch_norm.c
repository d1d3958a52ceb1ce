/* batch_norm with fused residual and relu or relu6. It touches x twice in forward (statistics, result) and twice in
 * backward (sums, dx). Sums are taken in parts, a cut of the samples by shape alone, and joined in order, so that any
 * number of threads gives the same bits. Where there are channel groups enough, a thread takes one group through both
 * passes, backwards the second time, while it is in its cache. backward_begin takes the sums, and masks dy in place where
 * it is the residual's gradient; dw and dx then come from `saved`. Where act cut is kept as a bit a float, so that
 * backward reads neither y nor writes dy for it. */
#include "view.h"

#include <math.h>
#include <omp.h>
#include <string.h>

enum { ITEMS = 32 }; /* parts x groups, about */
enum { SAVED_MEAN, SAVED_REST, SAVED_INVERSE, SAVED_VARIANCE, SAVED_DY, SAVED_DY_X, SAVED };
enum { COEF_MEAN, COEF_X, COEF_SHIFT, COEF_DY, COEFS };

typedef struct BatchNorm {
    View v;
    DType type;
    int64_t parts, padded; /* padded: channels in memory */
    int64_t words;         /* of a plane's bits */
    int lanes; /* a row of the kernels: one pixel of a group, or 16 elements of several pixels */
} BatchNorm;

typedef struct BatchNormTask {
    const Op *op;
    const BatchNorm *b;
    const OpRun *run;
    double *sums; /* [parts][2][padded] */
    float *coef;  /* [COEFS][padded] */
    void (*sum)(const struct BatchNormTask *t, int64_t part, int64_t g);
    void (*finish)(const struct BatchNormTask *t, int64_t g); /* sums -> saved and coef */
    void (*map)(const struct BatchNormTask *t, int64_t part, int64_t g);
} BatchNormTask;

static Status batch_norm_plan(Op *op, Desc preferred[SPEC_INPUTS])
{
    OpSpec *s = &op->spec;
    Desc x = layout_common(s);
    x = in_precision(op, x.flat ? layout_plain(x) : x);
    for (int i = 0; i < s->x_count; ++i) preferred[i] = x;
    s->y = x;
    BatchNorm *b = op->impl = mem_new(sizeof *b);
    b->v = view_of(x);
    b->type = x.dtype;
    if (x.shape.ndim != 4) { /* (N,C): one pixel, channels last */
        b->v.block = (int)b->v.channels;
        b->v.plane = b->v.channels;
        b->v.groups = 1;
    }
    b->lanes = SIMD_LANES % b->v.block == 0 ? SIMD_LANES : b->v.block;
    b->padded = b->v.groups * b->v.block;
    int64_t parts = (ITEMS + b->v.groups - 1) / b->v.groups;
    b->parts = parts < b->v.n ? parts : b->v.n;
    for (int i = 0; i < s->w_count; ++i) op->w_elements[i] = shape_count(s->w[i]);
    b->words = b->lanes == SIMD_LANES ? (b->v.plane + SIMD_LANES - 1) / SIMD_LANES
                                      : b->v.hw * ((b->lanes + SIMD_LANES - 1) / SIMD_LANES);
    op->saved_bytes = (size_t)(SAVED * b->padded) * sizeof(float);
    if (s->act != ACT_NONE)
        op->saved_bytes += (size_t)(b->v.n * b->v.groups * b->words) * sizeof(uint16_t);
    op->workspace_bytes = (size_t)(2 * b->parts * b->padded) * sizeof(double) +
                          (size_t)(COEFS * b->padded) * sizeof(float);
    op->needs_x[0] = true;
    op->dx_inplace = !s->residual;
    op->dx_alias[1] = s->residual;
    return OK;
}

static void impl_free(Op *op)
{
    mem_free(&op->impl);
}

/* The memory of group g in some samples: `count` pieces of `length` elements, `step` apart, and of the bits. */
typedef struct Span {
    int64_t from, count, step, length, word, word_step;
} Span;

/* A piece as the kernels take it: rows, and a tail row of fewer lanes (0: none). */
typedef struct Piece {
    int64_t from, word, rows, tail_from, tail_word;
    int tail;
} Piece;

static int64_t part_edge(const BatchNorm *b, int64_t part)
{
    return b->v.n * part / b->parts;
}

static Span span_of(const BatchNorm *b, int64_t first, int64_t last, int64_t g)
{
    Span s = {.from = first * b->v.sample + g * b->v.plane,
              .count = last > first ? last - first : 0,
              .step = b->v.sample,
              .length = b->v.plane,
              .word = (first * b->v.groups + g) * b->words,
              .word_step = b->v.groups * b->words};
    if (b->v.groups == 1 && s.count > 0) {
        s.length *= s.count;
        s.count = 1;
    }
    return s;
}

static Span span_real(const BatchNormTask *t, int64_t part, int64_t g)
{
    int64_t first = part_edge(t->b, part), last = part_edge(t->b, part + 1);
    return span_of(t->b, first, last < t->run->rows ? last : t->run->rows, g);
}

static Piece piece_at(const BatchNorm *b, const Span *s, int64_t i)
{
    Piece p = {.from = s->from + i * s->step, .word = s->word + i * s->word_step};
    p.rows = s->length / b->lanes;
    p.tail = (int)(s->length % b->lanes);
    p.tail_from = p.from + p.rows * b->lanes;
    p.tail_word = p.word + p.rows; /* only rows of 16 lanes leave a tail */
    return p;
}

/* The bits of where act cut; NULL where none are kept. */
static uint16_t *keep_at(const BatchNormTask *t, int64_t word)
{
    if (t->op->spec.act == ACT_NONE || !t->run->training) return NULL;
    return (uint16_t *)((float *)t->run->saved + SAVED * t->b->padded) + word;
}

static void zero_padded(const BatchNormTask *t, int64_t part, int64_t g, void *p)
{
    int64_t first = part_edge(t->b, part), last = part_edge(t->b, part + 1);
    Span s = span_of(t->b, first > t->run->rows ? first : t->run->rows, last, g);
    for (int64_t i = 0; i < s.count; ++i)
        elements_zero(element_out(p, s.from + i * s.step, t->b->type), s.length, t->b->type);
}

/* Where the kernels add the sums of (part, g): in place, or, where rows hold several pixels, in `wide` first. */
static double *sums_at(const BatchNormTask *t, int64_t part, int64_t g, int which)
{
    return t->sums + (2 * part + which) * t->b->padded + g * t->b->v.block;
}

static void sums_fold(const BatchNorm *b, const double wide[SIMD_LANES], double *out)
{
    for (int l = 0; l < b->v.block; ++l) out[l] = 0.0;
    for (int l = 0; l < SIMD_LANES; ++l) out[l % b->v.block] += wide[l];
}

/* A coefficient of group g by lane of a kernel's row. */
static const float *coef_at(const BatchNormTask *t, int which, int64_t g, float wide[SIMD_LANES])
{
    const float *coef = t->coef + which * t->b->padded + g * t->b->v.block;
    if (t->b->v.block == t->b->lanes) return coef;
    for (int l = 0; l < SIMD_LANES; ++l) wide[l] = coef[l % t->b->v.block];
    return wide;
}

static void stats_sum(const BatchNormTask *t, int64_t part, int64_t g)
{
    const BatchNorm *b = t->b;
    const SimdTable *simd = simd_table(b->type);
    double wide[2][SIMD_LANES] = {{0}};
    bool fold = b->v.block != b->lanes;
    double *sum = fold ? wide[0] : sums_at(t, part, g, 0);
    double *square = fold ? wide[1] : sums_at(t, part, g, 1);
    for (int l = 0; l < b->lanes; ++l) sum[l] = square[l] = 0.0;
    Span s = span_real(t, part, g);
    const void *x = t->run->x[0];
    for (int64_t i = 0; i < s.count; ++i) {
        Piece p = piece_at(b, &s, i);
        simd->batch_norm_stats(element_at(x, p.from, b->type), p.rows, b->lanes, sum, square);
        if (p.tail)
            simd->batch_norm_stats(element_at(x, p.tail_from, b->type), 1, p.tail, sum, square);
    }
    if (fold)
        for (int w = 0; w < 2; ++w) sums_fold(b, wide[w], sums_at(t, part, g, w));
}

static double sums_total(const BatchNormTask *t, int64_t c, int which)
{
    double total = 0.0;
    for (int64_t p = 0; p < t->b->parts; ++p) total += t->sums[(2 * p + which) * t->b->padded + c];
    return total;
}

static void coef_set(const BatchNormTask *t, int64_t c, const double value[COEFS])
{
    for (int i = 0; i < COEFS; ++i) t->coef[i * t->b->padded + c] = (float)value[i];
}

/* y = (x - mean) scale + shift with the mean in float; what the mean lost there goes into the shift. */
static void forward_coef(const BatchNormTask *t, int64_t c, double mean, double inverse)
{
    double scale = t->run->w[0][c] * inverse, rest = mean - (double)(float)mean;
    coef_set(t, c, (double[COEFS]){mean, scale, t->run->w[1][c] - rest * scale, 0.0});
}

static void stats_finish(const BatchNormTask *t, int64_t g)
{
    const BatchNorm *b = t->b;
    const OpRun *run = t->run;
    float *saved = run->saved;
    double n = (double)run->rows * (double)b->v.hw;
    for (int64_t c = g * b->v.block; c < (g + 1) * b->v.block; ++c) {
        double mean = n > 0.0 ? sums_total(t, c, 0) / n : 0.0;
        double variance = n > 0.0 ? sums_total(t, c, 1) / n - mean * mean : 0.0;
        if (variance < 0.0) variance = 0.0;
        double inverse = 1.0 / sqrt(variance + t->op->spec.eps);
        saved[SAVED_MEAN * b->padded + c] = (float)mean;
        saved[SAVED_REST * b->padded + c] = (float)(mean - (double)(float)mean);
        saved[SAVED_INVERSE * b->padded + c] = (float)inverse;
        if (c >= b->v.channels) {
            coef_set(t, c, (double[COEFS]){0.0});
            continue;
        }
        forward_coef(t, c, mean, inverse);
        saved[SAVED_VARIANCE * b->padded + c] = (float)(n > 1.0 ? variance * (n / (n - 1.0)) : 0.0);
    }
}

static void running_finish(const BatchNormTask *t, int64_t g)
{
    const BatchNorm *b = t->b;
    for (int64_t c = g * b->v.block; c < (g + 1) * b->v.block; ++c)
        if (c >= b->v.channels)
            coef_set(t, c, (double[COEFS]){0.0});
        else
            forward_coef(t, c, t->run->w[2][c],
                         1.0 / sqrt((double)t->run->w[3][c] + t->op->spec.eps));
}

static void apply_rows(const BatchNormTask *t, BatchNormApply a, int64_t from, int64_t word)
{
    const DType type = t->b->type;
    a.x = element_at(t->run->x[0], from, type);
    a.residual = t->op->spec.residual ? element_at(t->run->x[1], from, type) : NULL;
    a.y = element_out(t->run->y, from, type);
    a.keep = keep_at(t, word);
    simd_table(type)->batch_norm_apply(&a);
}

static void apply_map(const BatchNormTask *t, int64_t part, int64_t g)
{
    float wide[COEFS][SIMD_LANES];
    BatchNormApply a = {.act = t->op->spec.act,
                        .mean = coef_at(t, COEF_MEAN, g, wide[COEF_MEAN]),
                        .scale = coef_at(t, COEF_X, g, wide[COEF_X]),
                        .shift = coef_at(t, COEF_SHIFT, g, wide[COEF_SHIFT])};
    Span s = span_real(t, part, g);
    for (int64_t i = 0; i < s.count; ++i) {
        Piece p = piece_at(t->b, &s, i);
        a.rows = p.rows;
        a.lanes = t->b->lanes;
        apply_rows(t, a, p.from, p.word);
        a.rows = 1;
        a.lanes = p.tail;
        if (p.tail) apply_rows(t, a, p.tail_from, p.tail_word);
    }
    zero_padded(t, part, g, t->run->y);
}

static void grad_sum_rows(const BatchNormTask *t, BatchNormSums a, int64_t from, int64_t word)
{
    const DType type = t->b->type;
    a.x = element_at(t->run->x[0], from, type);
    a.dy = element_out(t->run->dy, from, type);
    a.keep = keep_at(t, word);
    a.store = a.keep && t->op->spec.residual;
    simd_table(type)->batch_norm_sums(&a);
}

static void grad_sum(const BatchNormTask *t, int64_t part, int64_t g)
{
    const BatchNorm *b = t->b;
    double wide[2][SIMD_LANES] = {{0}};
    float mean[SIMD_LANES];
    bool fold = b->v.block != b->lanes;
    BatchNormSums a = {.mean = coef_at(t, COEF_MEAN, g, mean),
                       .sum = fold ? wide[0] : sums_at(t, part, g, 0),
                       .sum_x = fold ? wide[1] : sums_at(t, part, g, 1)};
    for (int l = 0; l < b->lanes; ++l) a.sum[l] = a.sum_x[l] = 0.0;
    Span s = span_real(t, part, g);
    for (int64_t i = 0; i < s.count; ++i) {
        Piece p = piece_at(b, &s, i);
        a.rows = p.rows;
        a.lanes = b->lanes;
        grad_sum_rows(t, a, p.from, p.word);
        a.rows = 1;
        a.lanes = p.tail;
        if (p.tail) grad_sum_rows(t, a, p.tail_from, p.tail_word);
    }
    if (fold)
        for (int w = 0; w < 2; ++w) sums_fold(b, wide[w], sums_at(t, part, g, w));
    if (t->op->spec.residual) zero_padded(t, part, g, t->run->dy);
}

static void grad_finish(const BatchNormTask *t, int64_t g)
{
    const BatchNorm *b = t->b;
    float *saved = t->run->saved;
    for (int64_t c = g * b->v.block; c < (g + 1) * b->v.block; ++c) {
        double sum = sums_total(t, c, 0), rest = saved[SAVED_REST * b->padded + c];
        double inverse = saved[SAVED_INVERSE * b->padded + c];
        saved[SAVED_DY * b->padded + c] = (float)sum;
        saved[SAVED_DY_X * b->padded + c] = (float)(inverse * (sums_total(t, c, 1) - rest * sum));
    }
}

/* dx = scale (dy - sum(dy)/n - xhat sum(dy xhat)/n), xhat = (x - mean - rest) inverse, as one line in dy and x. */
static void grad_coef(const BatchNormTask *t, int64_t g)
{
    const BatchNorm *b = t->b;
    const float *saved = t->run->saved;
    double n = (double)t->run->rows * (double)b->v.hw;
    for (int64_t c = g * b->v.block; c < (g + 1) * b->v.block; ++c) {
        if (c >= b->v.channels || n == 0.0) {
            coef_set(t, c, (double[COEFS]){0.0});
            continue;
        }
        double inverse = saved[SAVED_INVERSE * b->padded + c], scale = t->run->w[0][c] * inverse;
        double by_x = -scale * inverse * saved[SAVED_DY_X * b->padded + c] / n;
        double shift =
            -scale * saved[SAVED_DY * b->padded + c] / n - by_x * saved[SAVED_REST * b->padded + c];
        coef_set(t, c, (double[COEFS]){saved[SAVED_MEAN * b->padded + c], by_x, shift, scale});
    }
}

static void grad_rows(const BatchNormTask *t, BatchNormGrad a, int64_t from, int64_t word)
{
    const DType type = t->b->type;
    a.x = element_at(t->run->x[0], from, type);
    a.dy = element_at(t->run->dy, from, type);
    a.dx = element_out(t->run->dx[0], from, type);
    a.keep = t->op->spec.residual ? NULL : keep_at(t, word);
    simd_table(type)->batch_norm_grad(&a);
}

static void grad_map(const BatchNormTask *t, int64_t part, int64_t g)
{
    float wide[COEFS][SIMD_LANES];
    BatchNormGrad a = {.mean = coef_at(t, COEF_MEAN, g, wide[COEF_MEAN]),
                       .by_x = coef_at(t, COEF_X, g, wide[COEF_X]),
                       .shift = coef_at(t, COEF_SHIFT, g, wide[COEF_SHIFT]),
                       .by_dy = coef_at(t, COEF_DY, g, wide[COEF_DY])};
    Span s = span_real(t, part, g);
    for (int64_t i = 0; i < s.count; ++i) {
        Piece p = piece_at(t->b, &s, i);
        a.rows = p.rows;
        a.lanes = t->b->lanes;
        grad_rows(t, a, p.from, p.word);
        a.rows = 1;
        a.lanes = p.tail;
        if (p.tail) grad_rows(t, a, p.tail_from, p.tail_word);
    }
    zero_padded(t, part, g, t->run->dx[0]);
}

/* All passes over a range of groups. */
static void groups_body(const void *task, int64_t begin, int64_t end)
{
    const BatchNormTask *t = task;
    for (int64_t g = begin; g < end; ++g) {
        for (int64_t p = 0; t->sum && p < t->b->parts; ++p) t->sum(t, p, g);
        t->finish(t, g);
        for (int64_t p = t->b->parts - 1; t->map && p >= 0; --p) t->map(t, p, g);
    }
}

static void sum_body(const void *task, int64_t begin, int64_t end)
{
    const BatchNormTask *t = task;
    for (int64_t i = begin; i < end; ++i) t->sum(t, i / t->b->v.groups, i % t->b->v.groups);
}

static void map_body(const void *task, int64_t begin, int64_t end)
{
    const BatchNormTask *t = task;
    for (int64_t i = begin; i < end; ++i) t->map(t, i / t->b->v.groups, i % t->b->v.groups);
}

static void batch_norm_run(BatchNormTask t)
{
    const BatchNorm *b = t.b;
    t.sums = t.run->workspace;
    t.coef = (float *)(t.sums + 2 * b->parts * b->padded);
    int64_t elements = b->v.n * b->v.sample, threads = omp_get_max_threads();
    if (b->v.groups % threads == 0 || b->v.groups >= 4 * threads) {
        work_run(groups_body, &t, b->v.groups, elements);
        return;
    }
    if (t.sum) work_run(sum_body, &t, b->parts * b->v.groups, elements);
    for (int64_t g = 0; g < b->v.groups; ++g) t.finish(&t, g);
    if (t.map) work_run(map_body, &t, b->parts * b->v.groups, elements);
}

static void batch_norm_forward(Op *op, const OpRun *run)
{
    BatchNormTask t = {
        .op = op, .b = op->impl, .run = run, .finish = running_finish, .map = apply_map};
    if (run->training) {
        t.sum = stats_sum;
        t.finish = stats_finish;
    }
    batch_norm_run(t);
}

static void batch_norm_backward_begin(Op *op, const OpRun *run)
{
    BatchNormTask t = {.op = op, .b = op->impl, .run = run, .sum = grad_sum, .finish = grad_finish};
    t.coef = (float *)((double *)run->workspace + 2 * t.b->parts * t.b->padded);
    memcpy(t.coef + COEF_MEAN * t.b->padded, (float *)run->saved + SAVED_MEAN * t.b->padded,
           (size_t)t.b->padded * sizeof(float));
    batch_norm_run(t);
}

static void batch_norm_backward_weight(Op *op, const OpRun *run)
{
    const BatchNorm *b = op->impl;
    const float *saved = run->saved;
    size_t bytes = (size_t)b->v.channels * sizeof(float);
    memcpy(run->dw[0], saved + SAVED_DY_X * b->padded, bytes);
    memcpy(run->dw[1], saved + SAVED_DY * b->padded, bytes);
    memcpy(run->dw[2], saved + SAVED_MEAN * b->padded, bytes);
    memcpy(run->dw[3], saved + SAVED_VARIANCE * b->padded, bytes);
}

static void batch_norm_backward_data(Op *op, const OpRun *run)
{
    if (!run->dx[0]) return;
    batch_norm_run(
        (BatchNormTask){.op = op, .b = op->impl, .run = run, .finish = grad_coef, .map = grad_map});
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
