/* Upsampling by whole factors, channels last: each block writes one row of an image, each thread
 * one channel of a pixel at a time. */
#include "elem.cuh"

/* One row of y. */
template <class T> static __global__ void upsample_kernel(UpsampleRun run)
{
    unsigned channels = (unsigned)run.channels, all = (unsigned)(run.w * run.scale) * channels;
    const T *x = (const T *)run.from + (int64_t)(blockIdx.x / run.scale) * run.w * channels;
    T *y = (T *)run.to + (int64_t)blockIdx.x * all;
    for (unsigned i = threadIdx.x; i < all; i += THREADS)
        y[i] = x[i / channels / run.scale * channels + i % channels];
}

/* One row of dx: a thread adds the copies of a pixel row by row, from left to right. */
template <class T> static __global__ void grad_kernel(UpsampleRun run)
{
    unsigned channels = (unsigned)run.channels, all = (unsigned)run.w * channels;
    int64_t row = (int64_t)all * run.scale;
    const T *dy = (const T *)run.from + (int64_t)blockIdx.x * run.scale * row;
    T *dx = (T *)run.to + (int64_t)blockIdx.x * all;
    for (unsigned i = threadIdx.x; i < all; i += THREADS) {
        const T *from = dy + (int64_t)(i / channels) * run.scale * channels + i % channels;
        float sum = 0;
        for (int h = 0; h < run.scale; ++h)
            for (int w = 0; w < run.scale; ++w)
                sum += read_pack<1, false>(from + h * row + (int64_t)w * channels)[0];
        write_floats<1, false>(dx + i, &sum);
    }
}

cudaError_t launch_upsample(cudaStream_t stream, UpsampleRun run)
{
    unsigned lines = (unsigned)(run.samples * run.h * run.scale);
#define LAUNCH(T) upsample_kernel<T><<<lines, THREADS, 0, stream>>>(run)
    if (lines > 0) TYPE_SWITCH(run.type, LAUNCH);
#undef LAUNCH
    return cudaGetLastError();
}

cudaError_t launch_upsample_backward(cudaStream_t stream, UpsampleRun run)
{
    unsigned lines = (unsigned)(run.samples * run.h);
#define LAUNCH(T) grad_kernel<T><<<lines, THREADS, 0, stream>>>(run)
    if (lines > 0) TYPE_SWITCH(run.type, LAUNCH);
#undef LAUNCH
    return cudaGetLastError();
}
