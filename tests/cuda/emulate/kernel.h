/* Compiles CUDA kernels for the host, so that their arithmetic, indexing and barriers are tested on
 * machines without a GPU. Speed and races between blocks are not tested, because blocks run one
 * after the other. This header is included before the kernels' source, in which the Makefile
 * replaces kernel<<<config>>>(arguments) by emulate::launch(config).of(kernel)(arguments).
 *
 * A block's threads are fibers of one host thread. They are switched at barriers and when a warp's
 * lanes exchange values. If a barrier is never completed, the program ends with a message. */
#ifndef WEFT_EMULATE_KERNEL_H
#define WEFT_EMULATE_KERNEL_H

#include "queue.h"

#include <cmath>
#include <cstdint>
#include <cstring>
#include <cuda_bf16.h>
#include <cuda_runtime_api.h>
#include <functional>

#undef __global__
#undef __device__
#undef __shared__
#undef __forceinline__
#undef __launch_bounds__
#define __global__
#define __device__
#define __shared__      static /* blocks run one after the other */
#define __forceinline__ inline
#define __launch_bounds__(...)

namespace emulate
{
template <class... P> struct Kernel;

enum { WARP_LANES = 32, BLOCK_THREADS = 1024 };
struct Indices {
    unsigned x, y, z;
};
/* threadIdx, blockIdx, blockDim and gridDim of the running fiber */
extern Indices thread, block, threads, blocks;

struct Launch {
    dim3 grid, threads;
    /* dynamic shared memory. The Makefile replaces  extern __shared__ T name[];  by  T *const name
     * = shared_memory(). */
    size_t shared_bytes;
    cudaStream_t stream;
    template <class... P> Kernel<P...> of(void (*kernel)(P...)) const { return {*this, kernel}; }
};
inline Launch launch(dim3 grid, dim3 threads, size_t shared_bytes, cudaStream_t stream)
{
    return {grid, threads, shared_bytes, stream};
}

/* Returns true if a GPU accepts this launch. If not, cudaGetLastError returns the reason. */
bool accepts_launch(const Launch &launch, const void *kernel);
/* Runs body once for each thread of each block. */
void run(const Launch &launch, const std::function<void()> &body);
void *shared_memory();
void block_barrier();
/* Waits at a barrier of the block, and returns the number of threads whose `mine` is true. */
int block_count(bool mine);
/* Waits until all lanes of the warp have called it, and returns the values of all lanes. */
const uint64_t *exchange(uint64_t mine);
unsigned lane();

template <class T> T from_lane(T value, unsigned source)
{
    static_assert(sizeof(T) <= sizeof(uint64_t), "a lane exchanges at most 8 bytes");
    uint64_t bits = 0;
    memcpy(&bits, &value, sizeof value);
    const uint64_t *all = exchange(bits);
    memcpy(&value, &all[source % WARP_LANES], sizeof value);
    return value;
}

/* A kernel and its launch. The call operator queues the kernel with copies of its arguments. */
template <class... P> struct Kernel {
    Launch launch;
    void (*kernel)(P...);
    void operator()(P... arguments) const
    {
        if (!accepts_launch(launch, (const void *)kernel)) return;
        enqueue(launch.stream, [=, launch = launch, kernel = kernel] {
            run(launch, [&] { kernel(arguments...); });
        });
    }
};
} // namespace emulate

#define threadIdx        emulate::thread
#define blockIdx         emulate::block
#define blockDim         emulate::threads
#define gridDim          emulate::blocks
#define __expf           expf
#define __fmaf_rn        fmaf
#define __logf           logf
#define __fdividef(a, b) ((a) / (b))

static inline void __syncthreads()
{
    emulate::block_barrier();
}
static inline int __syncthreads_count(int mine)
{
    return emulate::block_count(mine != 0);
}
static inline void __syncwarp(unsigned = 0xffffffffu)
{
    emulate::exchange(0);
}
template <class T> static inline T __shfl_xor_sync(unsigned, T value, int mask)
{
    return emulate::from_lane(value, emulate::lane() ^ (unsigned)mask);
}
template <class T> static inline T __shfl_sync(unsigned, T value, int source)
{
    return emulate::from_lane(value, (unsigned)source);
}
static inline uint32_t __ballot_sync(unsigned, int mine)
{
    const uint64_t *all = emulate::exchange(mine != 0);
    uint32_t lanes = 0;
    for (unsigned i = 0; i < emulate::WARP_LANES; ++i) lanes |= uint32_t(all[i]) << i;
    return lanes;
}
static inline int __popc(unsigned bits)
{
    return __builtin_popcount(bits);
}
static inline int atomicAdd(int *at, int value)
{
    int before = *at;
    *at += value;
    return before;
}
static inline float rsqrtf(float x)
{
    return 1 / sqrtf(x);
}

#endif
