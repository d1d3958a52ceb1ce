/* Layer norm over the last dimension: a warp a row, which it holds in registers where it fits (HELD packs a lane; 0: it is read
 * again, from the cache). The parameters' gradients are sums over rows. */
#include "columns.cuh"

/* f(k, c): this lane's packs of a row, the k-th at column c. */
template <int E, int HELD, class F>
static __device__ __forceinline__ void each_pack(int64_t width, F f)
{
    int64_t c = threadIdx.x % WARP * E;
    if (HELD > 0) {
#pragma unroll
        for (int k = 0; k < HELD; ++k, c += WARP * E)
            if (c < width) f(k, c);
    } else {
        for (; c < width; c += WARP * E) f(0, c);
    }
}

/* A row, or its lane's part of it. */
template <class T, int E, bool PACKS, int HELD> struct Row {
    const T *from;
    Pack<T, E> held[HELD > 0 ? HELD : 1];
    __device__ __forceinline__ Row(const void *matrix, int64_t row, int64_t width)
        : from((const T *)matrix + row * width)
    {
        if (HELD > 0) each_pack<E, HELD>(width, [&](int k, int64_t c) { hold(k, c); });
    }
    __device__ __forceinline__ void hold(int k, int64_t c) { held[k] = read<E, PACKS>(from + c); }
    __device__ __forceinline__ Pack<T, E> at(int k, int64_t c) const
    {
        return HELD > 0 ? held[k] : read<E, PACKS>(from + c);
    }
};

template <int E, bool PACKS, int HELD, class T>
static __device__ __forceinline__ void zero_row(T *to, int64_t width)
{
    each_pack<E, HELD>(width, [&](int, int64_t c) { write_zeros<E, PACKS>(to + c); });
}

template <class T, int E, bool PACKS, int HELD>
static __global__ void forward_kernel(LayerNormRun run)
{
    int64_t row = warp_row(), width = run.width;
    if (row >= run.rows) return;
    T *y = (T *)run.y + row * width;
    float mean = 0, inverse = 0;
    if (row < run.real) {
        Row<T, E, PACKS, HELD> x(run.x, row, width);
        float sum = 0, squares = 0;
        each_pack<E, HELD>(width, [&](int k, int64_t c) {
            Pack<T, E> v = x.at(k, c);
            for (int e = 0; e < E; ++e) sum += v[e];
        });
        mean = warp_sum(sum) / width;
        each_pack<E, HELD>(width, [&](int k, int64_t c) {
            Pack<T, E> v = x.at(k, c);
            for (int e = 0; e < E; ++e) squares += (v[e] - mean) * (v[e] - mean);
        });
        inverse = 1 / sqrtf(warp_sum(squares) / width + run.eps);
        each_pack<E, HELD>(width, [&](int k, int64_t c) {
            Pack<T, E> v = x.at(k, c);
            float scale[E], shift[E], out[E];
            read_floats<E, PACKS>(scale, run.scale + c);
            read_floats<E, PACKS>(shift, run.shift + c);
            for (int e = 0; e < E; ++e) out[e] = (v[e] - mean) * inverse * scale[e] + shift[e];
            write<E, PACKS>(y + c, out);
        });
    } else {
        zero_row<E, PACKS, HELD>(y, width);
    }
    if (threadIdx.x % WARP == 0) {
        run.saved[2 * row] = mean;
        run.saved[2 * row + 1] = inverse;
    }
}

/* dx = inverse (g - mean(g) - n mean(g n)), g = dy scale, n = (x - mean) inverse */
template <class T, int E, bool PACKS, int HELD> static __global__ void grad_kernel(LayerNormRun run)
{
    int64_t row = warp_row(), width = run.width;
    if (row >= run.rows) return;
    T *dx = (T *)run.dx + row * width;
    if (row >= run.real) {
        zero_row<E, PACKS, HELD>(dx, width);
        return;
    }
    Row<T, E, PACKS, HELD> x(run.x, row, width), dy(run.dy, row, width);
    float mean = run.saved[2 * row], inverse = run.saved[2 * row + 1], sum = 0, dot = 0;
    each_pack<E, HELD>(width, [&](int k, int64_t c) {
        Pack<T, E> v = x.at(k, c), d = dy.at(k, c);
        float scale[E];
        read_floats<E, PACKS>(scale, run.scale + c);
        for (int e = 0; e < E; ++e) {
            sum += d[e] * scale[e];
            dot += d[e] * scale[e] * (v[e] - mean);
        }
    });
    sum = warp_sum(sum) / width;
    dot = warp_sum(dot) * inverse / width;
    each_pack<E, HELD>(width, [&](int k, int64_t c) {
        Pack<T, E> v = x.at(k, c), d = dy.at(k, c);
        float scale[E], out[E];
        read_floats<E, PACKS>(scale, run.scale + c);
        for (int e = 0; e < E; ++e)
            out[e] = inverse * (d[e] * scale[e] - sum - (v[e] - mean) * inverse * dot);
        write<E, PACKS>(dx + c, out);
    });
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

/* Runs KERNEL(T, elements a pack, PACKS, packs a lane holds). */
#define HELD_SWITCH(T)                                                                             \
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
#define ROWS blocks_for(run.rows, WARPS), THREADS, 0, stream

cudaError_t cuda_layer_norm(cudaStream_t stream, LayerNormRun run)
{
    int wide = cuda_pack(run.type, run.width);
    bool packs = rows_in_packs(run);
#define KERNEL(T, N, P, HELD) forward_kernel<T, N, P, HELD><<<ROWS>>>(run)
    if (run.rows > 0) TYPE_SWITCH(run.type, HELD_SWITCH);
#undef KERNEL
    return cudaGetLastError();
}

cudaError_t cuda_layer_norm_data(cudaStream_t stream, LayerNormRun run)
{
    int wide = cuda_pack(run.type, run.width);
    bool packs = rows_in_packs(run);
#define KERNEL(T, N, P, HELD) grad_kernel<T, N, P, HELD><<<ROWS>>>(run)
    if (run.rows > 0) TYPE_SWITCH(run.type, HELD_SWITCH);
#undef KERNEL
    return cudaGetLastError();
}

cudaError_t cuda_layer_norm_weight(cudaStream_t stream, LayerNormRun run)
{
    int wide = cuda_pack(run.type, run.width);
    bool packs = rows_in_packs(run);
    int64_t parts = cuda_sum_parts(run.type, run.rows, run.width);
    Columns on = over_parts(run.width, wide, parts);
#define KERNEL(T, N, P) parts_kernel<T, N, P><<<on.grid, on.threads, 0, stream>>>(run)
#define LAUNCH(T)       WIDE_OR_ONE(KERNEL, T)
    TYPE_SWITCH(run.type, LAUNCH);
#undef LAUNCH
#undef KERNEL
    join_kernel<<<blocks_for(run.width, WARP), join_threads(), 0, stream>>>(run, parts);
    return cudaGetLastError();
}
