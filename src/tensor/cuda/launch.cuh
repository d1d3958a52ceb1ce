/* How a kernel over n elements is laid out: one thread an element, THREADS to a block. */
#ifndef WEFT_LAUNCH_CUH
#define WEFT_LAUNCH_CUH

#include <cstdint>

enum { THREADS = 256, WARP = 32, WARPS = THREADS / WARP };

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

#endif
