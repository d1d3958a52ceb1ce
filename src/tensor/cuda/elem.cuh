/* Elements of activations, fp32 or bf16, read as floats and rounded where they are stored; sixteen bytes at a time where they
 * lie so; sums over a warp and a block in a fixed order. */
#ifndef WEFT_ELEM_CUH
#define WEFT_ELEM_CUH

#include "cuda_kernels.h"
#include "launch.cuh"

#include <cuda_bf16.h>

#define EVERY_LANE 0xffffffffu

static __device__ __forceinline__ float value_of(float x)
{
    return x;
}
static __device__ __forceinline__ float value_of(__nv_bfloat16 x)
{
    return __bfloat162float(x);
}
static __device__ __forceinline__ void set(float *to, float value)
{
    *to = value;
}
static __device__ __forceinline__ void set(__nv_bfloat16 *to, float value)
{
    *to = __float2bfloat16_rn(value);
}

/* What one access moves. */
template <class T> struct alignas(16) Pack {
    enum { COUNT = 16 / sizeof(T) };
    T at[COUNT];
};

/* f(i, n): the elements i .. i + n of a thread, n a pack's or, at the end, fewer. */
template <class T, class F> static __device__ __forceinline__ void each_pack(int64_t count, F f)
{
    int64_t i = element() * Pack<T>::COUNT;
    if (i >= count) return;
    int64_t left = count - i;
    f(i, left < Pack<T>::COUNT ? (int)left : (int)Pack<T>::COUNT);
}

template <class T> static __device__ __forceinline__ void load(float *out, const T *from, int n)
{
    if (n == Pack<T>::COUNT) {
        Pack<T> pack = *(const Pack<T> *)from;
#pragma unroll
        for (int k = 0; k < Pack<T>::COUNT; ++k) out[k] = value_of(pack.at[k]);
    } else {
        for (int k = 0; k < n; ++k) out[k] = value_of(from[k]);
    }
}

template <class T> static __device__ __forceinline__ void store(T *to, const float *from, int n)
{
    if (n == Pack<T>::COUNT) {
        Pack<T> pack;
#pragma unroll
        for (int k = 0; k < Pack<T>::COUNT; ++k) set(&pack.at[k], from[k]);
        *(Pack<T> *)to = pack;
    } else {
        for (int k = 0; k < n; ++k) set(to + k, from[k]);
    }
}

template <class T> static inline unsigned pack_blocks(int64_t count)
{
    return blocks_for(count, (int64_t)THREADS * Pack<T>::COUNT);
}

static __device__ __forceinline__ float warp_sum(float v)
{
#pragma unroll
    for (int step = WARP / 2; step > 0; step /= 2) v += __shfl_xor_sync(EVERY_LANE, v, step);
    return v;
}

/* Runs LAUNCH(T) for the type of the elements. */
#define TYPE_SWITCH(type, LAUNCH)                                                                  \
    do {                                                                                           \
        if ((type) == DTYPE_BF16) {                                                                \
            LAUNCH(__nv_bfloat16);                                                                 \
        } else {                                                                                   \
            LAUNCH(float);                                                                         \
        }                                                                                          \
    } while (0)

#endif
