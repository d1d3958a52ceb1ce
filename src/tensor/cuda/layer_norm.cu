/* Layer norm over the last dimension. A row belongs to threads side by side, and a block has
 * several rows. Threads keep their part of a row in registers, PACKS_KEPT packs each, where it
 * fits; with PACKS_KEPT 0 they read it again, from the cache. The parameters' gradients are sums
 * over rows. */
#include "columns.cuh"

/* most packs of a row that a thread of the backward kernel holds, since it also holds their sums */
enum { PACKS_KEPT_MAX = 3 };

/* Calls f(k, c) for this thread's packs of a row: the k-th begins at column c. */
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

/* This thread's part of a row. A NULL matrix makes an empty one. */
template <class T, int E, bool PACKS, int PACKS_KEPT> struct Row {
    const T *from;
    Pack<T, E> kept[PACKS_KEPT > 0 ? PACKS_KEPT : 1] = {};
    __device__ __forceinline__ Row(const void *matrix, int64_t row, int width)
        : from(matrix ? (const T *)matrix + row * width : nullptr)
    {
        if (PACKS_KEPT > 0 && from)
            each_pack<E, PACKS_KEPT>(width, [&](int k, int c) { keep(k, c); });
    }
    __device__ __forceinline__ void keep(int k, int c) { kept[k] = read<E, PACKS>(from + c); }
    __device__ __forceinline__ Pack<T, E> at(int k, int c) const
    {
        return PACKS_KEPT > 0 ? kept[k] : read<E, PACKS>(from + c);
    }
};

template <int E, bool PACKS, int PACKS_KEPT, class T>
static __device__ __forceinline__ void zero_row(T *to, int width)
{
    each_pack<E, PACKS_KEPT>(width, [&](int, int c) { write_zeros<E, PACKS>(to + c); });
}

template <class T, int E, bool PACKS, int PACKS_KEPT>
static __global__ void forward_kernel(LayerNormRun run)
{
    int64_t row = (int64_t)blockIdx.x * blockDim.y + threadIdx.y;
    int width = (int)run.width;
    if (row >= run.rows) return;
    T *y = (T *)run.y + row * width;
    float mean = 0, inverse = 0;
    if (row < run.real) {
        Row<T, E, PACKS, PACKS_KEPT> x(run.x, row, width);
        float sum = 0, squares = 0;
        each_pack<E, PACKS_KEPT>(width, [&](int k, int c) {
            Pack<T, E> v = x.at(k, c);
            for (int e = 0; e < E; ++e) sum += v[e];
        });
        mean = warp_sum(sum) / width;
        each_pack<E, PACKS_KEPT>(width, [&](int k, int c) {
            Pack<T, E> v = x.at(k, c);
            for (int e = 0; e < E; ++e) squares += (v[e] - mean) * (v[e] - mean);
        });
        inverse = 1 / sqrtf(warp_sum(squares) / width + run.eps);
        each_pack<E, PACKS_KEPT>(width, [&](int k, int c) {
            Pack<T, E> v = x.at(k, c);
            float scale[E], shift[E], out[E];
            read_floats<E, PACKS>(scale, run.scale + c);
            read_floats<E, PACKS>(shift, run.shift + c);
            for (int e = 0; e < E; ++e) out[e] = (v[e] - mean) * inverse * scale[e] + shift[e];
            write<E, PACKS>(y + c, out);
        });
    } else {
        zero_row<E, PACKS, PACKS_KEPT>(y, width);
    }
    if (threadIdx.x == 0) {
        run.saved[2 * row] = mean;
        run.saved[2 * row + 1] = inverse;
    }
}

/* Adds a and b over the threads of a row; each of them gets both sums. All threads of a block call
 * it. turn: 0 and 1 alternately, since some threads may still read the sums of the call before. */
static __device__ __forceinline__ void row_sums(float *a, float *b, int turn)
{
    __shared__ float2 of[2][WARPS];
    unsigned warps = blockDim.x / WARP, first = threadIdx.y * warps;
    *a = warp_sum(*a);
    *b = warp_sum(*b);
    if (warps == 1) return;
    if (threadIdx.x % WARP == 0) of[turn][first + threadIdx.x / WARP] = make_float2(*a, *b);
    __syncthreads();
    *a = *b = 0;
    for (unsigned w = first; w < first + warps; ++w) {
        *a += of[turn][w].x;
        *b += of[turn][w].y;
    }
}

/* Numbers of one row for its backward pass. With n = (x - mean) inverse and g = dy scale: */
struct RowGradient {
    /* mean of x, inverse deviation, mean of g, mean of g n */
    float mean, inverse, g, gn;
};

/* dx = inverse (g - mean(g) - n mean(g n)) for one part of the rows; with SUMS also that part's
 * sums for dscale and dshift. */
template <class T, int E, bool PACKS, int PACKS_KEPT, bool SUMS>
static __global__ void __launch_bounds__(THREADS, 2) backward_kernel(LayerNormRun run)
{
    enum { SUM_PACKS = PACKS_KEPT > 0 ? PACKS_KEPT : 1 };
    int64_t first = run.rows * blockIdx.x / gridDim.x,
            last = run.rows * (blockIdx.x + 1) / gridDim.x;
    int width = (int)run.width;
    float sum[SUM_PACKS][2][E] = {};
    int turn = 0;
    for (int64_t begin = first; begin < last; begin += blockDim.y, turn ^= 1) {
        int64_t row = begin + threadIdx.y;
        bool real = row < last && row < run.real;
        T *to = (T *)run.dx + row * width;
        Row<T, E, PACKS, PACKS_KEPT> x(real ? run.x : nullptr, row, width),
            dy(real ? run.dy : nullptr, row, width),
            before(real && run.add ? run.dx : nullptr, row, width);
        RowGradient r = {};
        if (real) {
            r.mean = run.saved[2 * row];
            r.inverse = run.saved[2 * row + 1];
            each_pack<E, PACKS_KEPT>(width, [&](int k, int c) {
                Pack<T, E> v = x.at(k, c), d = dy.at(k, c);
                float scale[E];
                read_floats<E, PACKS>(scale, run.scale + c);
#pragma unroll
                for (int e = 0; e < E; ++e) {
                    float n = (v[e] - r.mean) * r.inverse;
                    r.g += d[e] * scale[e];
                    r.gn += d[e] * scale[e] * n;
                    if (SUMS) sum[k][0][e] += d[e] * n;
                    if (SUMS) sum[k][1][e] += d[e];
                }
            });
        }
        row_sums(&r.g, &r.gn, turn);
        r.g /= width;
        r.gn /= width;
        if (real)
            each_pack<E, PACKS_KEPT>(width, [&](int k, int c) {
                Pack<T, E> v = x.at(k, c), d = dy.at(k, c), b;
                float scale[E], out[E];
                if (run.add) b = before.at(k, c);
                read_floats<E, PACKS>(scale, run.scale + c);
#pragma unroll
                for (int e = 0; e < E; ++e) {
                    float n = (v[e] - r.mean) * r.inverse;
                    out[e] = r.inverse * (d[e] * scale[e] - r.g - n * r.gn);
                    if (run.add) out[e] += b[e];
                }
                write<E, PACKS>(to + c, out);
            });
        else if (row < last && !run.add)
            zero_row<E, PACKS, PACKS_KEPT>(to, width);
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

template <class T, int E, bool PACKS>
static __global__ void __launch_bounds__(THREADS, 2) parts_kernel(LayerNormRun run)
{
    int64_t c = first_column<E>(), width = run.width;
    sum_part<float, 2, E, 2>(
        run.partial, run.real, width,
        [&](int64_t row) {
            RowPacks<T, E> v;
            v.x = read<E, PACKS>((const T *)run.x + row * width + c);
            v.dy = read<E, PACKS>((const T *)run.dy + row * width + c);
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
    run.dshift[c] = sum[1];
}

static bool rows_in_packs(const LayerNormRun &run)
{
    return in_packs(run.x, run.dy, run.y, run.dx) && in_packs(run.scale, run.shift);
}

/* Shape of a block: `across` threads side by side for a row, and as many rows as fit. */
static dim3 row_threads(int64_t across)
{
    return dim3((unsigned)across, (unsigned)(THREADS / across));
}

/* Runs KERNEL(T, elements of a pack, PACKS, packs that a lane holds). */
#define PACKS_KEPT_SWITCH(T)                                                                       \
    int64_t lane_packs = blocks_for(run.width, WARP * PACK(T));                                    \
    if (wide == 1)                                                                                 \
        KERNEL(T, 1, false, 0);                                                                    \
    else if (!packs)                                                                               \
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
#define ROWS blocks_for(run.rows, WARPS), row_threads(WARP), 0, stream

cudaError_t launch_layer_norm(cudaStream_t stream, LayerNormRun run)
{
    int wide = cuda_pack(run.type, run.width);
    bool packs = rows_in_packs(run);
#define KERNEL(T, N, P, PACKS_KEPT) forward_kernel<T, N, P, PACKS_KEPT><<<ROWS>>>(run)
    if (run.rows > 0) TYPE_SWITCH(run.type, PACKS_KEPT_SWITCH);
#undef KERNEL
    return cudaGetLastError();
}

/* Sums the parameters' gradients in parts, without dx. */
static void queue_parts(cudaStream_t stream, const LayerNormRun &run, int wide, bool packs)
{
    Columns on = over_parts(run.width, wide, cuda_row_parts(run.rows));
#define KERNEL(T, N, P) parts_kernel<T, N, P><<<on.grid, on.threads, 0, stream>>>(run)
#define LAUNCH(T)       WIDE_OR_ONE(KERNEL, T)
    TYPE_SWITCH(run.type, LAUNCH);
#undef LAUNCH
#undef KERNEL
}

/* Number of threads that keep a row together; 0: it is too wide. */
static int64_t across_in_registers(const LayerNormRun &run, int wide)
{
    int64_t across = WARP;
    while (across < THREADS && run.width > across * wide * PACKS_KEPT_MAX) across *= 2;
    return run.width > across * wide * PACKS_KEPT_MAX ? 0 : across;
}

/* Computes dx and the parts of the parameters' gradients in one pass over x and dy. */
static void queue_in_registers(cudaStream_t stream, const LayerNormRun &run, int64_t across)
{
    unsigned parts = (unsigned)cuda_row_parts(run.rows);
    dim3 threads = row_threads(across);
#define KERNEL(T, N, PACKS_KEPT)                                                                   \
    backward_kernel<T, N, true, PACKS_KEPT, true><<<parts, threads, 0, stream>>>(run)
#define LAUNCH(T)                                                                                  \
    int64_t kept = blocks_for(run.width, across * PACK(T));                                        \
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

static void queue_data(cudaStream_t stream, const LayerNormRun &run, int wide, bool packs)
{
#define KERNEL(T, N, P) backward_kernel<T, N, P, 0, false><<<ROWS>>>(run)
#define LAUNCH(T)       WIDE_OR_ONE(KERNEL, T)
    if (run.rows > 0) TYPE_SWITCH(run.type, LAUNCH);
#undef LAUNCH
#undef KERNEL
}

cudaError_t launch_layer_norm_backward(cudaStream_t stream, LayerNormRun run)
{
    int wide = cuda_pack(run.type, run.width);
    bool packs = rows_in_packs(run);
    int64_t across = packs && wide > 1 && run.dx ? across_in_registers(run, wide) : 0;
    if (across > 0)
        queue_in_registers(stream, run, across);
    else
        queue_parts(stream, run, wide, packs);
    join_kernel<<<blocks_for(run.width, WARP), join_threads(), 0, stream>>>(
        run, cuda_row_parts(run.rows));
    if (across == 0 && run.dx) queue_data(stream, run, wide, packs);
    return cudaGetLastError();
}
