/* Upsampling by whole factors, channels last: each block writes one row of an image, each thread E
 * channels of a pixel at a time. */
#include "elem.cuh"

/* One row of y. */
template <class T, int E, bool ALIGNED> static __global__ void upsample_kernel(UpsampleRun run)
{
    unsigned packs = (unsigned)(run.channels / E), all = (unsigned)(run.w * run.scale) * packs;
    const T *x = (const T *)run.from + (int64_t)(blockIdx.x / run.scale) * run.w * run.channels;
    T *y = (T *)run.to + (int64_t)blockIdx.x * run.w * run.scale * run.channels;
    for (unsigned i = threadIdx.x; i < all; i += THREADS) {
        int64_t column = i / packs, c = (int64_t)(i % packs) * E;
        write_pack<E, ALIGNED>(y + column * run.channels + c,
                               read_pack<E, ALIGNED>(x + column / run.scale * run.channels + c));
    }
}

/* One row of dx: a thread adds the copies of a pixel row by row, from left to right. */
template <class T, int E, bool ALIGNED> static __global__ void grad_kernel(UpsampleRun run)
{
    unsigned packs = (unsigned)(run.channels / E), all = (unsigned)run.w * packs;
    int64_t row = (int64_t)run.w * run.scale * run.channels;
    const T *dy = (const T *)run.from + (int64_t)blockIdx.x * run.scale * row;
    T *dx = (T *)run.to + (int64_t)blockIdx.x * run.w * run.channels;
    for (unsigned i = threadIdx.x; i < all; i += THREADS) {
        int64_t column = i / packs, c = (int64_t)(i % packs) * E;
        float sum[E] = {};
        for (int h = 0; h < run.scale; ++h)
            for (int w = 0; w < run.scale; ++w) {
                Pack<T, E> more = read_pack<E, ALIGNED>(
                    dy + h * row + (column * run.scale + w) * run.channels + c);
#pragma unroll
                for (int k = 0; k < E; ++k) sum[k] += more[k];
            }
        write_floats<E, ALIGNED>(dx + column * run.channels + c, sum);
    }
}

cudaError_t launch_upsample(cudaStream_t stream, UpsampleRun run)
{
    int pack_size = cuda_pack_size(run.type, run.channels);
    bool aligned = aligned_to_packs(run.from, run.to);
    unsigned lines = (unsigned)(run.samples * run.h * run.scale);
#define COPIES(T, N, P) upsample_kernel<T, N, P><<<lines, THREADS, 0, stream>>>(run)
#define LAUNCH(T)       PACK_SIZE_SWITCH(COPIES, T)
    if (lines > 0) TYPE_SWITCH(run.type, LAUNCH);
#undef LAUNCH
    return cudaGetLastError();
}

cudaError_t launch_upsample_backward(cudaStream_t stream, UpsampleRun run)
{
    int pack_size = cuda_pack_size(run.type, run.channels);
    bool aligned = aligned_to_packs(run.from, run.to);
    unsigned lines = (unsigned)(run.samples * run.h);
#define SUMS(T, N, P) grad_kernel<T, N, P><<<lines, THREADS, 0, stream>>>(run)
#define LAUNCH(T)     PACK_SIZE_SWITCH(SUMS, T)
    if (lines > 0) TYPE_SWITCH(run.type, LAUNCH);
#undef LAUNCH
    return cudaGetLastError();
}
