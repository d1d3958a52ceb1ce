/* How kernels are laid out: THREADS to a block, a thread an element or a warp a row; and how a
 * thread goes over what is its own: in batches, for a GPU is fast when many bytes are on their way
 * at once. */
#ifndef WEFT_LAUNCH_CUH
#define WEFT_LAUNCH_CUH

#include "cuda_kernels.h"
#include <cstdint>

enum { THREADS = CUDA_THREADS, WARP = 32, WARPS = THREADS / WARP };

static inline unsigned blocks_for(int64_t n, int64_t per_block)
{
    return (unsigned)((n + per_block - 1) / per_block);
}

static __device__ __forceinline__ int64_t element()
{
    return (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
}

/* Of a kernel with a warp a row. */
static __device__ __forceinline__ int64_t warp_row()
{
    return (int64_t)blockIdx.x * WARPS + threadIdx.x / WARP;
}

template <int U, bool ALL, class Load, class Finish>
static __device__ __forceinline__ void batch(int64_t first, int64_t last, int64_t step, Load load,
                                             Finish finish)
{
    decltype(load(first)) loaded[U];
#pragma unroll
    for (int u = 0; u < U; ++u)
        if (ALL || first + u * step < last) loaded[u] = load(first + u * step);
#pragma unroll
    for (int u = 0; u < U; ++u)
        if (ALL || first + u * step < last) finish(first + u * step, loaded[u]);
}

/* Every step-th i of first .. last, U at a time: load(i) of all before finish(i, what load gave) of
 * any, which may store. */
template <int U, class Load, class Finish>
static __device__ __forceinline__ void in_batches(int64_t first, int64_t last, int64_t step,
                                                  Load load, Finish finish)
{
    int64_t i = first;
    for (; i + (U - 1) * step < last; i += U * step) batch<U, true>(i, last, step, load, finish);
    if (i < last) batch<U, false>(i, last, step, load, finish);
}

#endif
