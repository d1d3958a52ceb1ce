/* Activations and their derivatives for one element. gelu is the tanh form (Hendrycks and Gimpel
 * 2016). */
#ifndef WEFT_ACT_CUH
#define WEFT_ACT_CUH

#include "cuda_kernels.h"

#define GELU_SCALE 0.7978845608028654f /* sqrt(2 / pi) */
#define GELU_CUBIC 0.044715f

/* The logistic function, with the fast exponential and division, which are accurate to a few units
 * in the last place: with the exact ones arithmetic, not memory, would limit the kernels. Its
 * limits, 0 and 1, are exact for large |x|. */
static __device__ __forceinline__ float sigmoid(float x)
{
    return __fdividef(1, 1 + __expf(-x));
}

/* relu with an upper limit, and its derivative at output y. limit NAN: none. */
static __device__ __forceinline__ float clamped(float x, float limit)
{
    return x > 0 ? (x >= limit ? limit : x) : 0;
}

static __device__ __forceinline__ float clamped_slope(float y, float limit)
{
    return y > 0 && !(y >= limit) ? 1 : 0;
}

/* Returns the limit of relu or relu6. */
static __device__ __forceinline__ float clamp_limit(Act act)
{
    return act == ACT_RELU6 ? 6 : NAN;
}

template <Act ACT> static __device__ __forceinline__ float act_value(float x)
{
    if (ACT == ACT_RELU || ACT == ACT_RELU6) return clamped(x, clamp_limit(ACT));
    if (ACT == ACT_GELU) return x * sigmoid(2 * GELU_SCALE * (x + GELU_CUBIC * x * x * x));
    if (ACT == ACT_SILU) return x * sigmoid(x);
    return x;
}

/* Derivative of the activation. at: y for relu and relu6, x for the others. */
template <Act ACT> static __device__ __forceinline__ float act_slope(float at)
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
    return 1;
}

/* Runs LAUNCH(A) with the activation as a compile-time constant. */
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
    }

/* Runs KERNEL(Elem, elements per thread, ALIGNED), which may use the compile-time constant
 * ACTIVATION; see PACK_SIZE_SWITCH. */
#define WITH_ACT(A)                                                                                \
    {                                                                                              \
        const Act ACTIVATION = A;                                                                  \
        PACK_SIZE_SWITCH(KERNEL, Elem);                                                            \
    }

#endif
