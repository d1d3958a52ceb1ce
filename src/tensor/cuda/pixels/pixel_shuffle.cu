/* Moves channels to pixels, channels last. Each block has one row of y; each thread has one channel
 * of a pixel at a time. */
#include "../passes/elem.cuh"

template <class T> static __global__ void shuffle_kernel(ShuffleRun run)
{
    const unsigned channels = (unsigned)run.channels, r = (unsigned)run.scale;
    const unsigned all = (unsigned)run.w * r * channels;
    const int64_t y_row = (int64_t)blockIdx.x * all;
    const int64_t x_row = (int64_t)(blockIdx.x / r) * run.w;
    for (unsigned i = threadIdx.x; i < all; i += THREADS) {
        const unsigned j = i / channels, c = i % channels;
        const unsigned channel = (c * r + blockIdx.x % r) * r + j % r;
        const int64_t x_at = (x_row + j / r) * channels * r * r + channel;
        if (run.back)
            ((T *)run.to)[x_at] = ((const T *)run.from)[y_row + i];
        else
            ((T *)run.to)[y_row + i] = ((const T *)run.from)[x_at];
    }
}

cudaError_t launch_pixel_shuffle(cudaStream_t stream, ShuffleRun run)
{
    unsigned lines = (unsigned)(run.samples * run.h * run.scale);
#define LAUNCH(T) shuffle_kernel<T><<<lines, THREADS, 0, stream>>>(run)
    if (lines > 0) TYPE_SWITCH(run.type, LAUNCH);
#undef LAUNCH
    return cudaGetLastError();
}
