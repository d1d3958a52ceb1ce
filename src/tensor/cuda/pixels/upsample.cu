/* Upsampling by integer factors, nearest or bilinear, channels last. A place is a row or a column
 * of y (places.h). Each block writes one row of an image; each thread writes one channel of a pixel
 * at a time. */
#include "../passes/elem.cuh"

#include "../../places.h"

/* Writes one row of y, with the nearest pixels. */
template <class T> static __global__ void upsample_kernel(UpsampleRun run)
{
    unsigned channels = (unsigned)run.channels, all = (unsigned)(run.w * run.scale) * channels;
    const T *x = (const T *)run.from + (int64_t)(blockIdx.x / run.scale) * run.w * channels;
    T *y = (T *)run.to + (int64_t)blockIdx.x * all;
    for (unsigned i = threadIdx.x; i < all; i += THREADS)
        y[i] = x[i / channels / run.scale * channels + i % channels];
}

/* Writes one row of dx for nearest pixels. A thread adds the copies of a pixel row by row, from
 * left to right. */
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

/* Writes one row of y, interpolated: first between two rows, then between two columns. */
template <class T> static __global__ void bilinear_kernel(UpsampleRun run)
{
    const unsigned channels = (unsigned)run.channels, rows = (unsigned)(run.h * run.scale);
    const unsigned all = (unsigned)(run.w * run.scale) * channels;
    const int64_t x_row = (int64_t)run.w * channels;
    const LinearPlace r =
        linear_place(run.h, run.scale, run.align_corners, (int64_t)(blockIdx.x % rows));
    const T *x = (const T *)run.from + ((int64_t)(blockIdx.x / rows) * run.h + r.first) * x_row;
    T *y = (T *)run.to + (int64_t)blockIdx.x * all;
    for (unsigned i = threadIdx.x; i < all; i += THREADS) {
        const LinearPlace c = linear_place(run.w, run.scale, run.align_corners, i / channels);
        const T *at = x + c.first * channels + i % channels;
        float sum = 0;
        for (int k = 0; k <= (c.above > 0); ++k, at += channels) {
            float column = (1 - r.above) * as_float(at[0]);
            if (r.above > 0) column += r.above * as_float(at[x_row]);
            sum += (k ? c.above : 1 - c.above) * column;
        }
        store_float(y + i, sum);
    }
}

/* Returns the weight of pixel i at place `at` of y, along one dimension. size: number of pixels of
 * x along this dimension. */
static __device__ __forceinline__ float weight_of(const UpsampleRun &run, int size, int64_t at,
                                                  int64_t i)
{
    const LinearPlace p = linear_place(size, run.scale, run.align_corners, at);
    return p.first == i ? 1 - p.above : p.first + 1 == i ? p.above : 0;
}

/* Sets *first and *end so that, along one dimension, all places of y that read pixel i of x are in
 * the range from *first to *end - 1. */
static __device__ __forceinline__ void places_of(const UpsampleRun &run, int size, int64_t i,
                                                 int64_t *first, int64_t *end)
{
    const int64_t out = (int64_t)size * run.scale, last = (i + 2) * run.scale + 1;
    *first = i > 0 ? (i - 1) * run.scale : 0;
    *end = last < out ? last : out;
}

/* Writes one row of dx for interpolation. A thread adds all places that read a pixel, column by
 * column. */
template <class T> static __global__ void bilinear_grad_kernel(UpsampleRun run)
{
    const unsigned channels = (unsigned)run.channels, all = (unsigned)run.w * channels;
    const int64_t row = (int64_t)all * run.scale, image = blockIdx.x / run.h;
    const T *dy = (const T *)run.from + image * run.h * run.scale * row;
    T *dx = (T *)run.to + (int64_t)blockIdx.x * all;
    const int64_t h = blockIdx.x % run.h;
    int64_t top, bottom, left, right;
    places_of(run, run.h, h, &top, &bottom);
    for (unsigned i = threadIdx.x; i < all; i += THREADS) {
        const int64_t w = i / channels;
        float sum = 0;
        places_of(run, run.w, w, &left, &right);
        for (int64_t q = left; q < right; ++q) {
            const float by = weight_of(run, run.w, q, w);
            float column = 0;
            for (int64_t p = top; p < bottom && by > 0; ++p)
                column += weight_of(run, run.h, p, h) *
                          as_float(dy[p * row + q * channels + i % channels]);
            sum += by * column;
        }
        store_float(dx + i, sum);
    }
}

cudaError_t launch_upsample(cudaStream_t stream, UpsampleRun run)
{
    unsigned lines = (unsigned)(run.samples * run.h * run.scale);
    if (lines == 0) return cudaGetLastError();
#define LAUNCH(T)   upsample_kernel<T><<<lines, THREADS, 0, stream>>>(run)
#define BILINEAR(T) bilinear_kernel<T><<<lines, THREADS, 0, stream>>>(run)
    switch (run.mode) {
    case UPSAMPLE_NEAREST:
        TYPE_SWITCH(run.type, LAUNCH);
        break;
    case UPSAMPLE_BILINEAR:
        TYPE_SWITCH(run.type, BILINEAR);
        break;
    }
#undef LAUNCH
#undef BILINEAR
    return cudaGetLastError();
}

cudaError_t launch_upsample_backward(cudaStream_t stream, UpsampleRun run)
{
    unsigned lines = (unsigned)(run.samples * run.h);
    if (lines == 0) return cudaGetLastError();
#define LAUNCH(T)   grad_kernel<T><<<lines, THREADS, 0, stream>>>(run)
#define BILINEAR(T) bilinear_grad_kernel<T><<<lines, THREADS, 0, stream>>>(run)
    switch (run.mode) {
    case UPSAMPLE_NEAREST:
        TYPE_SWITCH(run.type, LAUNCH);
        break;
    case UPSAMPLE_BILINEAR:
        TYPE_SWITCH(run.type, BILINEAR);
        break;
    }
#undef LAUNCH
#undef BILINEAR
    return cudaGetLastError();
}
