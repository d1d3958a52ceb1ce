/* The layout that most kernels share: a block has THREADS threads, with an element for each thread
 * or a row for each warp. A thread processes its elements in batches, because a GPU is fast when
 * many loads are in flight at the same time. */
#ifndef WEFT_LAUNCH_CUH
#define WEFT_LAUNCH_CUH

#include "../cuda_kernels.h"
#include <cstdint>
#include <cstring>

enum { THREADS = CUDA_THREADS, WARP = 32, WARPS = THREADS / WARP };

/* Returns the number of blocks for n elements, with per_block elements in each block. */
static inline unsigned blocks_for(int64_t n, int64_t per_block)
{
    return (unsigned)((n + per_block - 1) / per_block);
}

/* Returns the number of this thread in the grid, if block and grid have one dimension. */
static __device__ __forceinline__ int64_t element()
{
    return (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
}

/* Returns the row of this thread's warp, in a kernel with one row for each warp. */
static __device__ __forceinline__ int64_t warp_row()
{
    return (int64_t)blockIdx.x * WARPS + threadIdx.x / WARP;
}

/* Adds the values of a block's THREADS threads by a tree. The result is valid in thread 0. All
 * threads of the block must call this function. */
static __device__ __forceinline__ double block_sum(double value)
{
    __shared__ double sums[THREADS];
    __syncthreads();
    sums[threadIdx.x] = value;
    for (int step = THREADS / 2; step > 0; step /= 2) {
        __syncthreads();
        if ((int)threadIdx.x < step) sums[threadIdx.x] += sums[threadIdx.x + step];
    }
    return sums[0];
}

/* Bytes that are passed as an argument of a launch. CUDA copies the arguments at the call. An
 * asynchronous copy would instead need host memory that stays unchanged until the copy is done. */
template <int BYTES> struct Bytes {
    unsigned char byte[BYTES];
};

template <int BYTES> static __global__ void put_kernel(unsigned char *to, Bytes<BYTES> from, int n)
{
    for (int i = (int)threadIdx.x; i < n; i += THREADS) to[i] = from.byte[i];
}

/* Copies `bytes` bytes from host memory to device memory, in pieces of BYTES bytes. `from` is read
 * before the call returns. */
template <int BYTES>
static cudaError_t put_bytes(cudaStream_t stream, void *to, const void *from, size_t bytes)
{
    Bytes<BYTES> piece = {};
    for (size_t at = 0; at < bytes; at += BYTES) {
        const size_t n = bytes - at < BYTES ? bytes - at : (size_t)BYTES;
        memcpy(piece.byte, (const char *)from + at, n);
        put_kernel<BYTES><<<1, THREADS, 0, stream>>>((unsigned char *)to + at, piece, (int)n);
    }
    return cudaGetLastError();
}

/* Processes one batch of in_batches. ALL: all U indices are below `last`. */
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

/* Calls finish(i, load(i)) for i = first, first + step, ... below `last`, in batches of U. In a
 * batch, all calls of load come before the first call of finish, because finish may store to
 * memory. */
template <int U, class Load, class Finish>
static __device__ __forceinline__ void in_batches(int64_t first, int64_t last, int64_t step,
                                                  Load load, Finish finish)
{
    int64_t i = first;
    for (; i + (U - 1) * step < last; i += U * step) batch<U, true>(i, last, step, load, finish);
    if (i < last) batch<U, false>(i, last, step, load, finish);
}

#endif
