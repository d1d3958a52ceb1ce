/* The passes of batch_norm and group_norm. */
#include "norm_pass.h"

NormPlan norm_plan(Desc x)
{
    NormPlan b = {.v = view_of(x), .type = x.dtype};
    /* (N,C): one pixel, channels-last */
    if (x.shape.ndim != 4) {
        b.v.block = (int)b.v.channels;
        b.v.plane = b.v.channels;
        b.v.groups = 1;
    }
    b.lanes = SIMD_LANES % b.v.block == 0 ? SIMD_LANES : b.v.block;
    b.padded = b.v.groups * b.v.block;
    b.words = b.lanes == SIMD_LANES ? (b.v.plane + SIMD_LANES - 1) / SIMD_LANES
                                    : b.v.hw * ((b.lanes + SIMD_LANES - 1) / SIMD_LANES);
    return b;
}

size_t norm_keep_bytes(const NormPlan *b)
{
    return (size_t)(b->v.n * b->v.groups * b->words) * sizeof(uint16_t);
}

size_t norm_workspace_bytes(const NormPlan *b, int64_t coefs)
{
    return (size_t)(2 * b->parts * b->padded) * sizeof(double) +
           (size_t)(coefs * COEFS * b->padded) * sizeof(float);
}

NormTask norm_task(const Op *op, const OpRun *run, const NormPlan *b, int64_t coefs,
                   int64_t saved_floats)
{
    NormTask t = {.op = op, .b = b, .run = run, .sums = run->workspace};
    t.coef = (float *)(t.sums + 2 * b->parts * b->padded);
    t.coef_step = coefs > 1 ? COEFS * b->padded : 0;
    if (op->spec.act != ACT_NONE && run->training && run->saved)
        t.keep = (uint16_t *)((float *)run->saved + saved_floats);
    return t;
}

/* ---- one part of the samples, block by block ---- */

/* The memory of group g in some samples: `count` pieces of `length` elements, `step` apart, and the
 * words of their bits, from `word` on, word_step apart. */
typedef struct Span {
    int64_t from, count, step, length, word, word_step;
} Span;

/* One piece as rows for the kernels, plus a tail row of fewer lanes (tail 0: none). */
typedef struct Piece {
    int64_t from, word, rows, tail_from, tail_word;
    int tail;
} Piece;

static int64_t part_edge(const NormPlan *b, int64_t part)
{
    return b->v.n * part / b->parts;
}

static Span span_of(const NormPlan *b, int64_t first, int64_t last, int64_t g)
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

static Span span_real(const NormTask *t, int64_t part, int64_t g)
{
    int64_t first = part_edge(t->b, part), last = part_edge(t->b, part + 1);
    return span_of(t->b, first, last < t->run->rows ? last : t->run->rows, g);
}

static Piece piece_at(const NormPlan *b, const Span *s, int64_t i)
{
    Piece p = {.from = s->from + i * s->step, .word = s->word + i * s->word_step};
    p.rows = s->length / b->lanes;
    p.tail = (int)(s->length % b->lanes);
    p.tail_from = p.from + p.rows * b->lanes;
    /* only rows of 16 lanes leave a tail */
    p.tail_word = p.word + p.rows;
    return p;
}

static uint16_t *keep_at(const NormTask *t, int64_t word)
{
    return t->keep ? t->keep + word : NULL;
}

static void zero_padded(const NormTask *t, int64_t part, int64_t g, void *p)
{
    int64_t first = part_edge(t->b, part), last = part_edge(t->b, part + 1);
    Span s = span_of(t->b, first > t->run->rows ? first : t->run->rows, last, g);
    for (int64_t i = 0; i < s.count; ++i)
        elements_zero(element_out(p, s.from + i * s.step, t->b->type), s.length, t->b->type);
}

/* The sums of (part, g). The kernels add to them directly, or, if rows hold several pixels, to
 * `wide`, which sums_fold then adds up per channel. */
static double *sums_at(const NormTask *t, int64_t part, int64_t g, int which)
{
    return t->sums + (2 * part + which) * t->b->padded + g * t->b->v.block;
}

static void sums_fold(const NormPlan *b, const double wide[SIMD_LANES], double *out)
{
    for (int l = 0; l < b->v.block; ++l) out[l] = 0.0;
    for (int l = 0; l < SIMD_LANES; ++l) out[l % b->v.block] += wide[l];
}

/* ---- coefficients ---- */

/* A coefficient of block g for each lane of a kernel's row. */
static const float *coef_at(const NormTask *t, int which, int64_t part, int64_t g,
                            float wide[SIMD_LANES])
{
    const float *coef = t->coef + part * t->coef_step + which * t->b->padded + g * t->b->v.block;
    if (t->b->v.block == t->b->lanes) return coef;
    for (int l = 0; l < SIMD_LANES; ++l) wide[l] = coef[l % t->b->v.block];
    return wide;
}

void norm_coef_set(const NormTask *t, int64_t part, int64_t c, const double value[COEFS])
{
    for (int i = 0; i < COEFS; ++i)
        t->coef[part * t->coef_step + i * t->b->padded + c] = (float)value[i];
}

void norm_forward_coef(const NormTask *t, int64_t part, int64_t c, double mean, double inverse)
{
    double scale = t->run->w[0][c] * inverse, rest = mean - (double)(float)mean;
    norm_coef_set(t, part, c, (double[COEFS]){mean, scale, t->run->w[1][c] - rest * scale, 0.0});
}

/* ---- the passes ---- */

void norm_stats(const NormTask *t, int64_t part, int64_t g)
{
    const NormPlan *b = t->b;
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

static void apply_rows(const NormTask *t, BatchNormApply a, int64_t from, int64_t word)
{
    const DType type = t->b->type;
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

static void grad_sum_rows(const NormTask *t, BatchNormSums a, int64_t from, int64_t word)
{
    const DType type = t->b->type;
    a.x = element_at(t->run->x[0], from, type);
    a.dy = element_out(t->run->dy, from, type);
    a.keep = keep_at(t, word);
    a.store = a.keep && t->op->spec.residual;
    simd_table(type)->batch_norm_sums(&a);
}

void norm_grad_sums(const NormTask *t, int64_t part, int64_t g)
{
    const NormPlan *b = t->b;
    double wide[2][SIMD_LANES] = {{0}};
    float mean[SIMD_LANES];
    bool fold = b->v.block != b->lanes;
    BatchNormSums a = {.mean = coef_at(t, COEF_MEAN, part, g, mean),
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

static void grad_rows(const NormTask *t, BatchNormGrad a, int64_t from, int64_t word)
{
    const DType type = t->b->type;
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

void norm_sum_body(const void *task, int64_t begin, int64_t end)
{
    const NormTask *t = task;
    for (int64_t i = begin; i < end; ++i) t->sum(t, i / t->b->v.groups, i % t->b->v.groups);
}

void norm_map_body(const void *task, int64_t begin, int64_t end)
{
    const NormTask *t = task;
    for (int64_t i = begin; i < end; ++i) t->map(t, i / t->b->v.groups, i % t->b->v.groups);
}
