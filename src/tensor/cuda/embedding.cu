/* Embedding: copies a row of the table for each token, and sums the gradients of each row. For the
 * sums the tokens are sorted (stably), so that all tokens of a row are neighbours. One block for
 * each row and tile of columns then adds the gradients of the row's tokens, in an order that
 * depends on the tokens alone. */
#include "passes/columns.cuh"

enum { BATCH = 4, DIGIT_BITS = 8, DIGITS = CUDA_SORT_DIGITS };
static_assert((int)DIGITS == 1 << DIGIT_BITS && (int)DIGITS == (int)THREADS, "a thread a digit");

/* Copies a row of the table for each token. */
template <class T, int E, bool ALIGNED> static __global__ void gather_kernel(EmbeddingRun run)
{
    int64_t c = first_column<E>(), width = run.width;
    if (c >= width) return;
    const float *w = run.w + c;
    T *y = (T *)run.y + c;
    /* index of the token's row in run.w, which may be outside this rank's rows; -1 for a padded
     * sample */
    auto row_of = [&](int64_t i) { return i < run.real ? run.tokens[i] - run.first : -1; };
    each_row<BATCH>(
        run.count,
        [&](int64_t i) {
            int64_t row = row_of(i);
            Pack<float, E> v = {};
            if (row >= 0 && row < run.rows) v = read_pack<E, ALIGNED>(w + row * width);
            return v;
        },
        [&](int64_t i, const Pack<float, E> &v) {
            int64_t token = i < run.real ? run.tokens[i] : 0;
            int64_t row = row_of(i);
            bool valid = token >= 0 && token < run.vocab, here = row >= 0 && row < run.rows;
            /* -0, because the sum of -0 and the values of the rank that has the row has the bits of
             * those values */
            const float absent = i < run.real ? -0.0f : 0.0f;
            float out[E];
        /* a token outside the vocabulary makes the loss NaN */
#pragma unroll
            for (int k = 0; k < E; ++k) out[k] = !valid ? nanf("") : here ? v[k] : absent;
            write_floats<E, ALIGNED>(y + i * width, out);
        });
}

/* ---- a stable radix sort of the tokens ----
 *
 * Each pass sorts by one digit of the tokens, the lowest digit first, and keeps the order of tokens
 * with equal digits:
 *
 *     count_digits     counts[block][digit] = number of tokens with the digit in the block's tile
 *     place_digits     counts[block][digit] = position of the first such token in the sorted order
 *     move_tokens      writes each token's index to its position
 */

typedef struct SortPass {
    /* the tokens, [count] */
    const int32_t *tokens;
    /* indices of the tokens in the order before the pass; NULL: their original order */
    const int32_t *from;
    /* indices of the tokens in the order after the pass */
    int32_t *to;
    /* counts and then positions of digits, [blocks][DIGITS] */
    int32_t *counts;
    /* number of tokens */
    int64_t count;
    /* number of tokens that a block sorts */
    int64_t tile;
    /* number of tokens in the vocabulary */
    uint32_t vocab;
    /* position of the digit's lowest bit in a token */
    int shift;
} SortPass;

/* Returns the index of the token at position i before the pass. */
static __device__ __forceinline__ int32_t token_index(const SortPass &pass, int64_t i)
{
    return pass.from ? pass.from[i] : (int32_t)i;
}

/* Returns the digit of the token with index `index`. Tokens outside the vocabulary are sorted after
 * all other tokens. */
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

/* Turns counts into positions. Grid: one block with a thread for each digit. */
static __global__ void place_digits_kernel(int32_t *counts, int64_t blocks)
{
    enum { LOADS = 16 };
    __shared__ int32_t totals[DIGITS];
    int digit = threadIdx.x;
    int32_t total = 0, position = 0;
    auto load = [&](int64_t b) { return counts[b * DIGITS + digit]; };
    in_batches<LOADS>((int64_t)0, blocks, 1, load, [&](int64_t, int32_t n) { total += n; });
    totals[digit] = total;
    for (int step = 1; step < DIGITS; step *= 2) {
        __syncthreads();
        int32_t before = digit >= step ? totals[digit - step] : 0;
        __syncthreads();
        totals[digit] += before;
    }
    position = totals[digit] - total;
    in_batches<LOADS>((int64_t)0, blocks, 1, load, [&](int64_t b, int32_t n) {
        counts[b * DIGITS + digit] = position;
        position += n;
    });
}

/* Returns the mask of the warp's lanes that have the same digit as this lane. The value DIGITS
 * means "no token", so the comparison needs DIGIT_BITS + 1 bits. */
static __device__ __forceinline__ uint32_t lanes_with_digit(int digit)
{
    uint32_t lanes = EVERY_LANE;
#pragma unroll
    for (int bit = 0; bit <= DIGIT_BITS; ++bit) {
        uint32_t set = __ballot_sync(EVERY_LANE, digit >> bit & 1);
        lanes &= digit >> bit & 1 ? set : ~set;
    }
    return lanes;
}

static __global__ void move_tokens_kernel(SortPass pass)
{
    /* next: position for the next token with each digit. warps: for each warp and digit first the
     * number of tokens, then the position of the first such token. */
    __shared__ int32_t next[DIGITS], warps[WARPS][DIGITS];
    int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
    int64_t end = tile_end(pass);
    next[threadIdx.x] = pass.counts[(int64_t)blockIdx.x * DIGITS + threadIdx.x];
    for (int64_t first = blockIdx.x * pass.tile; first < end; first += THREADS) {
        bool inside = first + threadIdx.x < end;
        int32_t index = inside ? token_index(pass, first + threadIdx.x) : 0;
        int digit = inside ? digit_of(pass, index) : (int)DIGITS;
        uint32_t same = lanes_with_digit(digit);
        int before = __popc(same & ((1u << lane) - 1));
#pragma unroll
        for (int w = 0; w < WARPS; ++w) warps[w][threadIdx.x] = 0;
        __syncthreads();
        if (inside && before == 0) warps[warp][digit] = __popc(same);
        __syncthreads();
        int32_t position = next[threadIdx.x];
#pragma unroll
        for (int w = 0; w < WARPS; ++w) {
            int32_t n = warps[w][threadIdx.x];
            warps[w][threadIdx.x] = position;
            position += n;
        }
        next[threadIdx.x] = position;
        __syncthreads();
        if (inside) pass.to[warps[warp][digit] + before] = index;
        __syncthreads();
    }
}

/* Sets run.order to the indices of the tokens of real samples, sorted by token, and by index if
 * tokens are equal. */
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

/* Sums the gradients of each row. Grid: positions in the sorted order, tiles of columns. The block
 * at the first position of a token adds all gradients of this token; blocks at other positions
 * return. The threads with threadIdx.y = y add gradients y, y + blockDim.y, ...; then the sums of
 * the threads are added in the order of y. */
template <class T, int E, bool ALIGNED> static __global__ void sum_kernel(EmbeddingRun run)
{
    __shared__ float shared[E][THREADS];
    int64_t position = blockIdx.x, width = run.width,
            c = ((int64_t)blockIdx.y * blockDim.x + threadIdx.x) * E;
    int32_t token = run.tokens[run.order[position]];
    if (position > 0 && run.tokens[run.order[position - 1]] == token) return;
    const T *dy = (const T *)run.dy + c;
    int thread = (int)(threadIdx.y * blockDim.x + threadIdx.x),
        threads = (int)(blockDim.x * blockDim.y);
    float sum[E] = {};
    /* found: how many of the next `threads` positions have this token */
    for (int64_t first = position, found = threads; found == threads; first += threads) {
        int64_t i = first + thread;
        found = __syncthreads_count(i < run.real && run.tokens[run.order[i]] == token);
        in_batches<2 * BATCH>(
            first + threadIdx.y, c < width ? first + found : first, blockDim.y,
            [&](int64_t k) { return read_pack<E, ALIGNED>(dy + run.order[k] * width); },
            [&](int64_t, const Pack<T, E> &v) {
#pragma unroll
                for (int e = 0; e < E; ++e) sum[e] += v[e];
            });
    }
#pragma unroll
    for (int e = 0; e < E; ++e) shared[e][thread] = sum[e];
    __syncthreads();
    int64_t row = token - run.first;
    if (threadIdx.y != 0 || c >= width || row < 0 || row >= run.rows) return;
#pragma unroll
    for (int e = 0; e < E; ++e)
        for (unsigned y = 1; y < blockDim.y; ++y) sum[e] += shared[e][y * blockDim.x + threadIdx.x];
    write_floats<E, ALIGNED>(run.dw + row * width + c, sum);
}

cudaError_t launch_embedding(cudaStream_t stream, EmbeddingRun run)
{
    int pack_size = cuda_pack_size(run.type, run.width);
    bool aligned = aligned_to_packs(run.w, run.y);
    LaunchShape on = grid_over_rows(run.count, run.width, pack_size, BATCH);
#define KERNEL(T, N, P) gather_kernel<T, N, P><<<on.grid, on.threads, 0, stream>>>(run)
#define LAUNCH(T)       PACK_SIZE_SWITCH(KERNEL, T)
    if (run.count > 0) TYPE_SWITCH(run.type, LAUNCH);
#undef KERNEL
    return cudaGetLastError();
}

cudaError_t launch_embedding_backward(cudaStream_t stream, EmbeddingRun run)
{
    int pack_size = cuda_pack_size(run.type, run.width);
    bool aligned = aligned_to_packs(run.dy, run.dw);
    LaunchShape on = grid_over_parts(run.width, pack_size, 1);
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
