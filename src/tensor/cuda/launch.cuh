/* The layout that most kernels share: THREADS threads in a block, with an element for each thread
 * or a row for each warp. A thread processes its elements in batches, because a GPU is fast when
 * many loads are in flight at once. */
#ifndef WEFT_LAUNCH_CUH
#define WEFT_LAUNCH_CUH

#include "cuda_kernels.h"
#include <cstdint>

enum { THREADS = CUDA_THREADS, WARP = 32, WARPS = THREADS / WARP };

static inline unsigned blocks_for(int64_t n, int64_t per_block)
{
    return (unsigned)((n + per_block - 1) / per_block);
}

/* Number of this thread in the grid. */
static __device__ __forceinline__ int64_t element()
{
    return (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
}

/* The row of this thread's warp, in a kernel with one row for each warp. */
static __device__ __forceinline__ int64_t warp_row()
{
    return (int64_t)blockIdx.x * WARPS + threadIdx.x / WARP;
}

/* One batch of in_batches. ALL: all U indices are below `last`. */
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

/* Calls finish(i, load(i)) for i = first, first + step, ... below last, in batches of U: all U
 * calls of load come before the batch's first call of finish, which may store. */
template <int U, class Load, class Finish>
static __device__ __forceinline__ void in_batches(int64_t first, int64_t last, int64_t step,
                                                  Load load, Finish finish)
{
    int64_t i = first;
    for (; i + (U - 1) * step < last; i += U * step) batch<U, true>(i, last, step, load, finish);
    if (i < last) batch<U, false>(i, last, step, load, finish);
}

#endif
