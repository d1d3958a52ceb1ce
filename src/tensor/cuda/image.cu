/* Images, channels last: other layouts and types of them, and pooling. */
#include "elem.cuh"

/* A thread an element of `to`, in the order of its memory. */
template <class TO, class FROM> static __global__ void reorder_kernel(ReorderRun run)
{
    int64_t i = element(), sample = run.channels * run.pixels;
    if (i >= run.samples * sample) return;
    int64_t e = i % sample, c, p;
    if (run.to_last) {
        c = e % run.channels;
        p = e / run.channels;
    } else {
        c = e / run.pixels;
        p = e % run.pixels;
    }
    int64_t at = run.from_last ? p * run.channels + c : c * run.pixels + p;
    set((TO *)run.to + i, value_of(((const FROM *)run.from)[i - e + at]));
}

/* Where pixel (h, w) of image n begins. */
static __device__ __forceinline__ int64_t pixel_at(const PoolRun &run, int64_t n, int64_t h,
                                                   int64_t w)
{
    return ((n * run.h + h) * run.w + w) * run.channels;
}

struct Window {
    int64_t c, n;
    int top, left, high, low, right,
        first; /* rows low .. high, columns first .. right of real pixels */
};

/* A thread an element of y, channels fastest. */
static __device__ __forceinline__ Window window_of(const PoolRun &run, int64_t i)
{
    Window v;
    v.c = i % run.channels;
    int64_t pixel = i / run.channels;
    int q = (int)(pixel % run.q), p = (int)(pixel / run.q % run.p);
    v.n = pixel / run.q / run.p;
    v.top = p * run.stride[0] - run.pad[0];
    v.left = q * run.stride[1] - run.pad[1];
    v.low = v.top < 0 ? 0 : v.top;
    v.first = v.left < 0 ? 0 : v.left;
    v.high = v.top + run.kernel[0] < run.h ? v.top + run.kernel[0] : run.h;
    v.right = v.left + run.kernel[1] < run.w ? v.left + run.kernel[1] : run.w;
    return v;
}

template <class T> static __global__ void max_kernel(PoolRun run)
{
    int64_t i = element();
    if (i >= run.samples * run.p * run.q * run.channels) return;
    Window v = window_of(run, i);
    float best = -INFINITY;
    int place = POOL_CUT;
    for (int h = v.low; h < v.high; ++h)
        for (int w = v.first; w < v.right; ++w) {
            float x = value_of(((const T *)run.x)[pixel_at(run, v.n, h, w) + v.c]);
            if (!(x > best) && x == x) continue; /* a NaN stays */
            best = x;
            place = (h - v.top) * run.kernel[1] + w - v.left;
        }
    if (run.relu && !(best > 0) && best == best) {
        best = 0;
        place = POOL_CUT;
    }
    set((T *)run.y + i, best);
    run.place[i] = (uint8_t)place;
}

template <class T> static __global__ void average_kernel(PoolRun run)
{
    int64_t i = element();
    if (i >= run.samples * run.p * run.q * run.channels) return;
    Window v = window_of(run, i);
    float sum = 0;
    for (int h = v.low; h < v.high; ++h)
        for (int w = v.first; w < v.right; ++w)
            sum += value_of(((const T *)run.x)[pixel_at(run, v.n, h, w) + v.c]);
    int count = (v.high - v.low) * (v.right - v.first);
    float mean = count > 0 ? sum / count : 0;
    set((T *)run.y + i, run.relu && !(mean > 0) ? 0 : mean);
}

/* A thread an element of x takes from every window that holds it, in order. */
template <class T, bool MAX> static __global__ void grad_kernel(PoolRun run)
{
    int64_t i = element();
    if (i >= run.samples * run.h * run.w * run.channels) return;
    int64_t c = i % run.channels, pixel = i / run.channels, n = pixel / run.w / run.h;
    int w = (int)(pixel % run.w) + run.pad[1], h = (int)(pixel / run.w % run.h) + run.pad[0];
    int p_low = h < run.kernel[0] ? 0 : (h - run.kernel[0]) / run.stride[0] + 1,
        p_high = h / run.stride[0];
    int q_low = w < run.kernel[1] ? 0 : (w - run.kernel[1]) / run.stride[1] + 1,
        q_high = w / run.stride[1];
    float sum = 0;
    for (int p = p_low; p <= p_high && p < run.p; ++p)
        for (int q = q_low; q <= q_high && q < run.q; ++q) {
            int64_t at = ((n * run.p + p) * run.q + q) * run.channels + c;
            float dy = value_of(((const T *)run.dy)[at]);
            if (MAX) {
                int place = (h - p * run.stride[0]) * run.kernel[1] + w - q * run.stride[1];
                if (run.place[at] == place) sum += dy;
            } else {
                Window v = window_of(run, at);
                sum += dy / ((v.high - v.low) * (v.right - v.first));
            }
        }
    set((T *)run.dx + i, sum);
}

cudaError_t cuda_reorder_image(cudaStream_t stream, ReorderRun run)
{
    int64_t n = run.samples * run.channels * run.pixels;
#define FROM_TO(FROM, TO)                                                                          \
    reorder_kernel<TO, FROM><<<blocks_for(n, THREADS), THREADS, 0, stream>>>(run)
#define LAUNCH(T)                                                                                  \
    if (run.to_type == DTYPE_BF16)                                                                 \
        FROM_TO(T, __nv_bfloat16);                                                                 \
    else                                                                                           \
        FROM_TO(T, float)
    if (n > 0) TYPE_SWITCH(run.from_type, LAUNCH);
#undef LAUNCH
    return cudaGetLastError();
}

cudaError_t cuda_pool(cudaStream_t stream, PoolRun run)
{
    int64_t n = run.samples * run.p * run.q * run.channels;
#define LAUNCH(T)                                                                                  \
    if (run.place)                                                                                 \
        max_kernel<T><<<blocks_for(n, THREADS), THREADS, 0, stream>>>(run);                        \
    else                                                                                           \
        average_kernel<T><<<blocks_for(n, THREADS), THREADS, 0, stream>>>(run)
    if (n > 0) TYPE_SWITCH(run.type, LAUNCH);
#undef LAUNCH
    return cudaGetLastError();
}

cudaError_t cuda_pool_backward(cudaStream_t stream, PoolRun run)
{
    int64_t n = run.samples * run.h * run.w * run.channels;
#define LAUNCH(T)                                                                                  \
    if (run.place)                                                                                 \
        grad_kernel<T, true><<<blocks_for(n, THREADS), THREADS, 0, stream>>>(run);                 \
    else                                                                                           \
        grad_kernel<T, false><<<blocks_for(n, THREADS), THREADS, 0, stream>>>(run)
    if (n > 0) TYPE_SWITCH(run.type, LAUNCH);
#undef LAUNCH
    return cudaGetLastError();
}
