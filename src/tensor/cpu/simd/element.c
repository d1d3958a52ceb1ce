/* Elementwise kernels: activations and their gradients, sums, products and conversions. If an
 * activation does not map 0 to 0 (ACT_MOVES_ZERO), the caller clears padded channels afterwards. */
#include "vector.h"

/* The tanh form of gelu is x * sigmoid(2 u) with u = sqrt(2/pi) (x + 0.044715 x^3) (Hendrycks &
 * Gimpel 2016). GELU_U is 2 sqrt(2/pi). */
static const float GELU_U = 1.5957691216057308f;
static const float GELU_CUBE = 0.044715f;

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

/* Returns tanh(x) with a relative error of about 2^-22; NaN stays NaN. Computes x times a quotient
 * of polynomials in x^2, fitted to |x| <= 9.02, with coefficients that lose little when rounded.
 * Beyond 9.02, tanh is 1 in fp32. */
SIMD_INLINE float tanh_of(float x)
{
    float c = x > 9.02f ? 9.02f : x;
    c = c < -9.02f ? -9.02f : c;
    const float z = c * c;
    float p = fused(2.3650017e-8f, z, 3.646636e-5f);
    p = fused(p, z, 6.1807428e-3f);
    p = fused(p, z, 0.23650397f);
    p = fused(p, z, 1.7672459f);
    float q = fused(1.376598e-6f, z, 5.8114075e-4f);
    q = fused(q, z, 4.5743566e-2f);
    q = fused(q, z, 0.8255857f);
    q = fused(q, z, 1.7672459f);
    const float y = c * p / q;
    return y > 1.0f ? 1.0f : y < -1.0f ? -1.0f : y;
}

/* Returns e^x - 1, which is accurate near 0, too. */
SIMD_INLINE float exp_less_1(float x)
{
    float scale, part = exp_parts(x, &scale);
    return fused(scale, part, scale - 1.0f);
}

/* Returns log(1 + e^x) (Dugas et al. 2001) as max(x, 0) + log(1 + t), t = e^-|x|. The logarithm is
 * 2 artanh(s), s = t / (2 + t), computed with a polynomial in s^2 fitted to s <= 1/3. */
SIMD_INLINE float softplus_of(float x)
{
    const float t = exp_near(x > 0.0f ? -x : x), s = t / (2.0f + t), z = s * s;
    float p = fused(0.14005997f, z, 0.14000902f);
    p = fused(p, z, 0.20010764f);
    p = fused(p, z, 0.33333208f);
    return relu_of(x) + 2.0f * fused(p * z, s, s);
}

/* Returns mish (Misra 2019): x tanh(softplus(x)) = x w / (w + 2) with w = e (e + 2), e = e^x. From
 * x = 20 on the quotient is 1 in fp32, and e^20, whose square is finite, is used as e. */
SIMD_INLINE float mish_of(float x)
{
    const float e = exp_near(x > 20.0f ? 20.0f : x), w = e * (e + 2.0f);
    return x * (w / (w + 2.0f));
}

SIMD_INLINE float mish_slope(float x)
{
    const float c = x > 20.0f ? 20.0f : x, e = exp_near(c), w = e * (e + 2.0f);
    const float by = 1.0f / (w + 2.0f);
    return fused(4.0f * c * by, fused(e, e, e) * by, w * by);
}

/* Returns hardswish (Howard et al. 2019): x relu6(x + 3) / 6. */
SIMD_INLINE float hardswish_of(float x)
{
    const float inner = x + 3.0f, y = x * ((inner > 6.0f ? 6.0f : inner) * (1.0f / 6.0f));
    return x <= -3.0f ? 0.0f : y;
}

SIMD_INLINE float hardswish_slope(float x)
{
    const float inner = fused(x, 1.0f / 3.0f, 0.5f);
    return x >= 3.0f ? 1.0f : x <= -3.0f ? 0.0f : inner;
}

SIMD_INLINE float act_value(Act act, float factor, float x)
{
    switch (act) {
    case ACT_NONE:
        return x;
    case ACT_RELU:
    case ACT_RELU6:
        return clip_of(act, x);
    case ACT_GELU:
        return gelu_of(x);
    case ACT_SILU:
        return silu_of(x);
    case ACT_TANH:
        return tanh_of(x);
    case ACT_SIGMOID:
        return sigmoid_of(x);
    case ACT_ELU:
        return x > 0.0f ? x : factor * exp_less_1(x);
    case ACT_LEAKY_RELU:
        return x > 0.0f ? x : factor * x;
    case ACT_SOFTPLUS:
        return softplus_of(x);
    case ACT_MISH:
        return mish_of(x);
    case ACT_HARDSWISH:
        return hardswish_of(x);
    }
    return x;
}

/* Returns the derivative of an activation. at: y if the activation has ACT_FROM_Y, else x. */
SIMD_INLINE float act_slope(Act act, float factor, float at)
{
    switch (act) {
    case ACT_NONE:
        return 1.0f;
    case ACT_RELU:
        return at > 0.0f ? 1.0f : 0.0f;
    case ACT_RELU6:
        return at > 0.0f && at < 6.0f ? 1.0f : 0.0f;
    case ACT_GELU:
        return gelu_slope(at);
    case ACT_SILU:
        return silu_slope(at);
    case ACT_TANH:
        return fused(-at, at, 1.0f);
    case ACT_SIGMOID:
        return at * (1.0f - at);
    case ACT_ELU:
        return at > 0.0f ? 1.0f : at + factor;
    case ACT_LEAKY_RELU:
        return at > 0.0f ? 1.0f : factor;
    case ACT_SOFTPLUS:
        return sigmoid_of(at);
    case ACT_MISH:
        return mish_slope(at);
    case ACT_HARDSWISH:
        return hardswish_slope(at);
    }
    return 1.0f;
}

/* One loop for each activation, in which the activation is a compile-time constant. */
#define ACT_LOOP(ACT, name, facts)                                                                 \
    case ACT_##ACT:                                                                                \
        EACH(y, act_value(ACT_##ACT, factor, value_of(x[i]))) break;
void SIMD_NAME(act)(Act act, float factor, void *to, const void *from, int64_t n)
{
    Elem *y = to;
    const Elem *x = from;
    switch (act) {
        ACTIVATIONS(ACT_LOOP)
    }
}

/* Returns the gradient of an activation's input. Where the activation is constant, the gradient is
 * +0 for any dy: the product dy * 0 could be a zero of either sign, and the sign could differ
 * between vectors and the scalar loop for the rest. */
SIMD_INLINE float act_gradient(Act act, float factor, float dy, float at)
{
    const float slope = act_slope(act, factor, at);
    if (act == ACT_RELU || act == ACT_RELU6) return slope > 0.0f ? dy : 0.0f;
    if (act == ACT_HARDSWISH) return slope == 0.0f ? 0.0f : dy * slope;
    return dy * slope;
}

#define GRAD_LOOP(ACT, name, facts)                                                                \
    case ACT_##ACT:                                                                                \
        EACH(dx, act_gradient(ACT_##ACT, factor, value_of(dy[i]), value_of(v[i]))) break;
void SIMD_NAME(act_grad)(Act act, float factor, void *to, const void *from, const void *values,
                         int64_t n)
{
    Elem *dx = to;
    const Elem *dy = from, *v = values;
    switch (act) {
        ACTIVATIONS(GRAD_LOOP)
    }
}

/* The input has n elements of the gate, then n elements of the value. */
void SIMD_NAME(swiglu)(void *restrict to, const void *restrict from, int64_t n)
{
    Elem *restrict y = to;
    const Elem *restrict gate = from, *restrict value = gate + n;
    EACH(y, silu_of(value_of(gate[i])) * value_of(value[i]))
}

/* Prefetches n elements that are AHEAD elements after `from`. swiglu_grad accesses five arrays at
 * once, more than a processor prefetches by itself. write: the elements will be written. */
SIMD_INLINE void fetch_ahead(const Elem *from, int64_t n, bool write)
{
    enum { AHEAD = 512 };
    for (int64_t i = 0; i < n; i += 64 / (int64_t)sizeof *from)
        if (write)
            __builtin_prefetch(from + AHEAD + i, 1);
        else
            __builtin_prefetch(from + AHEAD + i, 0);
}

void SIMD_NAME(swiglu_grad)(void *restrict to, const void *restrict from,
                            const void *restrict values, int64_t n)
{
    Elem *restrict dgate = to, *restrict dvalue = dgate + n;
    const Elem *restrict dy = from, *restrict gate = values, *restrict value = gate + n;
    for (int64_t part = 0; part < n; part += EACH_PART) {
        const int64_t count = n - part < EACH_PART ? n - part : EACH_PART;
        float a[EACH_PART], b[EACH_PART];
        fetch_ahead(dy + part, count, false);
        fetch_ahead(gate + part, count, false);
        fetch_ahead(value + part, count, false);
        fetch_ahead(dgate + part, count, true);
        fetch_ahead(dvalue + part, count, true);
#pragma omp simd
        for (int64_t i = 0; i < count; ++i) {
            float x = value_of(gate[part + i]), g = value_of(dy[part + i]), s = sigmoid_of(x);
            a[i] = g * value_of(value[part + i]) * (s * fused(x, 1.0f - s, 1.0f));
            b[i] = g * (x * s);
        }
        elems_from(dgate + part, a, count);
        elems_from(dvalue + part, b, count);
    }
}

void SIMD_NAME(add_act)(Act act, void *to, const void *left, const void *right, int64_t n)
{
    Elem *y = to;
    const Elem *a = left, *b = right;
    if (act == ACT_RELU) {
        EACH(y, clip_of(ACT_RELU, value_of(a[i]) + value_of(b[i])))
    } else if (act == ACT_RELU6) {
        EACH(y, clip_of(ACT_RELU6, value_of(a[i]) + value_of(b[i])))
    } else {
        EACH(y, value_of(a[i]) + value_of(b[i]))
    }
}

void SIMD_NAME(mul)(void *to, const void *from, const float *by, int64_t n)
{
    Elem *y = to;
    const Elem *x = from;
    EACH(y, value_of(x[i]) * by[i])
}

void SIMD_NAME(add_floats)(void *to, const void *from, const float *more, int64_t n)
{
    Elem *y = to;
    const Elem *x = from;
    EACH(y, value_of(x[i]) + more[i])
}

void SIMD_NAME(add_into)(float *sum, const void *from, int64_t n)
{
    const Elem *x = from;
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) sum[i] += value_of(x[i]);
}

void SIMD_NAME(from_floats)(void *restrict to, const float *restrict x, int64_t n)
{
    Elem *restrict y = to;
    EACH(y, x[i])
}

void SIMD_NAME(to_floats)(float *restrict y, const void *restrict from, int64_t n)
{
    const Elem *restrict x = from;
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) y[i] = value_of(x[i]);
}
