/* Padding, channels last. A place is a row or a column of y (places.h). Each block writes one row
 * of an image; each thread writes one channel of a pixel at a time. */
#include "../passes/elem.cuh"

#include "../../places.h"

static __device__ __forceinline__ int64_t source_of(const PadRun &run, int d, int64_t at)
{
    return pad_source(run.mode[d], run.low[d], run.size[d], at);
}

/* Writes one row of y. */
template <class T> static __global__ void pad_kernel(PadRun run)
{
    const unsigned channels = (unsigned)run.channels, all = (unsigned)run.out[1] * channels;
    const int64_t image = blockIdx.x / run.out[0], row = source_of(run, 0, blockIdx.x % run.out[0]);
    const T *x = (const T *)run.from + (image * run.size[0] + row) * run.size[1] * channels;
    T *y = (T *)run.to + (int64_t)blockIdx.x * all;
    for (unsigned i = threadIdx.x; i < all; i += THREADS) {
        const int64_t column = source_of(run, 1, i / channels);
        if (row < 0 || column < 0)
            store_float(y + i, 0.0f);
        else
            y[i] = x[column * channels + i % channels];
    }
}

/* Places of y, along one dimension, that may be copies of pixel i of x: `count` places from `first`
 * on, `step` apart. With PAD_REFLECT they are `first` and its mirror images at the two edges of the
 * image (copy_of). */
struct Copies {
    int64_t first, step, count;
};
static __device__ __forceinline__ Copies copies_of(const PadRun &run, int d, int64_t i)
{
    const int64_t at = run.low[d] + i, size = run.size[d], out = run.out[d];
    const int64_t first = i > 0 ? at : 0, end = i + 1 < size ? at + 1 : out;
    switch (run.mode[d]) {
    case PAD_ZERO:
        break;
    case PAD_REPLICATE:
        return Copies{first, 1, end - first};
    case PAD_REFLECT:
        return Copies{at, 0, 3};
    case PAD_CIRCULAR:
        return Copies{at - size, size, 3};
    }
    return Copies{at, 1, 1};
}

/* Returns the place of copy k of pixel i, or -1 if there is none. Places ascend with k. */
static __device__ __forceinline__ int64_t copy_of(const PadRun &run, int d, int64_t i,
                                                  const Copies &copies, int64_t k)
{
    int64_t at = copies.first + k * copies.step;
    if (run.mode[d] == PAD_REFLECT && k == 0) at = i > 0 ? run.low[d] - i : -1;
    if (run.mode[d] == PAD_REFLECT && k == 2)
        at = i + 1 < run.size[d] ? run.low[d] + 2 * ((int64_t)run.size[d] - 1) - i : -1;
    return at >= 0 && at < run.out[d] ? at : -1;
}

/* Writes one row of dx. A thread adds the copies of a pixel row by row, from left to right. */
template <class T> static __global__ void grad_kernel(PadRun run)
{
    const unsigned channels = (unsigned)run.channels, all = (unsigned)run.size[1] * channels;
    const int64_t image = blockIdx.x / run.size[0], h = blockIdx.x % run.size[0];
    const int64_t row = (int64_t)run.out[1] * channels;
    const T *dy = (const T *)run.from + image * run.out[0] * row;
    T *dx = (T *)run.to + (int64_t)blockIdx.x * all;
    const Copies rows = copies_of(run, 0, h);
    for (unsigned i = threadIdx.x; i < all; i += THREADS) {
        const Copies columns = copies_of(run, 1, i / channels);
        float sum = 0;
        for (int64_t r = 0; r < rows.count; ++r) {
            const int64_t p = copy_of(run, 0, h, rows, r);
            for (int64_t c = 0; c < columns.count && p >= 0; ++c) {
                const int64_t q = copy_of(run, 1, i / channels, columns, c);
                if (q >= 0) sum += as_float(dy[p * row + q * channels + i % channels]);
            }
        }
        store_float(dx + i, sum);
    }
}

cudaError_t launch_pad(cudaStream_t stream, PadRun run)
{
    unsigned lines = (unsigned)(run.samples * run.out[0]);
#define LAUNCH(T) pad_kernel<T><<<lines, THREADS, 0, stream>>>(run)
    if (lines > 0) TYPE_SWITCH(run.type, LAUNCH);
#undef LAUNCH
    return cudaGetLastError();
}

cudaError_t launch_pad_backward(cudaStream_t stream, PadRun run)
{
    unsigned lines = (unsigned)(run.samples * run.size[0]);
#define LAUNCH(T) grad_kernel<T><<<lines, THREADS, 0, stream>>>(run)
    if (lines > 0) TYPE_SWITCH(run.type, LAUNCH);
#undef LAUNCH
    return cudaGetLastError();
}
