/* Rows of a table by token, and their gradients. The gradient sorts the tokens, keeping the order
 * of equal ones, so that all tokens of a row are neighbours. One block then adds them up, in an
 * order that the tokens decide. */
#include "columns.cuh"

enum { BATCH = 4, DIGIT_BITS = 8, DIGITS = CUDA_SORT_DIGITS };
static_assert((int)DIGITS == 1 << DIGIT_BITS && (int)DIGITS == (int)THREADS, "a thread a digit");

/* Copies a row of the table for each token. */
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
                    /* A token outside the vocabulary makes the loss NaN. */
                    valid ? v[k] : nanf("");
            write<E, PACKS>(y + i * width, out);
        });
}

/* ---- the order of tokens: a stable radix sort ----
 *
 * A pass sorts by one digit of the tokens, lowest digit first, and keeps the order of equal ones:
 *
 *     count_digits     counts[block][digit]: how many of the block's tile have the digit
 *     place_digits     counts[block][digit] becomes the place of the first of them
 *     move_tokens      each token's index goes to its place
 */

typedef struct SortPass {
    const int32_t *tokens, *from;
    int32_t *to, *counts;
    int64_t count, tile;
    uint32_t vocab;
    int shift;
} SortPass;

/* Index of the token at place i; pass.from NULL: tokens are in their original order. */
static __device__ __forceinline__ int32_t token_index(const SortPass &pass, int64_t i)
{
    return pass.from ? pass.from[i] : (int32_t)i;
}

/* Tokens outside the vocabulary are sorted behind all others. */
static __device__ __forceinline__ int digit_of(const SortPass &pass, int32_t index)
{
    uint32_t token = (uint32_t)pass.tokens[index];
    if (token > pass.vocab) token = pass.vocab;
    return (int)(token >> pass.shift & (DIGITS - 1));
}

static __device__ __forceinline__ int64_t tile_end(const SortPass &pass)
{
    int64_t end = ((int64_t)blockIdx.x + 1) * pass.tile;
    return end < pass.count ? end : pass.count;
}

static __global__ void count_digits_kernel(SortPass pass)
{
    __shared__ int32_t counts[DIGITS];
    counts[threadIdx.x] = 0;
    __syncthreads();
    in_batches<BATCH>(
        blockIdx.x * pass.tile + threadIdx.x, tile_end(pass), THREADS,
        [&](int64_t i) { return digit_of(pass, token_index(pass, i)); },
        [&](int64_t, int digit) { atomicAdd(&counts[digit], 1); });
    __syncthreads();
    pass.counts[(int64_t)blockIdx.x * DIGITS + threadIdx.x] = counts[threadIdx.x];
}

/* Runs as one block with a thread for each digit. */
static __global__ void place_digits_kernel(int32_t *counts, int64_t blocks)
{
    enum { LOADS = 16 };
    __shared__ int32_t totals[DIGITS];
    int digit = threadIdx.x;
    int32_t total = 0, place = 0;
    auto load = [&](int64_t b) { return counts[b * DIGITS + digit]; };
    in_batches<LOADS>((int64_t)0, blocks, 1, load, [&](int64_t, int32_t n) { total += n; });
    totals[digit] = total;
    for (int step = 1; step < DIGITS; step *= 2) {
        __syncthreads();
        int32_t before = digit >= step ? totals[digit - step] : 0;
        __syncthreads();
        totals[digit] += before;
    }
    place = totals[digit] - total;
    in_batches<LOADS>((int64_t)0, blocks, 1, load, [&](int64_t b, int32_t n) {
        counts[b * DIGITS + digit] = place;
        place += n;
    });
}

/* Mask of the warp's lanes that have the same number of DIGIT_BITS + 1 bits. */
static __device__ __forceinline__ uint32_t lanes_alike(int number)
{
    uint32_t alike = EVERY_LANE;
#pragma unroll
    for (int bit = 0; bit <= DIGIT_BITS; ++bit) {
        uint32_t set = __ballot_sync(EVERY_LANE, number >> bit & 1);
        alike &= number >> bit & 1 ? set : ~set;
    }
    return alike;
}

static __global__ void move_tokens_kernel(SortPass pass)
{
    __shared__ int32_t next[DIGITS], warps[WARPS][DIGITS];
    int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
    int64_t end = tile_end(pass);
    next[threadIdx.x] = pass.counts[(int64_t)blockIdx.x * DIGITS + threadIdx.x];
    for (int64_t first = blockIdx.x * pass.tile; first < end; first += THREADS) {
        bool inside = first + threadIdx.x < end;
        int32_t index = inside ? token_index(pass, first + threadIdx.x) : 0;
        int digit = inside ? digit_of(pass, index) : (int)DIGITS;
        uint32_t alike = lanes_alike(digit);
        int before = __popc(alike & ((1u << lane) - 1));
#pragma unroll
        for (int w = 0; w < WARPS; ++w) warps[w][threadIdx.x] = 0;
        __syncthreads();
        if (inside && before == 0) warps[warp][digit] = __popc(alike);
        __syncthreads();
        int32_t place = next[threadIdx.x];
#pragma unroll
        for (int w = 0; w < WARPS; ++w) {
            int32_t n = warps[w][threadIdx.x];
            warps[w][threadIdx.x] = place;
            place += n;
        }
        next[threadIdx.x] = place;
        __syncthreads();
        if (inside) pass.to[warps[warp][digit] + before] = index;
        __syncthreads();
    }
}

/* order[place] = i, sorted by token and then by i. */
static void sort_tokens(cudaStream_t stream, const EmbeddingRun &run)
{
    int passes = 1;
    while (run.vocab >> passes * DIGIT_BITS > 0) ++passes;
    int32_t *spare = run.order + run.count;
    SortPass pass = {};
    pass.tokens = run.tokens;
    pass.counts = spare + run.count;
    pass.count = run.real;
    pass.tile = cuda_sort_tile(run.real);
    pass.vocab = (uint32_t)run.vocab;
    unsigned blocks = blocks_for(run.real, pass.tile);
    for (int p = 0; p < passes; ++p) {
        pass.shift = p * DIGIT_BITS;
        pass.to = (passes - p) % 2 ? run.order : spare;
        count_digits_kernel<<<blocks, THREADS, 0, stream>>>(pass);
        place_digits_kernel<<<1, THREADS, 0, stream>>>(pass.counts, blocks);
        move_tokens_kernel<<<blocks, THREADS, 0, stream>>>(pass);
        pass.from = pass.to;
    }
}

/* Grid: places in the sorted order, columns. The block at the first place of a token adds up all
 * gradients of that token: thread row y takes every blockDim.y-th of them, then the thread rows are
 * added in order. */
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
    sort_tokens(stream, run);
#define KERNEL(T, N, P) sum_kernel<T, N, P><<<grid, on.threads, 0, stream>>>(run)
    TYPE_SWITCH(run.type, LAUNCH);
#undef LAUNCH
#undef KERNEL
    return cudaGetLastError();
}
