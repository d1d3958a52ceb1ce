/* Layer norm and rms_norm over the last dimension. The threads with the same threadIdx.y compute a
 * row, and a block has one row or more. A pack is a number of neighbouring elements (E) that a
 * thread reads with one access (passes/elem.cuh). If PACKS_KEPT is above 0, each thread keeps its
 * PACKS_KEPT packs of a row in registers. PACKS_KEPT is 0 for wide or unaligned rows and in
 * queue_data; each use then reads the packs again, from the cache. The gradients of the parameters
 * are sums over rows. */
#include "../passes/columns.cuh"

/* largest number of packs that a thread of backward_kernel keeps of each matrix; the thread also
 * keeps the column sums for as many packs */
enum { BACKWARD_PACKS_MAX = 3 };

/* Calls f(k, c) for this thread's packs of a row. c: the pack's first column; k: index of the pack
 * among the packs that are kept, or 0 if PACKS_KEPT is 0. */
template <int E, int PACKS_KEPT, class F>
static __device__ __forceinline__ void each_pack(int width, F f)
{
    int c = threadIdx.x * E, step = blockDim.x * E;
    if (PACKS_KEPT > 0) {
#pragma unroll
        for (int k = 0; k < PACKS_KEPT; ++k, c += step)
            if (c < width) f(k, c);
    } else {
        for (; c < width; c += step) f(0, c);
    }
}

/* This thread's packs of a row of `matrix`. If `matrix` is NULL there are no packs, and at() must
 * not be called. */
template <class T, int E, bool ALIGNED, int PACKS_KEPT> struct Row {
    const T *from;
    Pack<T, E> kept[PACKS_KEPT > 0 ? PACKS_KEPT : 1] = {};
    __device__ __forceinline__ Row(const void *matrix, int64_t row, int width)
        : from(matrix ? (const T *)matrix + row * width : nullptr)
    {
        if (PACKS_KEPT > 0 && from)
            each_pack<E, PACKS_KEPT>(width, [&](int k, int c) { keep(k, c); });
    }
    __device__ __forceinline__ void keep(int k, int c)
    {
        kept[k] = read_pack<E, ALIGNED>(from + c);
    }
    __device__ __forceinline__ Pack<T, E> at(int k, int c) const
    {
        return PACKS_KEPT > 0 ? kept[k] : read_pack<E, ALIGNED>(from + c);
    }
};

template <int E, bool ALIGNED, int PACKS_KEPT, class T>
static __device__ __forceinline__ void zero_row(T *to, int width)
{
    each_pack<E, PACKS_KEPT>(width, [&](int, int c) { write_zeros<E, ALIGNED>(to + c); });
}

template <class T, int E, bool ALIGNED, int PACKS_KEPT>
static __global__ void forward_kernel(LayerNormRun run)
{
    int64_t row = (int64_t)blockIdx.x * blockDim.y + threadIdx.y;
    int width = (int)run.width;
    if (row >= run.rows) return;
    T *y = (T *)run.y + row * width;
    float mean = 0, inverse = 0;
    if (row < run.real) {
        Row<T, E, ALIGNED, PACKS_KEPT> x(run.x, row, width);
        float sum = 0, squares = 0;
        if (!run.rms) {
            each_pack<E, PACKS_KEPT>(width, [&](int k, int c) {
                Pack<T, E> v = x.at(k, c);
                for (int e = 0; e < E; ++e) sum += v[e];
            });
            mean = warp_sum(sum) / width;
        }
        each_pack<E, PACKS_KEPT>(width, [&](int k, int c) {
            Pack<T, E> v = x.at(k, c);
            for (int e = 0; e < E; ++e) squares += (v[e] - mean) * (v[e] - mean);
        });
        inverse = 1 / sqrtf(warp_sum(squares) / width + run.eps);
        each_pack<E, PACKS_KEPT>(width, [&](int k, int c) {
            Pack<T, E> v = x.at(k, c);
            float scale[E], shift[E] = {}, out[E];
            read_floats<E, ALIGNED>(scale, run.scale + c);
            if (!run.rms) read_floats<E, ALIGNED>(shift, run.shift + c);
            for (int e = 0; e < E; ++e) out[e] = (v[e] - mean) * inverse * scale[e] + shift[e];
            write_floats<E, ALIGNED>(y + c, out);
        });
    } else {
        zero_row<E, ALIGNED, PACKS_KEPT>(y, width);
    }
    if (threadIdx.x == 0) {
        run.saved[2 * row] = mean;
        run.saved[2 * row + 1] = inverse;
    }
}

/* Sets *a and *b to their sums over the threads of a row. All threads of a block call it. buffer:
 * alternately 0 and 1, because some threads may still read the sums of the previous call. */
static __device__ __forceinline__ void row_sums(float *a, float *b, int buffer)
{
    __shared__ float2 warp_sums[2][WARPS];
    unsigned warps = blockDim.x / WARP, first = threadIdx.y * warps;
    *a = warp_sum(*a);
    *b = warp_sum(*b);
    if (warps == 1) return;
    if (threadIdx.x % WARP == 0)
        warp_sums[buffer][first + threadIdx.x / WARP] = make_float2(*a, *b);
    __syncthreads();
    *a = *b = 0;
    for (unsigned w = first; w < first + warps; ++w) {
        *a += warp_sums[buffer][w].x;
        *b += warp_sums[buffer][w].y;
    }
}

/* Numbers of one row for its backward pass, where n = (x - mean) * inverse and g = dy * scale.
 * mean: mean of x; inverse: 1 / standard deviation of x; g_mean: mean of g, 0 in rms_norm; gn_mean:
 * mean of g * n. While they are computed, g_mean and gn_mean are sums. */
struct RowGradient {
    float mean, inverse, g_mean, gn_mean;
};

/* Computes dx = inverse * (g - mean(g) - n * mean(g * n)). With run.add, adds the result to the
 * values in dx's memory. Each block computes one part of the rows. SUMS: the block also computes
 * the sums of its part for dscale and dshift. */
template <class T, int E, bool ALIGNED, int PACKS_KEPT, bool SUMS>
static __global__ void __launch_bounds__(THREADS, 2) backward_kernel(LayerNormRun run)
{
    enum { SUM_PACKS = PACKS_KEPT > 0 ? PACKS_KEPT : 1 };
    int64_t first = run.rows * blockIdx.x / gridDim.x,
            last = run.rows * (blockIdx.x + 1) / gridDim.x;
    int width = (int)run.width;
    float sum[SUM_PACKS][2][E] = {};
    int buffer = 0;
    for (int64_t begin = first; begin < last; begin += blockDim.y, buffer ^= 1) {
        int64_t row = begin + threadIdx.y;
        bool real = row < last && row < run.real;
        T *to = (T *)run.dx + row * width;
        Row<T, E, ALIGNED, PACKS_KEPT> x(real ? run.x : nullptr, row, width),
            dy(real ? run.dy : nullptr, row, width),
            before(real && run.add ? run.dx : nullptr, row, width);
        RowGradient r = {};
        if (real) {
            r.mean = run.saved[2 * row];
            r.inverse = run.saved[2 * row + 1];
            each_pack<E, PACKS_KEPT>(width, [&](int k, int c) {
                Pack<T, E> v = x.at(k, c), d = dy.at(k, c);
                float scale[E];
                read_floats<E, ALIGNED>(scale, run.scale + c);
#pragma unroll
                for (int e = 0; e < E; ++e) {
                    float n = (v[e] - r.mean) * r.inverse;
                    r.g_mean += d[e] * scale[e];
                    r.gn_mean += d[e] * scale[e] * n;
                    if (SUMS) sum[k][0][e] += d[e] * n;
                    if (SUMS) sum[k][1][e] += d[e];
                }
            });
        }
        row_sums(&r.g_mean, &r.gn_mean, buffer);
        r.g_mean = run.rms ? 0 : r.g_mean / width;
        r.gn_mean /= width;
        if (real)
            each_pack<E, PACKS_KEPT>(width, [&](int k, int c) {
                Pack<T, E> v = x.at(k, c), d = dy.at(k, c), b;
                float scale[E], out[E];
                if (run.add) b = before.at(k, c);
                read_floats<E, ALIGNED>(scale, run.scale + c);
#pragma unroll
                for (int e = 0; e < E; ++e) {
                    float n = (v[e] - r.mean) * r.inverse;
                    out[e] = r.inverse * (d[e] * scale[e] - r.g_mean - n * r.gn_mean);
                    if (run.add) out[e] += b[e];
                }
                write_floats<E, ALIGNED>(to + c, out);
            });
        else if (row < last && !run.add)
            zero_row<E, ALIGNED, PACKS_KEPT>(to, width);
    }
    if (SUMS)
#pragma unroll
        for (int k = 0; k < PACKS_KEPT; ++k)
            store_part<float, 2, E>(run.partial, blockIdx.x, k, width, sum[k]);
}

template <class T, int E> struct RowPacks {
    Pack<T, E> x, dy;
    float mean, inverse;
};

template <class T, int E, bool ALIGNED>
static __global__ void __launch_bounds__(THREADS, 2) parts_kernel(LayerNormRun run)
{
    int64_t c = first_column<E>(), width = run.width;
    sum_part<float, 2, E, 2>(
        run.partial, run.real, width,
        [&](int64_t row) {
            RowPacks<T, E> v;
            v.x = read_pack<E, ALIGNED>((const T *)run.x + row * width + c);
            v.dy = read_pack<E, ALIGNED>((const T *)run.dy + row * width + c);
            v.mean = run.saved[2 * row];
            v.inverse = run.saved[2 * row + 1];
            return v;
        },
        [&](int64_t, const RowPacks<T, E> &v, float(*sum)[E]) {
#pragma unroll
            for (int k = 0; k < E; ++k) {
                sum[0][k] += v.dy[k] * (v.x[k] - v.mean) * v.inverse;
                sum[1][k] += v.dy[k];
            }
        });
}

static __global__ void join_kernel(LayerNormRun run, int64_t parts)
{
    int64_t c = (int64_t)blockIdx.x * WARP + threadIdx.x;
    float sum[2];
    if (!join_parts<float, 2>(run.partial, parts, run.width, c, sum)) return;
    run.dscale[c] = sum[0];
    if (!run.rms) run.dshift[c] = sum[1];
}

static bool is_aligned(const LayerNormRun &run)
{
    return aligned_to_packs(run.x, run.dy, run.y, run.dx) && aligned_to_packs(run.scale, run.shift);
}

/* Returns the shape of a block: threads_per_row threads for each row, and as many rows as fit into
 * THREADS threads. */
static dim3 row_threads(int64_t threads_per_row)
{
    return dim3((unsigned)threads_per_row, (unsigned)(THREADS / threads_per_row));
}

/* Runs KERNEL(T, elements of a pack, ALIGNED, PACKS_KEPT), for kernels in which one warp computes a
 * row. */
#define PACKS_KEPT_SWITCH(T)                                                                       \
    int64_t lane_packs = blocks_for(run.width, WARP * PACK(T));                                    \
    if (pack_size == 1)                                                                            \
        KERNEL(T, 1, false, 0);                                                                    \
    else if (!aligned)                                                                             \
        KERNEL(T, PACK(T), false, 0);                                                              \
    else if (lane_packs == 1)                                                                      \
        KERNEL(T, PACK(T), true, 1);                                                               \
    else if (lane_packs == 2)                                                                      \
        KERNEL(T, PACK(T), true, 2);                                                               \
    else if (lane_packs == 3)                                                                      \
        KERNEL(T, PACK(T), true, 3);                                                               \
    else if (lane_packs == 4)                                                                      \
        KERNEL(T, PACK(T), true, 4);                                                               \
    else if (lane_packs <= 8)                                                                      \
        KERNEL(T, PACK(T), true, 8);                                                               \
    else                                                                                           \
        KERNEL(T, PACK(T), true, 0)
/* the launch configuration for kernels in which one warp computes a row */
#define WARP_PER_ROW_LAUNCH blocks_for(run.rows, WARPS), row_threads(WARP), 0, stream

cudaError_t launch_layer_norm(cudaStream_t stream, LayerNormRun run)
{
    int pack_size = cuda_pack_size(run.type, run.width);
    bool aligned = is_aligned(run);
#define KERNEL(T, N, ALIGNED, PACKS_KEPT)                                                          \
    forward_kernel<T, N, ALIGNED, PACKS_KEPT><<<WARP_PER_ROW_LAUNCH>>>(run)
    if (run.rows > 0) TYPE_SWITCH(run.type, PACKS_KEPT_SWITCH);
#undef KERNEL
    return cudaGetLastError();
}

/* Queues the sums for the gradients of the parameters, in parts, without dx. */
static void queue_parts(cudaStream_t stream, const LayerNormRun &run, int pack_size, bool aligned)
{
    LaunchShape on = grid_over_parts(run.width, pack_size, cuda_row_parts(run.rows));
#define KERNEL(T, N, ALIGNED) parts_kernel<T, N, ALIGNED><<<on.grid, on.threads, 0, stream>>>(run)
#define LAUNCH(T)             PACK_SIZE_SWITCH(KERNEL, T)
    TYPE_SWITCH(run.type, LAUNCH);
#undef LAUNCH
#undef KERNEL
}

/* Returns the number of threads that together keep a row in registers, or 0 if the row is too
 * wide. */
static int64_t threads_per_row_in_registers(const LayerNormRun &run, int pack_size)
{
    int64_t threads_per_row = WARP;
    while (threads_per_row < THREADS &&
           run.width > threads_per_row * pack_size * BACKWARD_PACKS_MAX)
        threads_per_row *= 2;
    return run.width > threads_per_row * pack_size * BACKWARD_PACKS_MAX ? 0 : threads_per_row;
}

/* Queues one pass over x and dy, which computes dx and the parts of the sums for the gradients of
 * the parameters. */
static void queue_in_registers(cudaStream_t stream, const LayerNormRun &run,
                               int64_t threads_per_row)
{
    unsigned parts = (unsigned)cuda_row_parts(run.rows);
    dim3 threads = row_threads(threads_per_row);
#define KERNEL(T, N, PACKS_KEPT)                                                                   \
    backward_kernel<T, N, true, PACKS_KEPT, true><<<parts, threads, 0, stream>>>(run)
#define LAUNCH(T)                                                                                  \
    int64_t kept = blocks_for(run.width, threads_per_row * PACK(T));                               \
    if (kept == 1)                                                                                 \
        KERNEL(T, PACK(T), 1);                                                                     \
    else if (kept == 2)                                                                            \
        KERNEL(T, PACK(T), 2);                                                                     \
    else                                                                                           \
        KERNEL(T, PACK(T), 3)
    TYPE_SWITCH(run.type, LAUNCH);
#undef LAUNCH
#undef KERNEL
}

static void queue_data(cudaStream_t stream, const LayerNormRun &run, int pack_size, bool aligned)
{
#define KERNEL(T, N, ALIGNED) backward_kernel<T, N, ALIGNED, 0, false><<<WARP_PER_ROW_LAUNCH>>>(run)
#define LAUNCH(T)             PACK_SIZE_SWITCH(KERNEL, T)
    if (run.rows > 0) TYPE_SWITCH(run.type, LAUNCH);
#undef LAUNCH
#undef KERNEL
}

cudaError_t launch_layer_norm_backward(cudaStream_t stream, LayerNormRun run)
{
    int pack_size = cuda_pack_size(run.type, run.width);
    bool aligned = is_aligned(run);
    int64_t threads_per_row =
        aligned && pack_size > 1 && run.dx ? threads_per_row_in_registers(run, pack_size) : 0;
    if (threads_per_row > 0)
        queue_in_registers(stream, run, threads_per_row);
    else
        queue_parts(stream, run, pack_size, aligned);
    join_kernel<<<blocks_for(run.width, WARP), join_threads(), 0, stream>>>(
        run, cuda_row_parts(run.rows));
    if (threads_per_row == 0 && run.dx) queue_data(stream, run, pack_size, aligned);
    return cudaGetLastError();
}
