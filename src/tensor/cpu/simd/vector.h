/* The shared code of the kernels: names of this instruction set's functions, vector types, the type
 * of activations, and exp. Only files of this folder include it. Vectors use the compilers' vector
 * extension, so that sums stay in registers; other loops are plain C under `omp simd`. fused()
 * gives vectors and scalar tails equal bits; compilers could fuse products and sums in one only. */
#ifndef WEFT_TENSOR_VECTOR_H
#define WEFT_TENSOR_VECTOR_H

#include "simd.h"

#include <math.h>
#include <string.h>
#if defined(__SSE2__)
#include <immintrin.h>
#endif

#ifdef __clang__
/* loops that cannot be vectorised are still correct */
#pragma clang diagnostic ignored "-Wpass-failed"
#endif

#define SIMD_PASTE_(name, isa) name##_##isa
#define SIMD_PASTE(name, isa)  SIMD_PASTE_(name, isa)
#define SIMD_FLOAT_NAME(name)  SIMD_PASTE(simd_##name, SIMD_ISA) /* compiled once for all types */
#ifdef SIMD_BF16
#define SIMD_NAME(name) SIMD_PASTE(simd_bf16_##name, SIMD_ISA)
typedef Bf16 Elem;
#else
#define SIMD_NAME(name) SIMD_FLOAT_NAME(name)
typedef float Elem;
#endif
enum { ELEM_IS_FLOAT = sizeof(Elem) == sizeof(float) };
#ifdef __SANITIZE_ADDRESS__ /* With checked loads, specialised copies take long to compile. */
#define SIMD_INLINE static inline
#else
#define SIMD_INLINE static inline __attribute__((always_inline))
#endif

#if defined(__AVX512F__)
enum { VECTOR = 16 };
#elif defined(__AVX__)
enum { VECTOR = 8 };
#else
enum { VECTOR = 4 };
#endif
/* number of vectors in SIMD_LANES elements */
enum { PARTS = SIMD_LANES / VECTOR };
typedef float Vf __attribute__((vector_size(VECTOR * 4)));
typedef int32_t Vi __attribute__((vector_size(VECTOR * 4)));
typedef uint8_t Vb __attribute__((vector_size(VECTOR)));

#define VECTOR_LOAD(v, p)  memcpy(&(v), (p), sizeof(v))
#define VECTOR_STORE(p, v) memcpy((p), &(v), sizeof(v))
#define VECTOR_KEEP(v, m)  ((Vf)((Vi)(v) & (m))) /* v where mask m is set, else 0 */

/* Conversions between elements and floats. elem_of and elems_store round as bf16_of does. */
#ifdef SIMD_BF16
typedef uint32_t Vu __attribute__((vector_size(VECTOR * 4)));
typedef uint16_t Vh __attribute__((vector_size(VECTOR * 2)));

SIMD_INLINE float value_of(Elem e)
{
    return bf16_value(e);
}

SIMD_INLINE Elem elem_of(float value)
{
    return bf16_of(value);
}

SIMD_INLINE Vf elems_load(const Elem *p)
{
    Vh half;
    VECTOR_LOAD(half, p);
    return (Vf)(__builtin_convertvector(half, Vu) << 16);
}

/* The processor's instruction for rounding treats denormals as zero, so vectors with denormals are
 * rounded in software. */
SIMD_INLINE void elems_store(Elem *p, Vf v)
{
#ifdef __AVX512BF16__
    enum { DENORMAL = 0x20 };
    if (__builtin_expect(_mm512_fpclass_ps_mask((__m512)v, DENORMAL) == 0, 1)) {
        const __m256bh half = _mm512_cvtneps_pbh((__m512)v);
        VECTOR_STORE(p, half);
        return;
    }
#endif
    Vu bits = (Vu)v, nan = (Vu)(v != v);
    Vu rounded = bits + 0x7fffu + (bits >> 16 & 1u), quiet = bits | 0x400000u;
    Vh half = __builtin_convertvector(((quiet & nan) | (rounded & ~nan)) >> 16, Vh);
    VECTOR_STORE(p, half);
}
#else
SIMD_INLINE float value_of(Elem e)
{
    return e;
}

SIMD_INLINE Elem elem_of(float value)
{
    return value;
}

SIMD_INLINE Vf elems_load(const Elem *p)
{
    Vf v;
    VECTOR_LOAD(v, p);
    return v;
}

SIMD_INLINE void elems_store(Elem *p, Vf v)
{
    VECTOR_STORE(p, v);
}
#endif

/* Lane numbers for VECTOR_LANES, which counts the lanes of vector a, then those of b. EVEN, ODD:
 * the even or odd lanes. FIRST, SECOND: the first or second half of a0, b0, a1, b1, ... NEXT: lane
 * 1 and the following lanes of a, then lane 0 of b. */
#if defined(__AVX512F__)
#define LANES_EVEN   0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30
#define LANES_ODD    1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31
#define LANES_FIRST  0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23
#define LANES_SECOND 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31
#define LANES_NEXT   1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16
#elif defined(__AVX__)
#define LANES_EVEN   0, 2, 4, 6, 8, 10, 12, 14
#define LANES_ODD    1, 3, 5, 7, 9, 11, 13, 15
#define LANES_FIRST  0, 8, 1, 9, 2, 10, 3, 11
#define LANES_SECOND 4, 12, 5, 13, 6, 14, 7, 15
#define LANES_NEXT   1, 2, 3, 4, 5, 6, 7, 8
#else
#define LANES_EVEN   0, 2, 4, 6
#define LANES_ODD    1, 3, 5, 7
#define LANES_FIRST  0, 4, 1, 5
#define LANES_SECOND 2, 6, 3, 7
#define LANES_NEXT   1, 2, 3, 4
#endif
/* Selects lanes of two vectors by number. Places: type of a vector of integers with as many lanes.
 * gcc has clang's built-in function only since version 12. */
#ifdef __clang__
#define VECTOR_SHUFFLE(Places, a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else
#define VECTOR_SHUFFLE(Places, a, b, ...) __builtin_shuffle(a, b, (Places){__VA_ARGS__})
#endif
#define VECTOR_LANES(a, b, ...) VECTOR_SHUFFLE(Vi, a, b, __VA_ARGS__)
#define VECTOR_FIRST(a, b)      VECTOR_LANES(a, b, LANES_FIRST)
#define VECTOR_SECOND(a, b)     VECTOR_LANES(a, b, LANES_SECOND)

/* Returns the even or the odd lanes of two vectors. gcc's own code for AVX2 is slower. */
SIMD_INLINE Vf alternate(Vf a, Vf b, bool odd)
{
#if defined(__AVX2__) && !defined(__AVX512F__)
    const __m256 halves = odd ? _mm256_shuffle_ps((__m256)a, (__m256)b, 0xdd)
                              : _mm256_shuffle_ps((__m256)a, (__m256)b, 0x88);
    return (Vf)_mm256_permute4x64_pd((__m256d)halves, 0xd8);
#else
    return odd ? VECTOR_LANES(a, b, LANES_ODD) : VECTOR_LANES(a, b, LANES_EVEN);
#endif
}

/* Loads p[0], p[2], p[4], ..., VECTOR elements. Also reads the elements between them, and the one
 * before p if `before` is true, else the one after the last. */
SIMD_INLINE Vf elems_load_even(const Elem *p, bool before)
{
    if (before) return alternate(elems_load(p - 1), elems_load(p + VECTOR - 1), true);
    return alternate(elems_load(p), elems_load(p + VECTOR), false);
}

/* Returns the larger element in each lane, `first` if both are equal. Neither may be NaN. */
SIMD_INLINE Vf larger_of(Vf first, Vf second)
{
#if defined(__AVX512F__)
    return (Vf)_mm512_max_ps((__m512)second, (__m512)first);
#elif defined(__AVX__)
    return (Vf)_mm256_max_ps((__m256)second, (__m256)first);
#elif defined(__SSE2__)
    return (Vf)_mm_max_ps((__m128)second, (__m128)first);
#else
    Vi more = second > first;
    return (Vf)(((Vi)second & more) | ((Vi)first & ~more));
#endif
}

/* Returns `yes` in lanes where a equals b, and `no` in the others. */
SIMD_INLINE Vi where_equal(Vf a, Vf b, Vi yes, Vi no)
{
#if defined(__AVX512F__)
    __mmask16 equal = _mm512_cmp_ps_mask((__m512)a, (__m512)b, _CMP_EQ_OQ);
    return (Vi)_mm512_mask_blend_epi32(equal, (__m512i)no, (__m512i)yes);
#elif defined(__AVX__)
    __m256 equal = _mm256_cmp_ps((__m256)a, (__m256)b, _CMP_EQ_OQ);
    return (Vi)_mm256_blendv_ps((__m256)no, (__m256)yes, equal);
#else
    Vi equal = a == b;
    return (yes & equal) | (no & ~equal);
#endif
}

/* Returns v in lanes where `at` equals `number`, and 0 in the others. */
SIMD_INLINE Vf keep_at(Vf v, Vi at, int number)
{
#if defined(__AVX512F__)
    __mmask16 here = _mm512_cmpeq_epi32_mask((__m512i)at, _mm512_set1_epi32(number));
    return (Vf)_mm512_maskz_mov_ps(here, (__m512)v);
#else
    return VECTOR_KEEP(v, at == number);
#endif
}

/* Stores numbers of 0 to 255 as bytes. */
SIMD_INLINE void bytes_store(uint8_t *to, Vi v)
{
#if defined(__AVX__) && !defined(__AVX512F__)
    __m256i all = (__m256i)v;
    __m128i low = _mm256_castsi256_si128(all), high = _mm256_extractf128_si256(all, 1);
    __m128i words = _mm_packus_epi32(low, high);
    _mm_storel_epi64((__m128i *)(void *)to, _mm_packus_epi16(words, words));
#else
    Vb bytes = __builtin_convertvector(v, Vb);
    VECTOR_STORE(to, bytes);
#endif
}

/* Loads bytes as numbers of 0 to 255. gcc 12 itself would load them one by one. */
SIMD_INLINE Vi bytes_load(const uint8_t *from)
{
#if defined(__AVX512F__)
    return (Vi)_mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)(const void *)from));
#elif defined(__AVX2__)
    return (Vi)_mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)(const void *)from));
#else
    Vb bytes;
    VECTOR_LOAD(bytes, from);
    return __builtin_convertvector(bytes, Vi);
#endif
}

/* Rounds n floats to elements. */
SIMD_INLINE void elems_from(Elem *to, const float *from, int64_t n)
{
    int64_t i = 0;
    for (; i + VECTOR <= n; i += VECTOR) {
        Vf v;
        VECTOR_LOAD(v, from + i);
        elems_store(to + i, v);
    }
    for (; i < n; ++i) to[i] = elem_of(from[i]);
}

/* The loop `out[i] = expression` for i < n. For bf16 the results, which are floats, go through a
 * small buffer, so that the compiler vectorises the expression and elems_store rounds. */
enum { EACH_PART = 64 };
#define EACH(out, expression)                                                                      \
    if (ELEM_IS_FLOAT) {                                                                           \
        _Pragma("omp simd") for (int64_t i = 0; i < n; ++i)                                        \
        {                                                                                          \
            out[i] = elem_of(expression);                                                          \
        }                                                                                          \
    } else {                                                                                       \
        for (int64_t part = 0; part < n; part += EACH_PART) {                                      \
            const int64_t end = n - part < EACH_PART ? n : part + EACH_PART;                       \
            float room[EACH_PART];                                                                 \
            _Pragma("omp simd") for (int64_t i = part; i < end; ++i)                               \
            {                                                                                      \
                room[i - part] = expression;                                                       \
            }                                                                                      \
            elems_from((out) + part, room, end - part);                                            \
        }                                                                                          \
    }

/* Returns n elements as floats: x itself if they are floats, else their values in `room`. */
SIMD_INLINE const float *floats_of(const Elem *x, int64_t n, float *room)
{
    if (ELEM_IS_FLOAT) return (const float *)(const void *)x;
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) room[i] = value_of(x[i]);
    return room;
}

/* Convert a mask, whose lanes are all ones or 0, to one bit per lane, and back. */
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

/* Returns a * b + c, rounded once if there is FMA. */
SIMD_INLINE float fused(float a, float b, float c)
{
#ifdef __FMA__
    return __builtin_fmaf(a, b, c);
#else
    return a * b + c;
#endif
}

SIMD_INLINE Vf vector_fused(Vf a, Vf b, Vf c)
{
#if defined(__AVX512F__)
    return (Vf)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c);
#elif defined(__FMA__)
    return (Vf)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c);
#else
    return a * b + c;
#endif
}

/* Writes e^x as 2^n e^r, with x clamped to [-87.33, 88.37]: returns e^r - 1 and sets *scale to 2^n.
 * Uses Cody and Waite's reduction and the polynomial of Cephes (Moshier 1989). */
SIMD_INLINE float exp_parts(float x, float *scale)
{
    float c = x > 88.37f ? 88.37f : x;
    c = c < -87.33f ? -87.33f : c;
    const float magic = 12582912.0f; /* 1.5 * 2^23; adding it rounds to an integer */
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
    int32_t power = (int32_t)((uint32_t)(bits + 127) << 23);
    memcpy(scale, &power, 4);
    return fused(p * r, r, r);
}

/* Returns e^x, to about 1 ulp for x in [-87.3, 88.3]. Larger x are clamped, smaller x give 0, and
 * NaN stays NaN. */
SIMD_INLINE float exp_fast(float x)
{
    float scale, p = exp_parts(x, &scale) + 1.0f;
    return x < -87.33f ? 0.0f : p * scale;
}

/* Returns e^x with the precision of an element: exp_fast in fp32. In bf16 the relative error is at
 * most 2^-18, the result is 0 below -87, and NaN stays NaN. Computes 2^n times a minimax polynomial
 * of the fraction of x / ln 2. */
SIMD_INLINE float exp_near(float x)
{
    if (ELEM_IS_FLOAT) return exp_fast(x);
    const float magic = 12582912.0f, by = 1.44269504088896341f;
    float c = x > 88.37f ? 88.37f : x;
    c = c < -87.33f ? -87.33f : c;
    const float t = fused(c, by, magic), n = t - magic;
    const float r = fused(c, by, -n);
    float p = fused(9.570102207e-3f, r, 5.591785908e-2f);
    p = fused(p, r, 2.4024744332e-1f);
    p = fused(p, r, 6.9312179089e-1f);
    p = fused(p, r, 9.9999928474e-1f);
    uint32_t bits, power;
    memcpy(&bits, &p, 4);
    memcpy(&power, &t, 4);
    bits += power << 23;
    memcpy(&p, &bits, 4);
    /* compares n, not x: a compiler would merge a test of x with the clamp */
    return n < -125.5f ? 0.0f : p;
}

SIMD_INLINE float sigmoid_of(float x)
{
    return 1.0f / (1.0f + exp_near(-x));
}

SIMD_INLINE float silu_of(float x)
{
    return x * sigmoid_of(x);
}

SIMD_INLINE float silu_slope(float x)
{
    float s = sigmoid_of(x);
    return s * fused(x, 1.0f - s, 1.0f);
}

SIMD_INLINE float relu_of(float x) /* NaN stays NaN */
{
    return x < 0.0f ? 0.0f : x;
}

SIMD_INLINE float clip_of(Act act, float x)
{
    if (act == ACT_RELU) return relu_of(x);
    if (act == ACT_RELU6) return relu_of(x > 6.0f ? 6.0f : x);
    return x;
}

#define SIMD_DECLARE(type, name, args) type SIMD_NAME(name) args
#define SIMD_DECLARE_FLOAT(type, name, args)                                                       \
    type SIMD_FLOAT_NAME(name)                                                                     \
    args
SIMD_DECLARE(void, batch_norm_stats, (const void *, int64_t, int, double *, double *));
SIMD_DECLARE(void, batch_norm_apply, (const BatchNormApply *));
SIMD_DECLARE(void, batch_norm_sums, (const BatchNormSums *));
SIMD_DECLARE(void, batch_norm_grad, (const BatchNormGrad *));
SIMD_DECLARE(void, layer_norm_forward, (LayerNormRow *));
SIMD_DECLARE(void, layer_norm_grad, (const LayerNormRow *));
SIMD_DECLARE(void, layer_norm_sums, (const LayerNormRow *, float *, float *));
SIMD_DECLARE(void, rms_norm_forward, (LayerNormRow *));
SIMD_DECLARE(void, rms_norm_grad, (const LayerNormRow *));
SIMD_DECLARE(void, rms_norm_sums, (const LayerNormRow *, float *, float *));
SIMD_DECLARE(void, swiglu, (void *, const void *, int64_t));
SIMD_DECLARE(void, swiglu_grad, (void *, const void *, const void *, int64_t));
SIMD_DECLARE(void, act, (Act, float, void *, const void *, int64_t));
SIMD_DECLARE(void, act_grad, (Act, float, void *, const void *, const void *, int64_t));
SIMD_DECLARE(void, add_act, (Act, void *, const void *, const void *, int64_t));
SIMD_DECLARE(void, mul, (void *, const void *, const float *, int64_t));
SIMD_DECLARE(void, add_floats, (void *, const void *, const float *, int64_t));
SIMD_DECLARE(void, add_into, (float *, const void *, int64_t));
SIMD_DECLARE(void, from_floats, (void *, const float *, int64_t));
SIMD_DECLARE(void, to_floats, (float *, const void *, int64_t));
SIMD_DECLARE(void, max_pool, (const PoolPlane *, const void *, void *, uint8_t *));
SIMD_DECLARE(void, max_pool_grad, (const PoolPlane *, const void *, const uint8_t *, void *));
SIMD_DECLARE(void, avg_pool, (const PoolPlane *, const void *, void *));
SIMD_DECLARE(void, avg_pool_grad, (const PoolPlane *, const void *, void *));
SIMD_DECLARE(void, mean_rows, (const void *, int64_t, int, void *));
SIMD_DECLARE(void, spread_rows, (void *, const void *, int64_t, int));
SIMD_DECLARE(void, resample_row, (const ResamplePlane *, int, const void *, void *));
SIMD_DECLARE(SoftmaxRow, softmax, (const void *, int64_t, int));
SIMD_DECLARE(int, softmax_label_rank, (const void *, int64_t, int, float));
SIMD_DECLARE(void, softmax_grad, (const SoftmaxGrad *));
SIMD_DECLARE(void, attention_forward, (const AttentionHead *, int64_t, float *));
SIMD_DECLARE(void, attention_grad, (const AttentionHead *, float *));
SIMD_DECLARE(void, attention_grad_queries, (const AttentionHead *, int64_t, float *));
SIMD_DECLARE(void, attention_grad_keys, (const AttentionHead *, int64_t, float *));
SIMD_DECLARE(void, pixel_softmax, (const PixelArgs *, PixelStats *));
SIMD_DECLARE(void, pixel_grad, (const PixelArgs *, const PixelGrad *, void *));
SIMD_DECLARE(void, region_sums, (const PixelArgs *, const float *, RegionSums *));
SIMD_DECLARE(void, region_grad, (const PixelArgs *, const RegionGrad *, void *));
SIMD_DECLARE(PointSum, point_loss, (const PointArgs *));
SIMD_DECLARE(void, point_grad, (const PointArgs *, float, void *));
SIMD_DECLARE_FLOAT(void, dropout, (RngKey, uint64_t, int, uint32_t, float, float *, int));
SIMD_DECLARE_FLOAT(void, scale_add, (float *, float, const float *, float, int64_t));
SIMD_DECLARE_FLOAT(double, squares, (const float *, int64_t));
SIMD_DECLARE_FLOAT(SquareSum, exact_squares, (const float *, int64_t));
SIMD_DECLARE_FLOAT(bool, not_finite, (const float *, int64_t));
SIMD_DECLARE_FLOAT(bool, copy, (float *, const float *, int64_t));
SIMD_DECLARE_FLOAT(void, sgd, (const SgdArgs *, const UpdatePiece *));
SIMD_DECLARE_FLOAT(void, adam, (const AdamArgs *, const UpdatePiece *));
SIMD_DECLARE_FLOAT(void, adam_direction, (const AdamArgs *, float *, const UpdatePiece *));
SIMD_DECLARE_FLOAT(void, average, (float *, float, const float *, int64_t));
SIMD_DECLARE_FLOAT(void, matrix_tile, (const MatrixProduct *, const MatrixTile *));
SIMD_DECLARE_FLOAT(void, winograd_input,
                   (const WinogradImage *, int64_t, int64_t, int64_t, const float *, float *,
                    int64_t));
SIMD_DECLARE_FLOAT(void, winograd_gradient,
                   (const WinogradImage *, int64_t, int64_t, int64_t, const float *, float *,
                    int64_t));
SIMD_DECLARE_FLOAT(void, winograd_output,
                   (const WinogradImage *, int64_t, int64_t, int64_t, const float *, int64_t,
                    float *, const float *, bool));
SIMD_DECLARE_FLOAT(void, winograd_kernel, (const float *, bool, float *, int64_t, int64_t));
SIMD_DECLARE_FLOAT(void, winograd_taps, (const float *, int64_t, int64_t, float *, bool));
SIMD_DECLARE_FLOAT(void, winograd_forward, (const WinogradProduct *));
SIMD_DECLARE_FLOAT(void, winograd_weight, (const WinogradProduct *));
SIMD_DECLARE_FLOAT(void, conv_weight, (const ConvWeight *));
SIMD_DECLARE_FLOAT(void, first_forward,
                   (const FirstConv *, const float *, const float *, bool, float *));
SIMD_DECLARE_FLOAT(void, first_weight, (const FirstConv *, const float *, float *, float *));
SIMD_DECLARE_FLOAT(void, depthwise_forward,
                   (const DepthwisePlane *, const float *, const float *, const float *, bool,
                    float *));
SIMD_DECLARE_FLOAT(void, depthwise_data,
                   (const DepthwisePlane *, const float *, const float *, float *));
SIMD_DECLARE_FLOAT(void, depthwise_weight,
                   (const DepthwisePlane *, const float *, const float *, float *, float *));
SIMD_DECLARE_FLOAT(void, dense_product, (const DenseProduct *, const DensePart *, float *));
SIMD_DECLARE_FLOAT(void, dense_few, (const DenseProduct *, const DensePart *));
SIMD_DECLARE_FLOAT(void, dense_columns,
                   (const float *, int64_t, int64_t, int64_t, int64_t, float *));

#endif
