/* What the kernels share: the name of this instruction set's functions, its vectors, and exp. Included by the files of
 * this folder only. Vectors are the compilers' own extension, so that sums stay in registers; the rest is plain loops
 * under `omp simd`. Products and sums that could be contracted in two ways are written with fused(), so that a vector
 * and the tail behind it give the same bits. */
#ifndef WEFT_TENSOR_VECTOR_H
#define WEFT_TENSOR_VECTOR_H

#include "simd.h"

#include <math.h>
#include <string.h>
#if defined(__SSE2__)
#include <immintrin.h>
#endif

#ifdef __clang__
#pragma clang diagnostic ignored "-Wpass-failed" /* a loop too odd to vectorise is still right */
#endif

#define SIMD_PASTE_(name, isa) name##_##isa
#define SIMD_PASTE(name, isa)  SIMD_PASTE_(name, isa)
#define SIMD_NAME(name)        SIMD_PASTE(simd_##name, SIMD_ISA)
#define SIMD_INLINE            static inline __attribute__((always_inline))

#if defined(__AVX512F__)
enum { VECTOR = 16 };
#elif defined(__AVX__)
enum { VECTOR = 8 };
#else
enum { VECTOR = 4 };
#endif
enum { PARTS = SIMD_LANES / VECTOR }; /* registers that hold 16 lanes */
typedef float Vf __attribute__((vector_size(VECTOR * 4)));
typedef int32_t Vi __attribute__((vector_size(VECTOR * 4)));
typedef uint8_t Vb __attribute__((vector_size(VECTOR)));

#define VECTOR_LOAD(v, p)  memcpy(&(v), (p), sizeof(v))
#define VECTOR_STORE(p, v) memcpy((p), &(v), sizeof(v))
#define VECTOR_KEEP(v, m)  ((Vf)((Vi)(v) & (m))) /* 0 where the mask is not set */

/* One bit a lane of a mask, and back. */
SIMD_INLINE uint32_t mask_bits(Vi mask)
{
#if defined(__AVX512DQ__)
    return _mm512_movepi32_mask((__m512i)mask);
#elif defined(__AVX__)
    return (uint32_t)_mm256_movemask_ps((__m256)mask);
#elif defined(__SSE2__)
    return (uint32_t)_mm_movemask_ps((__m128)mask);
#else
    uint32_t bits = 0;
    for (int l = 0; l < VECTOR; ++l) bits |= (uint32_t)(mask[l] & 1) << l;
    return bits;
#endif
}

SIMD_INLINE Vi bits_mask(uint32_t bits)
{
#if defined(__AVX512DQ__)
    return (Vi)_mm512_movm_epi32((__mmask16)bits);
#else
    Vi lane, zero = {0};
    for (int l = 0; l < VECTOR; ++l) lane[l] = 1 << l;
    return ((zero + (int32_t)bits) & lane) != zero;
#endif
}

SIMD_INLINE float fused(float a, float b, float c)
{
#ifdef __FMA__
    return __builtin_fmaf(a, b, c);
#else
    return a * b + c;
#endif
}

/* e^x to about 1 ulp for x in [-87.3, 88.3], clamped there (0 below); NaN stays NaN. Cody and Waite's reduction, the
 * polynomial of Cephes (Moshier 1989). */
SIMD_INLINE float exp_fast(float x)
{
    float c = x > 88.37f ? 88.37f : x;
    c = c < -87.33f ? -87.33f : c;
    const float magic =
        12582912.0f; /* 1.5 * 2^23: adding it rounds to an integer in the low bits */
    float t = fused(c, 1.44269504088896341f, magic);
    int32_t bits;
    memcpy(&bits, &t, 4);
    float n = t - magic;
    float r = fused(n, -0.693359375f, c);
    r = fused(n, 2.12194440e-4f, r);
    float p = fused(1.9875691500e-4f, r, 1.3981999507e-3f);
    p = fused(p, r, 8.3334519073e-3f);
    p = fused(p, r, 4.1665795894e-2f);
    p = fused(p, r, 1.6666665459e-1f);
    p = fused(p, r, 5.0000001201e-1f);
    p = fused(p * r, r, r) + 1.0f;
    int32_t power = (int32_t)((uint32_t)(bits + 127) << 23);
    float scale;
    memcpy(&scale, &power, 4);
    return x < -87.33f ? 0.0f : p * scale;
}

SIMD_INLINE float relu_of(float x)
{
    return x < 0.0f ? 0.0f : x;
} /* NaN stays */

SIMD_INLINE float clip_of(Act act, float x)
{
    if (act == ACT_RELU) return relu_of(x);
    if (act == ACT_RELU6) return relu_of(x > 6.0f ? 6.0f : x);
    return x;
}

#define SIMD_DECLARE(type, name, args)                                                             \
    type SIMD_NAME(name)                                                                           \
    args
SIMD_DECLARE(void, bn_stats, (const float *, int64_t, int, double *, double *));
SIMD_DECLARE(void, bn_apply, (const BnApply *));
SIMD_DECLARE(void, bn_sums, (const BnSums *));
SIMD_DECLARE(void, bn_grad, (const BnGrad *));
SIMD_DECLARE(void, ln_forward, (LnRow *));
SIMD_DECLARE(void, ln_grad, (const LnRow *));
SIMD_DECLARE(void, ln_sums, (const LnRow *, float *, float *));
SIMD_DECLARE(void, act, (Act, float *, const float *, int64_t));
SIMD_DECLARE(void, act_grad, (Act, float *, const float *, const float *, int64_t));
SIMD_DECLARE(void, add_act, (Act, float *, const float *, const float *, int64_t));
SIMD_DECLARE(void, mul, (float *, const float *, const float *, int64_t));
SIMD_DECLARE(void, dropout, (RngKey, uint64_t, int, uint32_t, float, float *, int));
SIMD_DECLARE(void, max_pool, (const PoolPlane *, const float *, float *, uint8_t *));
SIMD_DECLARE(void, max_pool_grad, (const PoolPlane *, const float *, const uint8_t *, float *));
SIMD_DECLARE(void, avg_pool, (const PoolPlane *, const float *, float *));
SIMD_DECLARE(void, avg_pool_grad, (const PoolPlane *, const float *, float *));
SIMD_DECLARE(void, mean_rows, (const float *, int64_t, int64_t, int, float *));
SIMD_DECLARE(SoftmaxRow, softmax, (const float *, int64_t, int));
SIMD_DECLARE(void, softmax_grad, (float *, const float *, int64_t, float, float, float));
SIMD_DECLARE(void, attention_forward, (const AttentionHead *, int64_t, float *));
SIMD_DECLARE(void, attention_grad, (const AttentionHead *, float *));
SIMD_DECLARE(void, attention_grad_queries, (const AttentionHead *, int64_t, float *));
SIMD_DECLARE(void, attention_grad_keys, (const AttentionHead *, int64_t, float *));
SIMD_DECLARE(double, squared_error, (const float *, const float *, int64_t));
SIMD_DECLARE(void, scaled_difference, (float *, const float *, const float *, float, int64_t));
SIMD_DECLARE(void, scale_add, (float *, float, const float *, float, int64_t));
SIMD_DECLARE(double, squares, (const float *, int64_t));
SIMD_DECLARE(void, sgd, (const SgdArgs *, float *, const float *, float *, int64_t));
SIMD_DECLARE(void, adam, (const AdamArgs *, float *, const float *, float *, float *, int64_t));
SIMD_DECLARE(void, adam_direction,
             (const AdamArgs *, float *, const float *, const float *, float *, float *, int64_t));

#endif
