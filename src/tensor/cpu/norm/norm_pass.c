/* The passes of batch_norm, group_norm, film and the bias of conv_transpose2d. */
#include "norm_pass.h"

NormPlan norm_plan(Desc x)
{
    NormPlan plan = {.v = view_of(x), .type = x.dtype};
    /* (N,C) is processed as an image of one pixel in channels-last order */
    if (x.shape.ndim != 4) {
        plan.v.block = (int)plan.v.channels;
        plan.v.plane = plan.v.channels;
        plan.v.groups = 1;
    }
    plan.lanes = SIMD_LANES % plan.v.block == 0 ? SIMD_LANES : plan.v.block;
    plan.padded = plan.v.groups * plan.v.block;
    plan.words = plan.lanes == SIMD_LANES
                     ? (plan.v.plane + SIMD_LANES - 1) / SIMD_LANES
                     : plan.v.hw * ((plan.lanes + SIMD_LANES - 1) / SIMD_LANES);
    return plan;
}

size_t norm_keep_bytes(const NormPlan *plan)
{
    return (size_t)(plan->v.n * plan->v.groups * plan->words) * sizeof(uint16_t);
}

size_t norm_workspace_bytes(const NormPlan *plan, int64_t coefs)
{
    return (size_t)(2 * plan->parts * plan->padded) * sizeof(double) +
           (size_t)(coefs * COEFS * plan->padded) * sizeof(float);
}

NormTask norm_task(const Op *op, const OpRun *run, const NormPlan *plan, int64_t coefs,
                   int64_t saved_floats)
{
    NormTask t = {.op = op, .plan = plan, .run = run, .sums = run->workspace};
    t.coef = (float *)(t.sums + 2 * plan->parts * plan->padded);
    t.coef_step = coefs > 1 ? COEFS * plan->padded : 0;
    const bool clips = op->spec.act != ACT_NONE && op->spec.act != ACT_SILU;
    if (clips && run->training && run->saved)
        t.keep = (uint16_t *)((float *)run->saved + saved_floats);
    return t;
}

/* ---- one part of the samples, block by block ---- */

/* The memory of a block of channels in some samples: `count` contiguous pieces, one for each
 * sample, or a single piece if there is only one block. */
typedef struct Span {
    /* the first piece's first element */
    int64_t from;
    /* elements from the beginning of one piece to the next */
    int64_t step;
    /* elements of a piece */
    int64_t length;
    int64_t count;
    /* the first piece's first word of `keep` */
    int64_t word;
    /* words of `keep` from one piece to the next */
    int64_t word_step;
} Span;

/* One piece as rows for the kernels: `rows` full rows, and possibly a last row of fewer lanes. */
typedef struct Piece {
    /* the first element */
    int64_t from;
    /* the first word of `keep` */
    int64_t word;
    int64_t rows;
    /* the last row's first element */
    int64_t tail_from;
    /* the last row's first word of `keep` */
    int64_t tail_word;
    /* lanes of the last row; 0: all rows are full */
    int tail;
} Piece;

/* Returns the first sample of a part. */
static int64_t part_first(const NormPlan *plan, int64_t part)
{
    return plan->v.n * part / plan->parts;
}

/* Returns the memory of block g in samples `first` to `last` - 1. */
static Span span_of(const NormPlan *plan, int64_t first, int64_t last, int64_t g)
{
    Span s = {.from = first * plan->v.sample + g * plan->v.plane,
              .count = last > first ? last - first : 0,
              .step = plan->v.sample,
              .length = plan->v.plane,
              .word = (first * plan->v.groups + g) * plan->words,
              .word_step = plan->v.groups * plan->words};
    if (plan->v.groups == 1 && s.count > 0) {
        s.length *= s.count;
        s.count = 1;
    }
    return s;
}

/* Returns the memory of block g in the part's samples that are not padding. */
static Span span_real(const NormTask *t, int64_t part, int64_t g)
{
    int64_t first = part_first(t->plan, part), last = part_first(t->plan, part + 1);
    return span_of(t->plan, first, last < t->run->sample_count ? last : t->run->sample_count, g);
}

static Piece piece_at(const NormPlan *plan, const Span *s, int64_t i)
{
    Piece p = {.from = s->from + i * s->step, .word = s->word + i * s->word_step};
    p.rows = s->length / plan->lanes;
    p.tail = (int)(s->length % plan->lanes);
    p.tail_from = p.from + p.rows * plan->lanes;
    /* only pieces with rows of 16 lanes can have a last row of fewer lanes; such pieces have one
     * word per row */
    p.tail_word = p.word + p.rows;
    return p;
}

static uint16_t *keep_at(const NormTask *t, int64_t word)
{
    return t->keep ? t->keep + word : NULL;
}

/* Sets block g of the part's padding samples to 0. */
static void zero_padded(const NormTask *t, int64_t part, int64_t g, void *p)
{
    int64_t first = part_first(t->plan, part), last = part_first(t->plan, part + 1);
    Span s = span_of(t->plan, first > t->run->sample_count ? first : t->run->sample_count, last, g);
    for (int64_t i = 0; i < s.count; ++i)
        elements_zero(element_out(p, s.from + i * s.step, t->plan->type), s.length, t->plan->type);
}

/* Returns the address of the sums of block g in a part. The kernels add to these sums directly or,
 * if a kernel's row has several pixels, to an array of one sum per lane, from which sums_fold
 * computes the sums per channel. */
static double *sums_at(const NormTask *t, int64_t part, int64_t g, int which)
{
    return t->sums + (2 * part + which) * t->plan->padded + g * t->plan->v.block;
}

static void sums_fold(const NormPlan *plan, const double wide[SIMD_LANES], double *out)
{
    for (int l = 0; l < plan->v.block; ++l) out[l] = 0.0;
    for (int l = 0; l < SIMD_LANES; ++l) out[l % plan->v.block] += wide[l];
}

double norm_total(const NormTask *t, int64_t c, int which)
{
    double total = 0.0;
    if (t->total) return t->total[which * t->plan->padded + c];
    for (int64_t p = 0; p < t->plan->parts; ++p)
        total += t->sums[(2 * p + which) * t->plan->padded + c];
    return total;
}

/* ---- coefficients ---- */

/* Returns the numbers of block g, one for each lane of a kernel's row, from the array `channel`,
 * which has one number per channel. Returns NULL if `channel` is NULL. wide: scratch. */
static const float *lanes_at(const NormPlan *plan, const float *channel, int64_t g,
                             float wide[SIMD_LANES])
{
    const float *block = channel ? channel + g * plan->v.block : NULL;
    if (!block || plan->v.block == plan->lanes) return block;
    for (int l = 0; l < SIMD_LANES; ++l) wide[l] = block[l % plan->v.block];
    return wide;
}

/* Returns coefficient number `which` of block g for each lane of a kernel's row. */
static const float *coef_at(const NormTask *t, int which, int64_t part, int64_t g,
                            float wide[SIMD_LANES])
{
    const float *coef = t->coef + part * t->coef_step + which * t->plan->padded;
    return lanes_at(t->plan, coef, g, wide);
}

void norm_coef_set(const NormTask *t, int64_t part, int64_t c, const double value[COEFS])
{
    for (int i = 0; i < COEFS; ++i)
        t->coef[part * t->coef_step + i * t->plan->padded + c] = (float)value[i];
}

double norm_scale(const NormTask *t, int64_t c)
{
    return t->op->spec.w_count > 0 ? (double)t->run->w[0][c] : 1.0;
}

void norm_forward_coef(const NormTask *t, int64_t part, int64_t c, double mean, double inverse)
{
    const double scale = norm_scale(t, c) * inverse, rest = mean - (double)(float)mean;
    const double shift = t->op->spec.w_count > 0 ? (double)t->run->w[1][c] : 0.0;
    norm_coef_set(t, part, c, (double[COEFS]){mean, scale, shift - rest * scale, 0.0});
}

/* ---- the passes ---- */

void norm_stats(const NormTask *t, int64_t part, int64_t g)
{
    const NormPlan *plan = t->plan;
    const SimdTable *simd = simd_table(plan->type);
    double wide[2][SIMD_LANES] = {{0}};
    bool fold = plan->v.block != plan->lanes;
    double *sum = fold ? wide[0] : sums_at(t, part, g, 0);
    double *square = fold ? wide[1] : sums_at(t, part, g, 1);
    for (int l = 0; l < plan->lanes; ++l) sum[l] = square[l] = 0.0;
    Span s = span_real(t, part, g);
    const void *x = t->run->x[0];
    for (int64_t i = 0; i < s.count; ++i) {
        Piece p = piece_at(plan, &s, i);
        simd->batch_norm_stats(element_at(x, p.from, plan->type), p.rows, plan->lanes, sum, square);
        if (p.tail)
            simd->batch_norm_stats(element_at(x, p.tail_from, plan->type), 1, p.tail, sum, square);
    }
    if (fold)
        for (int w = 0; w < 2; ++w) sums_fold(plan, wide[w], sums_at(t, part, g, w));
}

static void apply_rows(const NormTask *t, BatchNormApply a, int64_t from, int64_t word)
{
    const DType type = t->plan->type;
    a.x = element_at(t->run->x[0], from, type);
    a.residual = t->op->spec.residual ? element_at(t->run->x[1], from, type) : NULL;
    a.y = element_out(t->run->y, from, type);
    a.keep = keep_at(t, word);
    simd_table(type)->batch_norm_apply(&a);
}

void norm_apply(const NormTask *t, int64_t part, int64_t g)
{
    float wide[COEFS][SIMD_LANES];
    BatchNormApply a = {.act = t->op->spec.act,
                        .mean = coef_at(t, COEF_MEAN, part, g, wide[COEF_MEAN]),
                        .scale = coef_at(t, COEF_X, part, g, wide[COEF_X]),
                        .shift = coef_at(t, COEF_SHIFT, part, g, wide[COEF_SHIFT])};
    Span s = span_real(t, part, g);
    for (int64_t i = 0; i < s.count; ++i) {
        Piece p = piece_at(t->plan, &s, i);
        a.rows = p.rows;
        a.lanes = t->plan->lanes;
        apply_rows(t, a, p.from, p.word);
        a.rows = 1;
        a.lanes = p.tail;
        if (p.tail) apply_rows(t, a, p.tail_from, p.tail_word);
    }
    zero_padded(t, part, g, t->run->y);
}

static void grad_sum_rows(const NormTask *t, BatchNormSums a, int64_t from, int64_t word)
{
    const DType type = t->plan->type;
    a.x = element_at(t->run->x[0], from, type);
    a.dy = element_out(t->run->dy, from, type);
    a.keep = keep_at(t, word);
    a.store = a.keep && t->op->spec.residual;
    simd_table(type)->batch_norm_sums(&a);
}

void norm_grad_sums(const NormTask *t, int64_t part, int64_t g)
{
    const NormPlan *plan = t->plan;
    double wide[2][SIMD_LANES] = {{0}};
    float mean[SIMD_LANES], silu[2][SIMD_LANES];
    bool fold = plan->v.block != plan->lanes;
    BatchNormSums a = {.mean = coef_at(t, COEF_MEAN, part, g, mean),
                       .scale = lanes_at(plan, t->silu_scale, g, silu[0]),
                       .shift = lanes_at(plan, t->silu_shift, g, silu[1]),
                       .sum = fold ? wide[0] : sums_at(t, part, g, 0),
                       .sum_x = fold ? wide[1] : sums_at(t, part, g, 1)};
    for (int l = 0; l < plan->lanes; ++l) a.sum[l] = a.sum_x[l] = 0.0;
    Span s = span_real(t, part, g);
    for (int64_t i = 0; i < s.count; ++i) {
        Piece p = piece_at(plan, &s, i);
        a.rows = p.rows;
        a.lanes = plan->lanes;
        grad_sum_rows(t, a, p.from, p.word);
        a.rows = 1;
        a.lanes = p.tail;
        if (p.tail) grad_sum_rows(t, a, p.tail_from, p.tail_word);
    }
    if (fold)
        for (int w = 0; w < 2; ++w) sums_fold(plan, wide[w], sums_at(t, part, g, w));
    if (t->op->spec.residual) zero_padded(t, part, g, t->run->dy);
}

static void grad_rows(const NormTask *t, BatchNormGrad a, int64_t from, int64_t word)
{
    const DType type = t->plan->type;
    a.x = element_at(t->run->x[0], from, type);
    a.dy = element_at(t->run->dy, from, type);
    a.dx = element_out(t->run->dx[0], from, type);
    a.keep = t->op->spec.residual ? NULL : keep_at(t, word);
    simd_table(type)->batch_norm_grad(&a);
}

void norm_grad(const NormTask *t, int64_t part, int64_t g)
{
    float wide[COEFS][SIMD_LANES];
    BatchNormGrad a = {.mean = coef_at(t, COEF_MEAN, part, g, wide[COEF_MEAN]),
                       .by_x = coef_at(t, COEF_X, part, g, wide[COEF_X]),
                       .shift = coef_at(t, COEF_SHIFT, part, g, wide[COEF_SHIFT]),
                       .by_dy = coef_at(t, COEF_DY, part, g, wide[COEF_DY])};
    Span s = span_real(t, part, g);
    for (int64_t i = 0; i < s.count; ++i) {
        Piece p = piece_at(t->plan, &s, i);
        a.rows = p.rows;
        a.lanes = t->plan->lanes;
        grad_rows(t, a, p.from, p.word);
        a.rows = 1;
        a.lanes = p.tail;
        if (p.tail) grad_rows(t, a, p.tail_from, p.tail_word);
    }
    zero_padded(t, part, g, t->run->dx[0]);
}

void norm_sum_body(const void *task, int64_t begin, int64_t end)
{
    const NormTask *t = task;
    for (int64_t i = begin; i < end; ++i) t->sum(t, i / t->plan->v.groups, i % t->plan->v.groups);
}

void norm_map_body(const void *task, int64_t begin, int64_t end)
{
    const NormTask *t = task;
    for (int64_t i = begin; i < end; ++i) t->map(t, i / t->plan->v.groups, i % t->plan->v.groups);
}
