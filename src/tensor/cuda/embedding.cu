/* Rows of a table by token, with their gradients. The gradient sorts the tokens by their rows,
 * keeping their order, so that a row's are neighbours: one block sums them, in an order that the
 * tokens decide. */
#include "columns.cuh"

enum { BATCH = 4 };

/* Rows: tokens. */
template <class T, int E, bool PACKS> static __global__ void gather_kernel(EmbeddingRun run)
{
    int64_t c = first_column<E>(), width = run.width;
    if (c >= width) return;
    const float *w = run.w + c;
    T *y = (T *)run.y + c;
    auto row_of = [&](int64_t i) { return i < run.real ? run.tokens[i] - run.first : -1; };
    each_row<BATCH>(
        run.count,
        [&](int64_t i) {
            int64_t row = row_of(i);
            Pack<float, E> v = {};
            if (row >= 0 && row < run.rows) v = read<E, PACKS>(w + row * width);
            return v;
        },
        [&](int64_t i, const Pack<float, E> &v) {
            int64_t token = i < run.real ? run.tokens[i] : 0;
            bool valid = token >= 0 && token < run.vocab;
            float out[E];
#pragma unroll
            for (int k = 0; k < E; ++k)
                out[k] =
                    valid ? v[k] : nanf(""); /* one outside the vocabulary makes the loss NaN */
            write<E, PACKS>(y + i * width, out);
        });
}

/* order[place] = i: a token's place is the number of smaller ones, and of equal ones before it. A
 * block has WARP tokens, one a lane; its warps take turns at all tokens, WARP at a time. */
static __global__ void order_kernel(EmbeddingRun run)
{
    __shared__ int32_t window[WARPS][WARP];
    __shared__ int32_t counts[WARPS][WARP];
    int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP, place = 0;
    int64_t mine = (int64_t)blockIdx.x * WARP, i = mine + lane;
    int32_t token = i < run.real ? run.tokens[i] : 0;
    for (int64_t first = warp * WARP; first < run.real; first += THREADS) {
        int count = run.real - first < WARP ? (int)(run.real - first) : (int)WARP;
        window[warp][lane] = lane < count ? run.tokens[first + lane] : 0;
        __syncwarp();
        if (first < mine)
            for (int k = 0; k < WARP; ++k) place += window[warp][k] <= token;
        else if (first > mine && count == WARP)
            for (int k = 0; k < WARP; ++k) place += window[warp][k] < token;
        else
            for (int k = 0; k < count; ++k)
                place +=
                    first == mine && k < lane ? window[warp][k] <= token : window[warp][k] < token;
        __syncwarp();
    }
    counts[warp][lane] = place;
    __syncthreads();
    if (warp != 0 || i >= run.real) return;
    for (int w = 1; w < WARPS; ++w) place += counts[w][lane];
    run.order[place] = (int32_t)i;
}

/* Grid: places, columns. The block at a token's first place sums them all: thread row y takes every
 * blockDim.y-th, then the thread rows are added in order. */
template <class T, int E, bool PACKS> static __global__ void sum_kernel(EmbeddingRun run)
{
    __shared__ float shared[E][THREADS];
    int64_t place = blockIdx.x, width = run.width,
            c = ((int64_t)blockIdx.y * blockDim.x + threadIdx.x) * E;
    int32_t token = run.tokens[run.order[place]];
    if (place > 0 && run.tokens[run.order[place - 1]] == token) return;
    const T *dy = (const T *)run.dy + c;
    int at = (int)(threadIdx.y * blockDim.x + threadIdx.x),
        threads = (int)(blockDim.x * blockDim.y);
    float sum[E] = {};
    for (int64_t first = place, found = threads; found == threads; first += threads) {
        int64_t i = first + at;
        found = __syncthreads_count(i < run.real && run.tokens[run.order[i]] == token);
        in_batches<2 * BATCH>(
            first + threadIdx.y, c < width ? first + found : first, blockDim.y,
            [&](int64_t k) { return read<E, PACKS>(dy + run.order[k] * width); },
            [&](int64_t, const Pack<T, E> &v) {
#pragma unroll
                for (int e = 0; e < E; ++e) sum[e] += v[e];
            });
    }
#pragma unroll
    for (int e = 0; e < E; ++e) shared[e][at] = sum[e];
    __syncthreads();
    int64_t row = token - run.first;
    if (threadIdx.y != 0 || c >= width || row < 0 || row >= run.rows) return;
#pragma unroll
    for (int e = 0; e < E; ++e)
        for (unsigned y = 1; y < blockDim.y; ++y) sum[e] += shared[e][y * blockDim.x + threadIdx.x];
    write<E, PACKS>(run.dw + row * width + c, sum);
}

cudaError_t launch_embedding(cudaStream_t stream, EmbeddingRun run)
{
    int wide = cuda_pack(run.type, run.width);
    bool packs = in_packs(run.w, run.y);
    Columns on = over_rows(run.count, run.width, wide, BATCH);
#define KERNEL(T, N, P) gather_kernel<T, N, P><<<on.grid, on.threads, 0, stream>>>(run)
#define LAUNCH(T)       WIDE_OR_ONE(KERNEL, T)
    if (run.count > 0) TYPE_SWITCH(run.type, LAUNCH);
#undef KERNEL
    return cudaGetLastError();
}

cudaError_t launch_embedding_backward(cudaStream_t stream, EmbeddingRun run)
{
    int wide = cuda_pack(run.type, run.width);
    bool packs = in_packs(run.dy, run.dw);
    Columns on = over_parts(run.width, wide, 1);
    dim3 grid((unsigned)run.real, on.grid.x);
    cudaError_t error = launch_fill(stream, run.dw, 0, run.rows * run.width);
    if (error != cudaSuccess || run.real == 0) return error;
    order_kernel<<<blocks_for(run.real, WARP), THREADS, 0, stream>>>(run);
#define KERNEL(T, N, P) sum_kernel<T, N, P><<<grid, on.threads, 0, stream>>>(run)
    TYPE_SWITCH(run.type, LAUNCH);
#undef LAUNCH
#undef KERNEL
    return cudaGetLastError();
}
