/* Optimizer updates, copies and sums of squares on flat ranges. For an update, a range may be cut
 * anywhere: an element gets the same bits in a vector as in the scalar loop for the remaining
 * elements. A sum of squares is over one chunk. */
#include "vector.h"

typedef uint32_t Vw __attribute__((vector_size(VECTOR * 4)));

void SIMD_FLOAT_NAME(scale_add)(float *y, float alpha, const float *x, float beta, int64_t n)
{
    /* y may be uninitialised, so it is not read */
    if (beta == 0.0f) {
#pragma omp simd
        for (int64_t i = 0; i < n; ++i) y[i] = alpha * x[i];
        return;
    }
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) y[i] = fused(alpha, x[i], beta * y[i]);
}

/* Computes sixteen partial sums, one for each index modulo 16, on every instruction set, and adds
 * them in a fixed order. The square of a float is exact in double. */
double SIMD_FLOAT_NAME(squares)(const float *x, int64_t n)
{
    double lane[SIMD_LANES] = {0};
    int64_t i = 0;
    for (; i + SIMD_LANES <= n; i += SIMD_LANES)
#pragma omp simd
        for (int l = 0; l < SIMD_LANES; ++l) lane[l] += (double)x[i + l] * (double)x[i + l];
    for (int l = 0; i + l < n; ++l) lane[l] += (double)x[i + l] * (double)x[i + l];
    for (int width = SIMD_LANES / 2; width > 0; width /= 2)
        for (int l = 0; l < width; ++l) lane[l] += lane[l + width];
    return lane[0];
}

static inline uint64_t bits_of(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

/* Splits each square into multiples of three units (SquareSum). Adding 1.5 * 2^52 units to a square
 * rounds the square to a multiple of the unit. The bits of the result, read as an integer, are the
 * bits of 1.5 * 2^52 units plus the number of units in the square. So the loop adds up these
 * integers, and the end subtracts the bits of 1.5 * 2^52 units once for each term. If 1.5 * 2^52
 * units are subtracted from the result as doubles, the difference is exactly the part of the square
 * that this unit counts; the rest of the square is counted in the smaller units. */
SquareSum SIMD_FLOAT_NAME(exact_squares)(const float *x, int64_t n)
{
    uint32_t top = 0;
#pragma omp simd reduction(max : top)
    for (int64_t i = 0; i < n; ++i) {
        uint32_t bits;
        memcpy(&bits, x + i, sizeof bits);
        bits &= 0x7fffffffu;
        top = bits > top ? bits : top;
    }
    if (top >= 0x7f800000u)
        return (SquareSum){.scale = top > 0x7f800000u ? SQUARES_NAN : SQUARES_INFINITE};
    /* all squares are below 2^bound */
    const int bound = 2 * ((int)(top >> 23 ? top >> 23 : 1) - 126);
    const int scale = (bound + 32 * SQUARES_SCALE_0) / 32 - SQUARES_SCALE_0;
    const double much0 = ldexp(0x1.8p52, 32 * scale), much1 = ldexp(0x1.8p52, 32 * scale - 32);
    const double much2 = ldexp(0x1.8p52, 32 * scale - 64);
    uint64_t sum0 = 0, sum1 = 0, sum2 = 0;
#pragma omp simd reduction(+ : sum0, sum1, sum2)
    for (int64_t i = 0; i < n; ++i) {
        const double term = (double)x[i] * (double)x[i];
        const double more0 = term + much0, rest0 = term - (more0 - much0);
        const double more1 = rest0 + much1, rest1 = rest0 - (more1 - much1);
        sum0 += bits_of(more0);
        sum1 += bits_of(more1);
        sum2 += bits_of(rest1 + much2);
    }
    const uint64_t terms = (uint64_t)n;
    return (SquareSum){{(int64_t)(sum0 - terms * bits_of(much0)),
                        (int64_t)(sum1 - terms * bits_of(much1)),
                        (int64_t)(sum2 - terms * bits_of(much2))},
                       scale + SQUARES_SCALE_0};
}

/* Infinity and NaN have all bits of the exponent set, so adding 1 to the exponent carries into the
 * sign bit. */
bool SIMD_FLOAT_NAME(not_finite)(const float *x, int64_t n)
{
    uint32_t any = 0;
#pragma omp simd reduction(| : any)
    for (int64_t i = 0; i < n; ++i) {
        uint32_t bits;
        memcpy(&bits, x + i, sizeof bits);
        any |= (bits & 0x7f800000u) + 0x00800000u;
    }
    return any >> 31;
}

/* Stores a vector without reading its cache line first (a non-temporal store). `to` is aligned to a
 * vector. */
SIMD_INLINE void store_past(float *to, Vf v)
{
#if defined(__AVX512F__)
    _mm512_stream_ps(to, (__m512)v);
#elif defined(__AVX__)
    _mm256_stream_ps(to, (__m256)v);
#elif defined(__SSE2__)
    _mm_stream_ps(to, (__m128)v);
#else
    VECTOR_STORE(to, v);
#endif
}

/* The whole range is copied in one loop, so that one fence is enough for its stores. Prefetches a
 * page ahead, because the processor prefetches only up to the end of a page. */
bool SIMD_FLOAT_NAME(copy)(float *to, const float *x, int64_t n)
{
    enum { PAGE = 4096, AHEAD = PAGE / sizeof *x };
    int64_t head = -((intptr_t)to / (intptr_t)sizeof *to) & (VECTOR - 1);
    if (head > n) head = n;
    Vi any = {0};
    int64_t i = head;
    for (; i + VECTOR <= n; i += VECTOR) {
        Vf v;
        __builtin_prefetch(x + i + AHEAD);
        VECTOR_LOAD(v, x + i);
        any |= (Vi)(((Vw)v & 0x7f800000u) + 0x00800000u);
        store_past(to + i, v);
    }
#if defined(__SSE2__)
    _mm_sfence();
#endif
    memcpy(to, x, (size_t)head * sizeof *to);
    memcpy(to + i, x + i, (size_t)(n - i) * sizeof *to);
    bool ends = SIMD_FLOAT_NAME(not_finite)(x, head) || SIMD_FLOAT_NAME(not_finite)(x + i, n - i);
    return ends || mask_bits(any < 0) != 0;
}

SIMD_INLINE void sgd(SgdArgs a, const UpdatePiece *piece, bool first, bool nesterov)
{
    float *restrict w = piece->w, *restrict m = piece->m;
    const float *restrict g = piece->g;
    const float decay = piece->weight_decay;
    const int64_t n = piece->n;
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) {
        float d = fused(decay, w[i], g[i] * a.grad_scale);
        float v = first ? d : fused(a.momentum, m[i], d);
        m[i] = v;
        w[i] = fused(-a.lr, nesterov ? fused(a.momentum, v, d) : v, w[i]);
    }
}

/* If momentum is 0, m is not used and may be NULL. */
void SIMD_FLOAT_NAME(sgd)(const SgdArgs *a, const UpdatePiece *piece)
{
    if (a->momentum == 0.0f) {
        const SgdArgs s = *a;
        float *w = piece->w;
        const float *g = piece->g, decay = piece->weight_decay;
        const int64_t n = piece->n;
#pragma omp simd
        for (int64_t i = 0; i < n; ++i)
            w[i] = fused(-s.lr, fused(decay, w[i], g[i] * s.grad_scale), w[i]);
    } else if (a->m_is_empty && a->nesterov)
        sgd(*a, piece, true, true);
    else if (a->m_is_empty)
        sgd(*a, piece, true, false);
    else if (a->nesterov)
        sgd(*a, piece, false, true);
    else
        sgd(*a, piece, false, false);
}

/* Updates the moments of one element. */
SIMD_INLINE void moments(const AdamArgs *a, float g, float *m, float *v)
{
    *m = fused(g - *m, 1.0f - a->beta1, *m);
    *v = fused((1.0f - a->beta2) * g, g, a->beta2 * *v);
}

void SIMD_FLOAT_NAME(adam)(const AdamArgs *args, const UpdatePiece *piece)
{
    const AdamArgs a = *args;
    float *restrict w = piece->w, *restrict m = piece->m, *restrict v = piece->v;
    const float *restrict g = piece->g, weight_decay = piece->weight_decay;
    const int64_t n = piece->n;
    const float step = a.lr / a.correct1, root = 1.0f / sqrtf(a.correct2);
    const float shrink = a.decoupled ? 1.0f - a.lr * weight_decay : 1.0f;
    const float decay = a.decoupled ? 0.0f : weight_decay;
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) {
        moments(&a, fused(decay, w[i], g[i] * a.grad_scale), &m[i], &v[i]);
        float denominator = fused(sqrtf(v[i]), root, a.eps);
        w[i] = fused(-step, m[i] / denominator, w[i] * shrink);
    }
}

void SIMD_FLOAT_NAME(adam_direction)(const AdamArgs *args, float *restrict u,
                                     const UpdatePiece *piece)
{
    const AdamArgs a = *args;
    float *restrict m = piece->m, *restrict v = piece->v;
    const float *restrict w = piece->w, *restrict g = piece->g;
    const float decay = piece->weight_decay;
    const int64_t n = piece->n;
    const float by1 = 1.0f / a.correct1, root = 1.0f / sqrtf(a.correct2);
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) {
        moments(&a, g[i] * a.grad_scale, &m[i], &v[i]);
        float denominator = fused(sqrtf(v[i]), root, a.eps);
        u[i] = fused(decay, w[i], m[i] * by1 / denominator);
    }
}

void SIMD_FLOAT_NAME(average)(float *restrict to, float rate, const float *restrict w, int64_t n)
{
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) to[i] = fused(rate, w[i] - to[i], to[i]);
}
