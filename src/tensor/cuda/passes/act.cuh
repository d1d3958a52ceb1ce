/* Activations and their derivatives for one element. gelu is the tanh form (Hendrycks and Gimpel
 * 2016). */
#ifndef WEFT_ACT_CUH
#define WEFT_ACT_CUH

#include "../cuda_kernels.h"

#define GELU_SCALE 0.7978845608028654f /* sqrt(2 / pi) */
#define GELU_CUBIC 0.044715f

/* Computes the logistic function with the fast exponential and the fast division. Their error is a
 * few units in the last place, and grows with |x|. With the exact functions, arithmetic and not
 * memory would limit the speed of the kernels. For large |x| the result is exactly 0 or 1. */
static __device__ __forceinline__ float sigmoid(float x)
{
    return __fdividef(1, 1 + __expf(-x));
}

/* clamped: relu with an upper limit; clamped_slope: its derivative at output y. limit: NAN if there
 * is no limit. */
static __device__ __forceinline__ float clamped(float x, float limit)
{
    return x > 0 ? (x >= limit ? limit : x) : 0;
}

static __device__ __forceinline__ float clamped_slope(float y, float limit)
{
    return y > 0 && !(y >= limit) ? 1 : 0;
}

/* Returns the upper limit of relu (NAN) or relu6. */
static __device__ __forceinline__ float clamp_limit(Act act)
{
    return act == ACT_RELU6 ? 6 : NAN;
}

/* Computes tanh by the quotient of polynomials that the CPU kernels use (cpu/simd/element.c). */
static __device__ __forceinline__ float tanh_near(float x)
{
    const float c = fminf(fmaxf(x, -9.02f), 9.02f), z = c * c;
    const float p = 1.7672459f + z * (0.23650397f +
                                      z * (6.1807428e-3f + z * (3.646636e-5f + z * 2.3650017e-8f)));
    const float q = 1.7672459f +
                    z * (0.8255857f + z * (4.5743566e-2f + z * (5.8114075e-4f + z * 1.376598e-6f)));
    return x != x ? x : fminf(fmaxf(__fdividef(c * p, q), -1), 1);
}

/* mish computes mish(x) = x w / (w + 2), where w = e (e + 2) and e = exp(x); mish_slope computes
 * its derivative. From x = 20 on, w / (w + 2) is 1 in fp32. */
static __device__ __forceinline__ float mish(float x)
{
    const float e = __expf(x > 20 ? 20 : x), w = e * (e + 2);
    return x * __fdividef(w, w + 2);
}

static __device__ __forceinline__ float mish_slope(float x)
{
    const float c = x > 20 ? 20 : x, e = __expf(c), w = e * (e + 2), by = __fdividef(1, w + 2);
    return w * by + 4 * c * by * (e * (1 + e) * by);
}

/* Returns act(x). factor: OpSpec.act_factor. */
template <Act ACT> static __device__ __forceinline__ float act_value(float x, float factor = 0)
{
    if (ACT == ACT_RELU || ACT == ACT_RELU6) return clamped(x, clamp_limit(ACT));
    if (ACT == ACT_GELU) return x * sigmoid(2 * GELU_SCALE * (x + GELU_CUBIC * x * x * x));
    if (ACT == ACT_SILU) return x * sigmoid(x);
    if (ACT == ACT_TANH) return tanh_near(x);
    if (ACT == ACT_SIGMOID) return sigmoid(x);
    if (ACT == ACT_ELU) return x > 0 ? x : factor * expm1f(x);
    if (ACT == ACT_LEAKY_RELU) return x > 0 ? x : factor * x;
    if (ACT == ACT_SOFTPLUS) return clamped(x, NAN) + log1pf(__expf(-fabsf(x)));
    if (ACT == ACT_MISH) return mish(x);
    if (ACT == ACT_HARDSWISH) return x <= -3 ? 0 : x >= 3 ? x : x * ((x + 3) * (1.0f / 6));
    return x;
}

/* Returns the derivative of the activation. at: y if the activation has ACT_FROM_Y, else x. factor:
 * OpSpec.act_factor. */
template <Act ACT> static __device__ __forceinline__ float act_slope(float at, float factor)
{
    if (ACT == ACT_RELU || ACT == ACT_RELU6) return clamped_slope(at, clamp_limit(ACT));
    if (ACT == ACT_GELU) {
        float s = sigmoid(2 * GELU_SCALE * (at + GELU_CUBIC * at * at * at));
        return s + 2 * at * s * (1 - s) * GELU_SCALE * (1 + 3 * GELU_CUBIC * at * at);
    }
    if (ACT == ACT_SILU) {
        float s = sigmoid(at);
        return s * (1 + at * (1 - s));
    }
    if (ACT == ACT_TANH) return 1 - at * at;
    if (ACT == ACT_SIGMOID) return at * (1 - at);
    if (ACT == ACT_ELU) return at > 0 ? 1 : at + factor;
    if (ACT == ACT_LEAKY_RELU) return at > 0 ? 1 : factor;
    if (ACT == ACT_SOFTPLUS) return sigmoid(at);
    if (ACT == ACT_MISH) return mish_slope(at);
    if (ACT == ACT_HARDSWISH) return at <= -3 ? 0 : at >= 3 ? 1 : at * (1.0f / 3) + 0.5f;
    return 1;
}

/* Runs LAUNCH(A), where A is the activation as a compile-time constant, if it is one that other
 * operations may apply to their outputs. Does nothing for any other activation. */
#define ACT_SWITCH(act, LAUNCH)                                                                    \
    switch (act) {                                                                                 \
    case ACT_RELU:                                                                                 \
        LAUNCH(ACT_RELU);                                                                          \
        break;                                                                                     \
    case ACT_RELU6:                                                                                \
        LAUNCH(ACT_RELU6);                                                                         \
        break;                                                                                     \
    case ACT_GELU:                                                                                 \
        LAUNCH(ACT_GELU);                                                                          \
        break;                                                                                     \
    case ACT_SILU:                                                                                 \
        LAUNCH(ACT_SILU);                                                                          \
        break;                                                                                     \
    case ACT_NONE:                                                                                 \
        LAUNCH(ACT_NONE);                                                                          \
        break;                                                                                     \
    default:                                                                                       \
        break;                                                                                     \
    }

/* Runs KERNEL(Elem, elements per thread, ALIGNED), which may use the compile-time constant
 * ACTIVATION; see PACK_SIZE_SWITCH. */
#define WITH_ACT(A)                                                                                \
    {                                                                                              \
        const Act ACTIVATION = A;                                                                  \
        PACK_SIZE_SWITCH(KERNEL, Elem);                                                            \
    }

#endif
