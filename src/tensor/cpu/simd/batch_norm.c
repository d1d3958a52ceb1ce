/* Batch normalisation with coefficients and sums for each lane. Sums are computed in fp32 over
 * CHUNK rows, in registers, then added in double. A kernel reads every element once. Rows of 16
 * lanes are the fast case; wider rows are processed 16 lanes at a time, and then their remaining
 * lanes one by one. */
#include "vector.h"

enum {
    /* number of rows of a sum in fp32; small, so that rounding errors are small */
    CHUNK = 128,
    /* number of rows that are added to independent sums, which hides the latency of additions */
    DEPTH = 4 / PARTS,
};

/* Converts the sums s1 and s2 of one chunk of `rows` rows, and adds the results to `sum` and
 * `square`. s1: sums of the differences from `shift`; s2: sums of the squares of the differences.
 * The results are sums of the values and of the squares of the values. */
SIMD_INLINE void join_stats(const float *shift, const float *s1, const float *s2, int64_t rows,
                            int lanes, double *sum, double *square)
{
#pragma omp simd
    for (int l = 0; l < lanes; ++l) {
        double m = shift[l], n = (double)rows;
        sum[l] += n * m + s1[l];
        square[l] += s2[l] + m * (2.0 * s1[l] + n * m);
    }
}

/* Adds the sums of 16 lanes over `rows` rows, at most CHUNK, to `sum` and `square`. Rows are
 * `stride` elements apart. */
static void stats_16(const Elem *x, int64_t rows, int64_t stride, double *sum, double *square)
{
    Vf shift[PARTS], s1[DEPTH][PARTS] = {{{0}}}, s2[DEPTH][PARTS] = {{{0}}};
    for (int p = 0; p < PARTS; ++p) shift[p] = elems_load(x + p * VECTOR);
    int64_t r = 0;
    for (; r + DEPTH <= rows; r += DEPTH)
        for (int d = 0; d < DEPTH; ++d)
            for (int p = 0; p < PARTS; ++p) {
                Vf v = elems_load(x + (r + d) * stride + p * VECTOR) - shift[p];
                s1[d][p] += v;
                s2[d][p] += v * v;
            }
    for (; r < rows; ++r)
        for (int p = 0; p < PARTS; ++p) {
            Vf v = elems_load(x + r * stride + p * VECTOR) - shift[p];
            s1[0][p] += v;
            s2[0][p] += v * v;
        }
    for (int d = 1; d < DEPTH; ++d)
        for (int p = 0; p < PARTS; ++p) {
            s1[0][p] += s1[d][p];
            s2[0][p] += s2[d][p];
        }
    float m[SIMD_LANES], a[SIMD_LANES], b[SIMD_LANES];
    memcpy(m, shift, sizeof m);
    memcpy(a, s1[0], sizeof a);
    memcpy(b, s2[0], sizeof b);
    join_stats(m, a, b, rows, SIMD_LANES, sum, square);
}

/* Computes what stats_16 computes, for fewer than 16 lanes. */
static void stats_few(const Elem *x, int64_t rows, int64_t stride, int lanes, double *sum,
                      double *square)
{
    float shift[SIMD_LANES], s1[SIMD_LANES] = {0}, s2[SIMD_LANES] = {0};
    for (int l = 0; l < lanes; ++l) shift[l] = value_of(x[l]);
    for (int64_t r = 0; r < rows; ++r)
        for (int l = 0; l < lanes; ++l) {
            float v = value_of(x[r * stride + l]) - shift[l];
            s1[l] += v;
            s2[l] = fused(v, v, s2[l]);
        }
    join_stats(shift, s1, s2, rows, lanes, sum, square);
}

void SIMD_NAME(batch_norm_stats)(const void *values, int64_t rows, int lanes, double *sum,
                                 double *square)
{
    const Elem *x = values;
    for (int64_t r = 0; r < rows; r += CHUNK) {
        int64_t n = rows - r < CHUNK ? rows - r : CHUNK;
        const Elem *from = x + r * lanes;
        int l = 0;
        for (; l + SIMD_LANES <= lanes; l += SIMD_LANES)
            stats_16(from + l, n, lanes, sum + l, square + l);
        if (l < lanes) stats_few(from + l, n, lanes, lanes - l, sum + l, square + l);
    }
}

/* Returns the number of words of `keep` per row. */
SIMD_INLINE int words_of(int lanes)
{
    return (lanes + SIMD_LANES - 1) / SIMD_LANES;
}

/* a vector of 16 lanes */
typedef struct Parts {
    Vf p[PARTS];
} Parts;

SIMD_INLINE Parts parts_load(const float *from)
{
    Parts v;
    for (int p = 0; p < PARTS; ++p) VECTOR_LOAD(v.p[p], from + p * VECTOR);
    return v;
}

/* Return silu, and its derivative, of each element; compilers turn the loops into vector code. */
SIMD_INLINE Vf silu_vector(Vf v)
{
    float lane[VECTOR];
    memcpy(lane, &v, sizeof lane);
    for (int l = 0; l < VECTOR; ++l) lane[l] = silu_of(lane[l]);
    memcpy(&v, lane, sizeof lane);
    return v;
}

SIMD_INLINE Vf silu_slope_vector(Vf v)
{
    float lane[VECTOR];
    memcpy(lane, &v, sizeof lane);
    for (int l = 0; l < VECTOR; ++l) lane[l] = silu_slope(lane[l]);
    memcpy(&v, lane, sizeof lane);
    return v;
}

SIMD_INLINE Vf act_vector(Act act, Vf v)
{
    const Vf zero = {0}, six = zero + 6.0f;
    if (act == ACT_SILU) return silu_vector(v);
    if (act == ACT_RELU || act == ACT_RELU6) v = VECTOR_KEEP(v, ~(v < zero));
    if (act == ACT_RELU6) {
        Vi over = v > six;
        v = (Vf)(((Vi)six & over) | ((Vi)v & ~over));
    }
    return v;
}

typedef struct Coefficients {
    Parts mean, scale, shift;
} Coefficients;

SIMD_INLINE Coefficients apply_coefficients(const BatchNormApply *a, int lane)
{
    return (Coefficients){parts_load(a->mean + lane), parts_load(a->scale + lane),
                          parts_load(a->shift + lane)};
}

SIMD_INLINE void apply_16(const BatchNormApply *a, const Coefficients *c, int64_t at, int64_t word)
{
    const Vf zero = {0}, six = zero + 6.0f;
    const Elem *x = a->x, *residual = a->residual;
    Elem *y = a->y;
    uint32_t bits = 0;
    for (int p = 0; p < PARTS; ++p) {
        int64_t from = at + p * VECTOR;
        Vf v = elems_load(x + from);
        v = (v - c->mean.p[p]) * c->scale.p[p] + c->shift.p[p];
        if (residual) v += elems_load(residual + from);
        v = act_vector(a->act, v);
        elems_store(y + from, v);
        Vi kept = a->act == ACT_RELU6 ? (v > zero) & (v < six) : v > zero;
        if (a->keep) bits |= mask_bits(kept) << (p * VECTOR);
    }
    if (a->keep) a->keep[word] = (uint16_t)bits;
}

SIMD_INLINE void apply_few(const BatchNormApply *a, int lane, int64_t at, int64_t word)
{
    const Elem *x = a->x, *residual = a->residual;
    Elem *y = a->y;
    uint32_t bits = 0;
    for (int l = 0; l < a->lanes - lane; ++l) {
        float v = value_of(x[at + l]) - a->mean[lane + l];
        v = fused(v, a->scale[lane + l], a->shift[lane + l]);
        if (residual) v += value_of(residual[at + l]);
        v = a->act == ACT_SILU ? silu_of(v) : clip_of(a->act, v);
        y[at + l] = elem_of(v);
        bits |= (uint32_t)(v > 0.0f && (a->act != ACT_RELU6 || v < 6.0f)) << l;
    }
    if (a->keep) a->keep[word] = (uint16_t)bits;
}

/* Runs the loop of batch_norm_apply. act, residual and keep are compile-time constants; the latter
 * two say whether args has such an array. */
SIMD_INLINE void apply(const BatchNormApply *args, Act act, bool residual, bool keep)
{
    BatchNormApply a = *args;
    a.act = act;
    a.residual = residual ? a.residual : NULL;
    a.keep = keep ? a.keep : NULL;
    if (a.lanes == SIMD_LANES) {
        const Coefficients c = apply_coefficients(&a, 0);
        for (int64_t r = 0; r < a.rows; ++r) apply_16(&a, &c, r * SIMD_LANES, r);
        return;
    }
    for (int64_t r = 0; r < a.rows; ++r) {
        int64_t word = r * words_of(a.lanes);
        int l = 0;
        for (; l + SIMD_LANES <= a.lanes; l += SIMD_LANES) {
            const Coefficients c = apply_coefficients(&a, l);
            apply_16(&a, &c, r * a.lanes + l, word++);
        }
        if (l < a.lanes) apply_few(&a, l, r * a.lanes + l, word);
    }
}

SIMD_INLINE void apply_act(const BatchNormApply *a, Act act)
{
    if (a->residual && a->keep)
        apply(a, act, true, true);
    else if (a->residual)
        apply(a, act, true, false);
    else if (a->keep)
        apply(a, act, false, true);
    else
        apply(a, act, false, false);
}

void SIMD_NAME(batch_norm_apply)(const BatchNormApply *a)
{
    if (a->act == ACT_RELU)
        apply_act(a, ACT_RELU);
    else if (a->act == ACT_RELU6)
        apply_act(a, ACT_RELU6);
    else if (a->act == ACT_SILU)
        apply(a, ACT_SILU, false, false);
    else
        apply_act(a, ACT_NONE);
}

SIMD_INLINE Coefficients sum_coefficients(const BatchNormSums *a, int lane)
{
    Coefficients c = {.mean = parts_load(a->mean + lane)};
    if (!a->scale) return c;
    c.scale = parts_load(a->scale + lane);
    c.shift = parts_load(a->shift + lane);
    return c;
}

/* Adds 16 lanes of one row to s1 and s2. */
SIMD_INLINE void sum_row(const BatchNormSums *a, const Coefficients *c, int64_t at, int64_t word,
                         Vf s1[PARTS], Vf s2[PARTS])
{
    uint32_t bits = a->keep ? a->keep[word] : 0;
    const Elem *x = a->x;
    Elem *dy = a->dy;
    for (int p = 0; p < PARTS; ++p) {
        int64_t from = at + p * VECTOR;
        Vf g = elems_load(dy + from);
        if (a->keep) g = VECTOR_KEEP(g, bits_mask(bits >> (p * VECTOR)));
        const Vf v = elems_load(x + from) - c->mean.p[p];
        if (a->scale) g *= silu_slope_vector(v * c->scale.p[p] + c->shift.p[p]);
        if (a->store) elems_store(dy + from, g);
        s1[p] += g;
        s2[p] += g * v;
    }
}

SIMD_INLINE void sums_16(const BatchNormSums *a, int64_t first, int64_t rows, int lane)
{
    const Coefficients c = sum_coefficients(a, lane);
    const int64_t words = words_of(a->lanes), word = lane / SIMD_LANES;
    Vf s1[DEPTH][PARTS] = {{{0}}}, s2[DEPTH][PARTS] = {{{0}}};
    int64_t r = first, end = first + rows;
    for (; r + DEPTH <= end; r += DEPTH)
        for (int d = 0; d < DEPTH; ++d)
            sum_row(a, &c, (r + d) * a->lanes + lane, (r + d) * words + word, s1[d], s2[d]);
    for (; r < end; ++r) sum_row(a, &c, r * a->lanes + lane, r * words + word, s1[0], s2[0]);
    for (int d = 1; d < DEPTH; ++d)
        for (int p = 0; p < PARTS; ++p) {
            s1[0][p] += s1[d][p];
            s2[0][p] += s2[d][p];
        }
    float t1[SIMD_LANES], t2[SIMD_LANES];
    memcpy(t1, s1[0], sizeof t1);
    memcpy(t2, s2[0], sizeof t2);
    double *sum = a->sum + lane, *sum_x = a->sum_x + lane;
#pragma omp simd
    for (int l = 0; l < SIMD_LANES; ++l) {
        sum[l] += t1[l];
        sum_x[l] += t2[l];
    }
}

static void sums_few(const BatchNormSums *a, int64_t first, int64_t rows, int lane)
{
    const Elem *x = a->x;
    Elem *dy = a->dy;
    for (int l = lane; l < a->lanes; ++l) {
        float s1 = 0.0f, s2 = 0.0f;
        for (int64_t r = first; r < first + rows; ++r) {
            int64_t at = r * a->lanes + l;
            float g = value_of(dy[at]);
            if (a->keep) {
                uint32_t bits = a->keep[r * words_of(a->lanes) + lane / SIMD_LANES];
                g = bits >> (l - lane) & 1 ? g : 0.0f;
            }
            const float v = value_of(x[at]) - a->mean[l];
            if (a->scale) g *= silu_slope(fused(v, a->scale[l], a->shift[l]));
            if (a->store) dy[at] = elem_of(g);
            s1 += g;
            s2 = fused(g, v, s2);
        }
        a->sum[l] += s1;
        a->sum_x[l] += s2;
    }
}

SIMD_INLINE void sums(const BatchNormSums *args, bool keep, bool store, bool silu)
{
    BatchNormSums a = *args;
    a.scale = silu ? a.scale : NULL;
    a.keep = keep ? a.keep : NULL;
    a.store = store;
    for (int64_t r = 0; r < a.rows; r += CHUNK) {
        int64_t n = a.rows - r < CHUNK ? a.rows - r : CHUNK;
        int l = 0;
        if (a.lanes == SIMD_LANES) {
            /* a compile-time constant from here on */
            a.lanes = SIMD_LANES;
            sums_16(&a, r, n, 0);
            continue;
        }
        for (; l + SIMD_LANES <= a.lanes; l += SIMD_LANES) sums_16(&a, r, n, l);
        if (l < a.lanes) sums_few(&a, r, n, l);
    }
}

void SIMD_NAME(batch_norm_sums)(const BatchNormSums *a)
{
    if (a->scale)
        sums(a, false, true, true);
    else if (a->keep && a->store)
        sums(a, true, true, false);
    else if (a->keep)
        sums(a, true, false, false);
    else
        sums(a, false, false, false);
}

typedef struct GradCoefficients {
    Parts mean, by_dy, by_x, shift;
} GradCoefficients;

SIMD_INLINE GradCoefficients grad_coefficients(const BatchNormGrad *a, int lane)
{
    return (GradCoefficients){parts_load(a->mean + lane), parts_load(a->by_dy + lane),
                              parts_load(a->by_x + lane), parts_load(a->shift + lane)};
}

SIMD_INLINE void grad_16(const BatchNormGrad *a, const GradCoefficients *c, int64_t at,
                         int64_t word)
{
    uint32_t bits = a->keep ? a->keep[word] : 0;
    const Elem *x = a->x, *dy = a->dy;
    Elem *dx = a->dx;
    for (int p = 0; p < PARTS; ++p) {
        int64_t from = at + p * VECTOR;
        Vf v = elems_load(x + from), g = elems_load(dy + from);
        if (a->keep) g = VECTOR_KEEP(g, bits_mask(bits >> (p * VECTOR)));
        v = (v - c->mean.p[p]) * c->by_x.p[p] + c->shift.p[p];
        v = g * c->by_dy.p[p] + v;
        elems_store(dx + from, v);
    }
}

SIMD_INLINE void grad_few(const BatchNormGrad *a, int lane, int64_t at, int64_t word)
{
    uint32_t bits = a->keep ? a->keep[word] : 0xffff;
    const Elem *x = a->x, *dy = a->dy;
    Elem *dx = a->dx;
    for (int l = 0; l < a->lanes - lane; ++l) {
        float v = value_of(x[at + l]) - a->mean[lane + l];
        v = fused(v, a->by_x[lane + l], a->shift[lane + l]);
        float g = bits >> l & 1 ? value_of(dy[at + l]) : 0.0f;
        dx[at + l] = elem_of(fused(g, a->by_dy[lane + l], v));
    }
}

SIMD_INLINE void grad(const BatchNormGrad *args, bool keep)
{
    BatchNormGrad a = *args;
    a.keep = keep ? a.keep : NULL;
    if (a.lanes == SIMD_LANES) {
        const GradCoefficients c = grad_coefficients(&a, 0);
        for (int64_t r = 0; r < a.rows; ++r) grad_16(&a, &c, r * SIMD_LANES, r);
        return;
    }
    for (int64_t r = 0; r < a.rows; ++r) {
        int64_t word = r * words_of(a.lanes);
        int l = 0;
        for (; l + SIMD_LANES <= a.lanes; l += SIMD_LANES) {
            const GradCoefficients c = grad_coefficients(&a, l);
            grad_16(&a, &c, r * a.lanes + l, word++);
        }
        if (l < a.lanes) grad_few(&a, l, r * a.lanes + l, word);
    }
}

void SIMD_NAME(batch_norm_grad)(const BatchNormGrad *a)
{
    if (a->keep)
        grad(a, true);
    else
        grad(a, false);
}
