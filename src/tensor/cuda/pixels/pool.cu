/* Pooling, channels last. Each block writes one row of an image, which is called a line here; each
 * thread writes E channels of a pixel at a time. */
#include "../passes/elem.cuh"

/* number of packs in a row of a window that a thread loads at a time */
enum { BATCH = 3 };

struct Window {
    /* row and column of the upper left corner, which may be outside the image */
    int top, left;
    /* the part inside the image: rows row_begin to row_end - 1, and columns column_begin to
     * column_end - 1 */
    int row_begin, row_end, column_begin, column_end;
};

static __device__ __forceinline__ Window window_at(const PoolRun &run, int p, int q)
{
    Window v;
    v.top = p * run.stride[0] - run.pad[0];
    v.left = q * run.stride[1] - run.pad[1];
    v.row_begin = v.top < 0 ? 0 : v.top;
    v.column_begin = v.left < 0 ? 0 : v.left;
    v.row_end = v.top + run.kernel[0] < run.h ? v.top + run.kernel[0] : run.h;
    v.column_end = v.left + run.kernel[1] < run.w ? v.left + run.kernel[1] : run.w;
    return v;
}

/* Calls f(column, channel) for each pack that this thread has in the block's line. column: column
 * of the pack's pixel; channel: first channel of the pack. */
template <int E, class F>
static __device__ __forceinline__ void for_line(int columns, int64_t channels, F f)
{
    unsigned packs = (unsigned)(channels / E), all = (unsigned)columns * packs;
    for (unsigned i = threadIdx.x; i < all; i += THREADS)
        f((int)(i / packs), (int64_t)(i % packs) * E);
}

/* Calls f(h, w, pack) for the pixels of the window that are inside the image, row by row. */
template <int E, bool ALIGNED, class T, class F>
static __device__ __forceinline__ void for_window(const PoolRun &run, const Window &v,
                                                  const T *image, F f)
{
    for (int h = v.row_begin; h < v.row_end; ++h) {
        const T *line = image + (int64_t)h * run.w * run.channels;
        in_batches<BATCH>(
            v.column_begin, v.column_end, 1,
            [&](int64_t w) { return read_pack<E, ALIGNED>(line + w * run.channels); },
            [&](int64_t w, const Pack<T, E> &x) { f(h, (int)w, x); });
    }
}

template <class T, int E, bool ALIGNED> static __global__ void max_kernel(PoolRun run)
{
    unsigned n = blockIdx.x / run.p, p = blockIdx.x % run.p;
    const T *image = (const T *)run.x + (int64_t)n * run.h * run.w * run.channels;
    int64_t line = (int64_t)blockIdx.x * run.q * run.channels;
    for_line<E>(run.q, run.channels, [&](int q, int64_t c) {
        Window v = window_at(run, (int)p, q);
        float best[E];
        int index[E];
        for (int k = 0; k < E; ++k) {
            best[k] = -INFINITY;
            /* the first pixel, which is kept if all pixels are -infinity */
            index[k] = (v.row_begin - v.top) * run.kernel[1] + v.column_begin - v.left;
        }
        for_window<E, ALIGNED>(run, v, image + c, [&](int h, int w, const Pack<T, E> &x) {
            int here = (h - v.top) * run.kernel[1] + w - v.left;
#pragma unroll
            for (int k = 0; k < E; ++k) {
                /* a NaN replaces any value before it */
                bool larger = x[k] > best[k] || x[k] != x[k];
                best[k] = larger ? x[k] : best[k];
                index[k] = larger ? here : index[k];
            }
        });
        Pack<uint8_t, E> indices;
#pragma unroll
        for (int k = 0; k < E; ++k) {
            bool cut = run.relu && !(best[k] > 0) && best[k] == best[k];
            best[k] = cut ? 0 : best[k];
            indices.put(k, (uint8_t)(cut ? POOL_NO_POSITION : index[k]));
        }
        int64_t at = line + q * run.channels + c;
        write_floats<E, ALIGNED>((T *)run.y + at, best);
        write_pack<E, ALIGNED>(run.max_index + at, indices);
    });
}

template <class T, int E, bool ALIGNED> static __global__ void average_kernel(PoolRun run)
{
    unsigned n = blockIdx.x / run.p, p = blockIdx.x % run.p;
    const T *image = (const T *)run.x + (int64_t)n * run.h * run.w * run.channels;
    int64_t line = (int64_t)blockIdx.x * run.q * run.channels;
    for_line<E>(run.q, run.channels, [&](int q, int64_t c) {
        Window v = window_at(run, (int)p, q);
        float sum[E] = {};
        for_window<E, ALIGNED>(run, v, image + c, [&](int, int, const Pack<T, E> &x) {
#pragma unroll
            for (int k = 0; k < E; ++k) sum[k] += x[k];
        });
        int count = (v.row_end - v.row_begin) * (v.column_end - v.column_begin);
        for (int k = 0; k < E; ++k) {
            float mean = count > 0 ? sum[k] / count : 0;
            sum[k] = run.relu && !(mean > 0) ? 0 : mean;
        }
        write_floats<E, ALIGNED>((T *)run.y + line + q * run.channels + c, sum);
    });
}

/* Computes dx. For each window that covers a pixel, a thread adds the pixel's share of the window's
 * gradient. The windows are processed row by row. */
template <class T, int E, bool ALIGNED, bool MAX> static __global__ void grad_kernel(PoolRun run)
{
    unsigned n = blockIdx.x / run.h, row = blockIdx.x % run.h;
    int h = (int)row + run.pad[0],
        p_low = h < run.kernel[0] ? 0 : (h - run.kernel[0]) / run.stride[0] + 1,
        p_high = h / run.stride[0];
    for_line<E>(run.w, run.channels, [&](int column, int64_t c) {
        int w = column + run.pad[1],
            q_low = w < run.kernel[1] ? 0 : (w - run.kernel[1]) / run.stride[1] + 1,
            q_high = w / run.stride[1];
        float sum[E] = {};
        for (int p = p_low; p <= p_high && p < run.p; ++p)
            for (int q = q_low; q <= q_high && q < run.q; ++q) {
                int64_t at = (((int64_t)n * run.p + p) * run.q + q) * run.channels + c;
                Pack<T, E> dy = read_pack<E, ALIGNED>((const T *)run.dy + at);
                if (MAX) {
                    Pack<uint8_t, E> index = read_pack<E, ALIGNED>(run.max_index + at);
                    int here = (h - p * run.stride[0]) * run.kernel[1] + w - q * run.stride[1];
                    for (int k = 0; k < E; ++k) sum[k] += index.at(k) == here ? dy[k] : 0;
                } else {
                    Window v = window_at(run, p, q);
                    int count = (v.row_end - v.row_begin) * (v.column_end - v.column_begin);
                    for (int k = 0; k < E; ++k) sum[k] += dy[k] / count;
                }
            }
        int64_t at = ((int64_t)blockIdx.x * run.w + column) * run.channels + c;
        write_floats<E, ALIGNED>((T *)run.dx + at, sum);
    });
}

cudaError_t launch_pool(cudaStream_t stream, PoolRun run)
{
    int pack_size = cuda_pack_size(run.type, run.channels);
    bool aligned = aligned_to_packs(run.x, run.y, run.max_index);
    unsigned lines = (unsigned)(run.samples * run.p);
#define MAXIMA(T, N, P) max_kernel<T, N, P><<<lines, THREADS, 0, stream>>>(run)
#define MEANS(T, N, P)  average_kernel<T, N, P><<<lines, THREADS, 0, stream>>>(run)
#define LAUNCH(T)                                                                                  \
    if (run.max_index) {                                                                           \
        PACK_SIZE_SWITCH(MAXIMA, T);                                                               \
    } else {                                                                                       \
        PACK_SIZE_SWITCH(MEANS, T);                                                                \
    }
    if (lines > 0) TYPE_SWITCH(run.type, LAUNCH);
#undef LAUNCH
    return cudaGetLastError();
}

cudaError_t launch_pool_backward(cudaStream_t stream, PoolRun run)
{
    int pack_size = cuda_pack_size(run.type, run.channels);
    bool aligned = aligned_to_packs(run.dx, run.dy, run.max_index);
    unsigned lines = (unsigned)(run.samples * run.h);
#define OF_MAXIMA(T, N, P) grad_kernel<T, N, P, true><<<lines, THREADS, 0, stream>>>(run)
#define OF_MEANS(T, N, P)  grad_kernel<T, N, P, false><<<lines, THREADS, 0, stream>>>(run)
#define LAUNCH(T)                                                                                  \
    if (run.max_index) {                                                                           \
        PACK_SIZE_SWITCH(OF_MAXIMA, T);                                                            \
    } else {                                                                                       \
        PACK_SIZE_SWITCH(OF_MEANS, T);                                                             \
    }
    if (lines > 0) TYPE_SWITCH(run.type, LAUNCH);
#undef LAUNCH
    return cudaGetLastError();
}
