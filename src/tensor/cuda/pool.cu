/* Pooling, channels last: each block writes one line of an image, each thread E channels of a pixel
 * at a time. */
#include "elem.cuh"

enum { BATCH = 3 };

/* Window whose corner is (top, left), and its real pixels: rows low .. high - 1, columns first ..
 * right - 1. */
struct Window {
    int top, left, low, high, first, right;
};

static __device__ __forceinline__ Window window_at(const PoolRun &run, int p, int q)
{
    Window v;
    v.top = p * run.stride[0] - run.pad[0];
    v.left = q * run.stride[1] - run.pad[1];
    v.low = v.top < 0 ? 0 : v.top;
    v.first = v.left < 0 ? 0 : v.left;
    v.high = v.top + run.kernel[0] < run.h ? v.top + run.kernel[0] : run.h;
    v.right = v.left + run.kernel[1] < run.w ? v.left + run.kernel[1] : run.w;
    return v;
}

/* Calls f(column, channel) for this thread's pixels and channels of the block's line. */
template <int E, class F>
static __device__ __forceinline__ void each_of_line(int columns, int64_t channels, F f)
{
    unsigned packs = (unsigned)(channels / E), all = (unsigned)columns * packs;
    for (unsigned i = threadIdx.x; i < all; i += THREADS)
        f((int)(i / packs), (int64_t)(i % packs) * E);
}

/* Calls f(h, w, pack) for the window's real pixels, in order. */
template <int E, bool PACKS, class T, class F>
static __device__ __forceinline__ void each_pixel(const PoolRun &run, const Window &v,
                                                  const T *image, F f)
{
    for (int h = v.low; h < v.high; ++h) {
        const T *line = image + (int64_t)h * run.w * run.channels;
        in_batches<BATCH>(
            v.first, v.right, 1, [&](int64_t w) { return read<E, PACKS>(line + w * run.channels); },
            [&](int64_t w, const Pack<T, E> &x) { f(h, (int)w, x); });
    }
}

template <class T, int E, bool PACKS> static __global__ void max_kernel(PoolRun run)
{
    unsigned n = blockIdx.x / run.p, p = blockIdx.x % run.p;
    const T *image = (const T *)run.x + (int64_t)n * run.h * run.w * run.channels;
    int64_t line = (int64_t)blockIdx.x * run.q * run.channels;
    each_of_line<E>(run.q, run.channels, [&](int q, int64_t c) {
        Window v = window_at(run, (int)p, q);
        float best[E];
        int place[E];
        for (int k = 0; k < E; ++k) {
            best[k] = -INFINITY;
            place[k] = POOL_CUT;
        }
        each_pixel<E, PACKS>(run, v, image + c, [&](int h, int w, const Pack<T, E> &x) {
            int here = (h - v.top) * run.kernel[1] + w - v.left;
#pragma unroll
            for (int k = 0; k < E; ++k) {
                /* A NaN replaces any value before it. */
                bool larger = x[k] > best[k] || x[k] != x[k];
                best[k] = larger ? x[k] : best[k];
                place[k] = larger ? here : place[k];
            }
        });
        Pack<uint8_t, E> places;
#pragma unroll
        for (int k = 0; k < E; ++k) {
            bool cut = run.relu && !(best[k] > 0) && best[k] == best[k];
            best[k] = cut ? 0 : best[k];
            places.put(k, (uint8_t)(cut ? POOL_CUT : place[k]));
        }
        int64_t at = line + q * run.channels + c;
        write<E, PACKS>((T *)run.y + at, best);
        put<E, PACKS>(run.place + at, places);
    });
}

template <class T, int E, bool PACKS> static __global__ void average_kernel(PoolRun run)
{
    unsigned n = blockIdx.x / run.p, p = blockIdx.x % run.p;
    const T *image = (const T *)run.x + (int64_t)n * run.h * run.w * run.channels;
    int64_t line = (int64_t)blockIdx.x * run.q * run.channels;
    each_of_line<E>(run.q, run.channels, [&](int q, int64_t c) {
        Window v = window_at(run, (int)p, q);
        float sum[E] = {};
        each_pixel<E, PACKS>(run, v, image + c, [&](int, int, const Pack<T, E> &x) {
#pragma unroll
            for (int k = 0; k < E; ++k) sum[k] += x[k];
        });
        int count = (v.high - v.low) * (v.right - v.first);
        for (int k = 0; k < E; ++k) {
            float mean = count > 0 ? sum[k] / count : 0;
            sum[k] = run.relu && !(mean > 0) ? 0 : mean;
        }
        write<E, PACKS>((T *)run.y + line + q * run.channels + c, sum);
    });
}

/* Gradient of x: each pixel adds up its part of every window that covers it, in order. */
template <class T, int E, bool PACKS, bool MAX> static __global__ void grad_kernel(PoolRun run)
{
    unsigned n = blockIdx.x / run.h, row = blockIdx.x % run.h;
    int h = (int)row + run.pad[0],
        p_low = h < run.kernel[0] ? 0 : (h - run.kernel[0]) / run.stride[0] + 1,
        p_high = h / run.stride[0];
    each_of_line<E>(run.w, run.channels, [&](int column, int64_t c) {
        int w = column + run.pad[1],
            q_low = w < run.kernel[1] ? 0 : (w - run.kernel[1]) / run.stride[1] + 1,
            q_high = w / run.stride[1];
        float sum[E] = {};
        for (int p = p_low; p <= p_high && p < run.p; ++p)
            for (int q = q_low; q <= q_high && q < run.q; ++q) {
                int64_t at = (((int64_t)n * run.p + p) * run.q + q) * run.channels + c;
                Pack<T, E> dy = read<E, PACKS>((const T *)run.dy + at);
                if (MAX) {
                    Pack<uint8_t, E> place = read<E, PACKS>(run.place + at);
                    int here = (h - p * run.stride[0]) * run.kernel[1] + w - q * run.stride[1];
                    for (int k = 0; k < E; ++k) sum[k] += place.at(k) == here ? dy[k] : 0;
                } else {
                    Window v = window_at(run, p, q);
                    int count = (v.high - v.low) * (v.right - v.first);
                    for (int k = 0; k < E; ++k) sum[k] += dy[k] / count;
                }
            }
        int64_t at = ((int64_t)blockIdx.x * run.w + column) * run.channels + c;
        write<E, PACKS>((T *)run.dx + at, sum);
    });
}

cudaError_t launch_pool(cudaStream_t stream, PoolRun run)
{
    int wide = cuda_pack(run.type, run.channels);
    bool packs = in_packs(run.x, run.y, run.place);
    unsigned lines = (unsigned)(run.samples * run.p);
#define MAXIMA(T, N, P) max_kernel<T, N, P><<<lines, THREADS, 0, stream>>>(run)
#define MEANS(T, N, P)  average_kernel<T, N, P><<<lines, THREADS, 0, stream>>>(run)
#define LAUNCH(T)                                                                                  \
    if (run.place) {                                                                               \
        WIDE_OR_ONE(MAXIMA, T);                                                                    \
    } else {                                                                                       \
        WIDE_OR_ONE(MEANS, T);                                                                     \
    }
    if (lines > 0) TYPE_SWITCH(run.type, LAUNCH);
#undef LAUNCH
    return cudaGetLastError();
}

cudaError_t launch_pool_backward(cudaStream_t stream, PoolRun run)
{
    int wide = cuda_pack(run.type, run.channels);
    bool packs = in_packs(run.dx, run.dy, run.place);
    unsigned lines = (unsigned)(run.samples * run.h);
#define OF_MAXIMA(T, N, P) grad_kernel<T, N, P, true><<<lines, THREADS, 0, stream>>>(run)
#define OF_MEANS(T, N, P)  grad_kernel<T, N, P, false><<<lines, THREADS, 0, stream>>>(run)
#define LAUNCH(T)                                                                                  \
    if (run.place) {                                                                               \
        WIDE_OR_ONE(OF_MAXIMA, T);                                                                 \
    } else {                                                                                       \
        WIDE_OR_ONE(OF_MEANS, T);                                                                  \
    }
    if (lines > 0) TYPE_SWITCH(run.type, LAUNCH);
#undef LAUNCH
    return cudaGetLastError();
}
