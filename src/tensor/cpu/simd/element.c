/* Element by element: activations and their gradients, sums, products, and the multipliers of dropout. Zero stays zero
 * under every activation, so padded channels need no care. */
#include "vector.h"

/* gelu's tanh form is x * sigmoid(2 u), u = sqrt(2/pi) (x + 0.044715 x^3) (Hendrycks & Gimpel 2016). */
static const float GELU_U = 1.5957691216057308f; /* 2 sqrt(2/pi) */
static const float GELU_CUBE = 0.044715f;

SIMD_INLINE float sigmoid_of(float x)
{
    return 1.0f / (1.0f + exp_fast(-x));
}

SIMD_INLINE float gelu_of(float x)
{
    return x * sigmoid_of(GELU_U * fused(GELU_CUBE * x, x * x, x));
}

SIMD_INLINE float gelu_slope(float x)
{
    float s = sigmoid_of(GELU_U * fused(GELU_CUBE * x, x * x, x));
    float slope = GELU_U * fused(3.0f * GELU_CUBE * x, x, 1.0f);
    return fused(x * s * (1.0f - s), slope, s);
}

SIMD_INLINE float silu_slope(float x)
{
    float s = sigmoid_of(x);
    return s * fused(x, 1.0f - s, 1.0f);
}

/* The loop `out[i] = expression`, once for each activation, which is a constant inside. */
#define EACH(expression)                                                                           \
    _Pragma("omp simd") for (int64_t i = 0; i < n; ++i)                                            \
    {                                                                                              \
        expression;                                                                                \
    }

void SIMD_NAME(act)(Act act, float *y, const float *x, int64_t n)
{
    switch (act) {
    case ACT_RELU:
        EACH(y[i] = relu_of(x[i])) break;
    case ACT_RELU6:
        EACH(y[i] = clip_of(ACT_RELU6, x[i])) break;
    case ACT_GELU:
        EACH(y[i] = gelu_of(x[i])) break;
    case ACT_SILU:
        EACH(y[i] = x[i] * sigmoid_of(x[i])) break;
    case ACT_NONE:
        memmove(y, x, (size_t)n * sizeof *y);
        break;
    }
}

void SIMD_NAME(act_grad)(Act act, float *dx, const float *dy, const float *v, int64_t n)
{
    switch (act) {
    case ACT_RELU:
        EACH(dx[i] = v[i] > 0.0f ? dy[i] : 0.0f) break;
    case ACT_RELU6:
        EACH(dx[i] = v[i] > 0.0f && v[i] < 6.0f ? dy[i] : 0.0f) break;
    case ACT_GELU:
        EACH(dx[i] = dy[i] * gelu_slope(v[i])) break;
    case ACT_SILU:
        EACH(dx[i] = dy[i] * silu_slope(v[i])) break;
    case ACT_NONE:
        memmove(dx, dy, (size_t)n * sizeof *dx);
        break;
    }
}

void SIMD_NAME(add_act)(Act act, float *y, const float *a, const float *b, int64_t n)
{
    switch (act) {
    case ACT_RELU:
        EACH(y[i] = relu_of(a[i] + b[i])) break;
    case ACT_RELU6:
        EACH(y[i] = clip_of(ACT_RELU6, a[i] + b[i])) break;
    case ACT_GELU:
        EACH(y[i] = gelu_of(a[i] + b[i])) break;
    case ACT_SILU:
        EACH(float v = a[i] + b[i]; y[i] = v * sigmoid_of(v)) break;
    case ACT_NONE:
        EACH(y[i] = a[i] + b[i]) break;
    }
}

void SIMD_NAME(mul)(float *y, const float *a, const float *b, int64_t n)
{
    EACH(y[i] = a[i] * b[i])
}

/* Philox4x32-10 on many counters at once; the same numbers as rng_u32 (tests compare them). */
enum { BLOCKS = 32, BATCH = 16 }; /* blocks are a multiple of BATCH */
static void philox(RngKey key, uint64_t counter, int blocks, uint32_t out[4][BLOCKS])
{
    for (int b = 0; b < blocks; b += BATCH) {
        uint32_t c0[BATCH], c1[BATCH], c2[BATCH] = {0}, c3[BATCH] = {0};
        uint32_t k0 = key.k[0], k1 = key.k[1];
        for (int i = 0; i < BATCH; ++i) {
            c0[i] = (uint32_t)(counter + (uint64_t)(b + i));
            c1[i] = (uint32_t)((counter + (uint64_t)(b + i)) >> 32);
        }
        for (int round = 0; round < 10; ++round) {
#pragma omp simd
            for (int i = 0; i < BATCH; ++i) {
                uint64_t p0 = (uint64_t)0xD2511F53u * c0[i], p1 = (uint64_t)0xCD9E8D57u * c2[i];
                c0[i] = (uint32_t)(p1 >> 32) ^ c1[i] ^ k0;
                c2[i] = (uint32_t)(p0 >> 32) ^ c3[i] ^ k1;
                c1[i] = (uint32_t)p1;
                c3[i] = (uint32_t)p0;
            }
            k0 += 0x9E3779B9u;
            k1 += 0xBB67AE85u;
        }
        memcpy(out[0] + b, c0, sizeof c0);
        memcpy(out[1] + b, c1, sizeof c1);
        memcpy(out[2] + b, c2, sizeof c2);
        memcpy(out[3] + b, c3, sizeof c3);
    }
}

void SIMD_NAME(dropout)(RngKey key, uint64_t first, int count, uint32_t cut, float scale,
                        float *out, int stride)
{
    uint32_t words[4][BLOCKS];
    float drawn[4 * BLOCKS];
    int skip = (int)(first % 4);
    for (int done = 0; done < count;) {
        int left = count - done + skip, n = left < 4 * BLOCKS ? left : 4 * BLOCKS;
        int blocks = (n + 4 * BATCH - 1) / (4 * BATCH) * BATCH;
        philox(key, (first + (uint64_t)done) / 4, blocks, words);
#pragma omp simd
        for (int i = 0; i < blocks; ++i)
            for (int w = 0; w < 4; ++w) drawn[4 * i + w] = (words[w][i] >> 8) >= cut ? scale : 0.0f;
        for (int i = skip; i < n; ++i) out[(int64_t)(done + i - skip) * stride] = drawn[i];
        done += n - skip;
        skip = 0;
    }
}
