/* Batch normalisation by lane. Sums run in registers over short runs of rows and then in double; the other passes touch
 * every element once. Rows of 16 lanes are the fast case; a tail row of fewer, or a wide row, takes plain loops. */
#include "vector.h"

enum {
    CHUNK = 128,       /* rows a float sum covers: keeps its error, and that of the shift, small */
    DEPTH = 4 / PARTS, /* independent sums, to hide the latency of an addition */
};

/* Moves sums around `shift` over `rows` rows to sums around zero. */
static void join_stats(const float *shift, const float *s1, const float *s2, int64_t rows,
                       int lanes, double *sum, double *square)
{
    for (int l = 0; l < lanes; ++l) {
        double m = shift[l], n = (double)rows;
        sum[l] += n * m + s1[l];
        square[l] += s2[l] + m * (2.0 * s1[l] + n * m);
    }
}

static void stats_16(const float *x, int64_t rows, int64_t stride, double *sum, double *square)
{
    Vf shift[PARTS], s1[DEPTH][PARTS] = {{{0}}}, s2[DEPTH][PARTS] = {{{0}}};
    for (int p = 0; p < PARTS; ++p) VECTOR_LOAD(shift[p], x + p * VECTOR);
    int64_t r = 0;
    for (; r + DEPTH <= rows; r += DEPTH)
        for (int d = 0; d < DEPTH; ++d)
            for (int p = 0; p < PARTS; ++p) {
                Vf v;
                VECTOR_LOAD(v, x + (r + d) * stride + p * VECTOR);
                v -= shift[p];
                s1[d][p] += v;
                s2[d][p] += v * v;
            }
    for (; r < rows; ++r)
        for (int p = 0; p < PARTS; ++p) {
            Vf v;
            VECTOR_LOAD(v, x + r * stride + p * VECTOR);
            v -= shift[p];
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

static void stats_few(const float *x, int64_t rows, int64_t stride, int lanes, double *sum,
                      double *square)
{
    float s1[SIMD_LANES] = {0}, s2[SIMD_LANES] = {0};
    for (int64_t r = 0; r < rows; ++r)
        for (int l = 0; l < lanes; ++l) {
            float v = x[r * stride + l] - x[l];
            s1[l] += v;
            s2[l] = fused(v, v, s2[l]);
        }
    join_stats(x, s1, s2, rows, lanes, sum, square);
}

void SIMD_NAME(bn_stats)(const float *x, int64_t rows, int64_t stride, int lanes, double *sum,
                         double *square)
{
    for (int64_t r = 0; r < rows; r += CHUNK) {
        int64_t n = rows - r < CHUNK ? rows - r : CHUNK;
        const float *from = x + r * stride;
        int l = 0;
        for (; l + SIMD_LANES <= lanes; l += SIMD_LANES)
            stats_16(from + l, n, stride, sum + l, square + l);
        if (l < lanes) stats_few(from + l, n, stride, lanes - l, sum + l, square + l);
    }
}

SIMD_INLINE Vf clip_vector(Act act, Vf v)
{
    const Vf zero = {0}, six = zero + 6.0f;
    if (act == ACT_RELU || act == ACT_RELU6) v = VECTOR_KEEP(v, ~(v < zero));
    if (act == ACT_RELU6) {
        Vi over = v > six;
        v = (Vf)(((Vi)six & over) | ((Vi)v & ~over));
    }
    return v;
}

SIMD_INLINE void apply_16(const BnApply *a, Act act, const float *residual)
{
    Vf mean[PARTS], scale[PARTS], shift[PARTS];
    for (int p = 0; p < PARTS; ++p) {
        VECTOR_LOAD(mean[p], a->mean + p * VECTOR);
        VECTOR_LOAD(scale[p], a->scale + p * VECTOR);
        VECTOR_LOAD(shift[p], a->shift + p * VECTOR);
    }
    const float *x = a->x;
    float *y = a->y;
    int64_t rows = a->rows;
    for (int64_t r = 0; r < rows; ++r)
        for (int p = 0; p < PARTS; ++p) {
            int64_t at = r * SIMD_LANES + p * VECTOR;
            Vf v;
            VECTOR_LOAD(v, x + at);
            v = (v - mean[p]) * scale[p] + shift[p];
            if (residual) {
                Vf more;
                VECTOR_LOAD(more, residual + at);
                v += more;
            }
            v = clip_vector(act, v);
            VECTOR_STORE(y + at, v);
        }
}

SIMD_INLINE void apply_any(const BnApply *a, Act act, const float *residual)
{
    const float *mean = a->mean, *scale = a->scale, *shift = a->shift;
    for (int64_t r = 0; r < a->rows; ++r) {
        const float *x = a->x + r * a->lanes;
        float *y = a->y + r * a->lanes;
#pragma omp simd
        for (int l = 0; l < a->lanes; ++l) {
            float v = fused(x[l] - mean[l], scale[l], shift[l]);
            if (residual) v += residual[r * a->lanes + l];
            y[l] = clip_of(act, v);
        }
    }
}

SIMD_INLINE void apply(const BnApply *a, Act act)
{
    if (a->lanes != SIMD_LANES) {
        if (a->residual) apply_any(a, act, a->residual);
        else apply_any(a, act, NULL);
    } else if (a->residual) apply_16(a, act, a->residual);
    else apply_16(a, act, NULL);
}

void SIMD_NAME(bn_apply)(const BnApply *a)
{
    if (a->act == ACT_RELU) apply(a, ACT_RELU);
    else if (a->act == ACT_RELU6) apply(a, ACT_RELU6);
    else apply(a, ACT_NONE);
}

/* dy of one vector, masked where act was cut and then stored back. */
SIMD_INLINE Vf masked_dy(const BnSums *a, Act act, int64_t at)
{
    const Vf zero = {0}, six = zero + 6.0f;
    Vf g;
    VECTOR_LOAD(g, a->dy + at);
    if (act == ACT_NONE) return g;
    Vf y;
    VECTOR_LOAD(y, a->y + at);
    Vi keep = y > zero;
    if (act == ACT_RELU6) keep &= y < six;
    g = VECTOR_KEEP(g, keep);
    VECTOR_STORE(a->dy + at, g);
    return g;
}

SIMD_INLINE void sums_16(const BnSums *a, Act act, int64_t rows, int64_t from, int lane)
{
    Vf mean[PARTS], s1[DEPTH][PARTS] = {{{0}}}, s2[DEPTH][PARTS] = {{{0}}};
    for (int p = 0; p < PARTS; ++p) VECTOR_LOAD(mean[p], a->mean + lane + p * VECTOR);
    int64_t r = 0, stride = a->stride;
    for (; r + DEPTH <= rows; r += DEPTH)
        for (int d = 0; d < DEPTH; ++d)
            for (int p = 0; p < PARTS; ++p) {
                int64_t at = from + (r + d) * stride + p * VECTOR;
                Vf x, g = masked_dy(a, act, at);
                VECTOR_LOAD(x, a->x + at);
                s1[d][p] += g;
                s2[d][p] += g * (x - mean[p]);
            }
    for (; r < rows; ++r)
        for (int p = 0; p < PARTS; ++p) {
            int64_t at = from + r * stride + p * VECTOR;
            Vf x, g = masked_dy(a, act, at);
            VECTOR_LOAD(x, a->x + at);
            s1[0][p] += g;
            s2[0][p] += g * (x - mean[p]);
        }
    for (int d = 1; d < DEPTH; ++d)
        for (int p = 0; p < PARTS; ++p) {
            s1[0][p] += s1[d][p];
            s2[0][p] += s2[d][p];
        }
    float t1[SIMD_LANES], t2[SIMD_LANES];
    memcpy(t1, s1[0], sizeof t1);
    memcpy(t2, s2[0], sizeof t2);
    for (int l = 0; l < SIMD_LANES; ++l) {
        a->sum[lane + l] += t1[l];
        a->sum_x[lane + l] += t2[l];
    }
}

static void sums_few(const BnSums *a, int64_t rows, int64_t from, int lane)
{
    for (int l = lane; l < a->lanes; ++l) {
        float s1 = 0.0f, s2 = 0.0f;
        for (int64_t r = 0; r < rows; ++r) {
            int64_t at = from + r * a->stride + l - lane;
            float g = a->dy[at];
            if (a->act != ACT_NONE) {
                bool keep = a->y[at] > 0.0f && (a->act == ACT_RELU || a->y[at] < 6.0f);
                a->dy[at] = g = keep ? g : 0.0f;
            }
            s1 += g;
            s2 = fused(g, a->x[at] - a->mean[l], s2);
        }
        a->sum[l] += s1;
        a->sum_x[l] += s2;
    }
}

SIMD_INLINE void sums(const BnSums *a, Act act)
{
    for (int64_t r = 0; r < a->rows; r += CHUNK) {
        int64_t n = a->rows - r < CHUNK ? a->rows - r : CHUNK, from = r * a->stride;
        int l = 0;
        for (; l + SIMD_LANES <= a->lanes; l += SIMD_LANES) sums_16(a, act, n, from + l, l);
        if (l < a->lanes) sums_few(a, n, from + l, l);
    }
}

void SIMD_NAME(bn_sums)(const BnSums *a)
{
    if (a->act == ACT_RELU) sums(a, ACT_RELU);
    else if (a->act == ACT_RELU6) sums(a, ACT_RELU6);
    else sums(a, ACT_NONE);
}

static void grad_16(const BnGrad *a)
{
    Vf mean[PARTS], by_dy[PARTS], by_x[PARTS], shift[PARTS];
    for (int p = 0; p < PARTS; ++p) {
        VECTOR_LOAD(mean[p], a->mean + p * VECTOR);
        VECTOR_LOAD(by_dy[p], a->by_dy + p * VECTOR);
        VECTOR_LOAD(by_x[p], a->by_x + p * VECTOR);
        VECTOR_LOAD(shift[p], a->shift + p * VECTOR);
    }
    const float *x = a->x, *dy = a->dy;
    float *dx = a->dx;
    int64_t rows = a->rows;
    for (int64_t r = 0; r < rows; ++r)
        for (int p = 0; p < PARTS; ++p) {
            int64_t at = r * SIMD_LANES + p * VECTOR;
            Vf v, g;
            VECTOR_LOAD(v, x + at);
            VECTOR_LOAD(g, dy + at);
            v = (v - mean[p]) * by_x[p] + shift[p];
            v = g * by_dy[p] + v;
            VECTOR_STORE(dx + at, v);
        }
}

void SIMD_NAME(bn_grad)(const BnGrad *a)
{
    if (a->lanes == SIMD_LANES) {
        grad_16(a);
        return;
    }
    for (int64_t r = 0; r < a->rows; ++r) {
        const float *x = a->x + r * a->lanes, *dy = a->dy + r * a->lanes;
        float *dx = a->dx + r * a->lanes;
#pragma omp simd
        for (int l = 0; l < a->lanes; ++l)
            dx[l] = fused(dy[l], a->by_dy[l], fused(x[l] - a->mean[l], a->by_x[l], a->shift[l]));
    }
}
