/* Causal attention in tiles (Dao et al. 2022, "FlashAttention"; 2023, "FlashAttention-2"), computed
 * in fp32. SPLIT neighbouring lanes compute a row (a query in forward and for dq, a key for dk and
 * dv); each has SPAN of the row's columns in registers. The rows of the other kind are read through
 * shared memory, TILE at a time. All sums of a row have a fixed order, so the bits are the same
 * each time. With rotary positions (Su et al. 2021) queries and keys are rotated first, by a table
 * of angles, and their gradients are rotated back. */
#include "elem.cuh"

/* LANES: threads of a block. SCORES: scores of a row that a lane has in registers at a time. */
enum { SPAN = 32, GAP = 4, TILE = 32, LANES = 128, SCORES = 8 };

static_assert(TILE % SCORES == 0, "whole groups of scores");

/* A tile of rows in shared memory. Spans are GAP floats apart, so that the lanes of a row use
 * different banks. */
template <int SPLIT> struct Rows {
    float row[TILE][SPLIT * (SPAN + GAP)];
};

/* Reads TILE rows from row `first` on; zeros beyond the length. stride: elements from a row to the
 * next. */
template <class T, int SPLIT>
static __device__ __forceinline__ void load_rows(const AttentionRun &run, Rows<SPLIT> &rows,
                                                 const T *head, int64_t stride, int64_t first)
{
    for (int i = threadIdx.x; i < TILE * SPLIT * SPAN; i += LANES) {
        int r = i / (SPLIT * SPAN), c = i % (SPLIT * SPAN);
        int64_t t = first + r;
        rows.row[r][c + c / SPAN * GAP] =
            t < run.length && c < run.width ? as_float(head[t * stride + c]) : 0;
    }
}

/* Reads span `part` of row t; zeros beyond the length and the width. */
template <class T>
static __device__ __forceinline__ void load_span(const AttentionRun &run, float *out, const T *head,
                                                 int64_t stride, int64_t t, int part)
{
    const T *from = head + t * stride + part * SPAN;
    int64_t columns = t < run.length ? run.width - part * SPAN : 0;
#pragma unroll
    for (int c = 0; c < SPAN; ++c) out[c] = c < columns ? as_float(from[c]) : 0;
}

/* Dot product of two rows, on every lane of the row. */
template <int SPLIT>
static __device__ __forceinline__ float dot(const float *mine, const float *row)
{
    float sum = 0;
#pragma unroll
    for (int c = 0; c < SPAN; ++c) sum += mine[c] * row[c];
#pragma unroll
    for (int step = SPLIT / 2; step > 0; step /= 2) sum += __shfl_xor_sync(EVERY_LANE, sum, step);
    return sum;
}

static __device__ __forceinline__ void add_scaled(float *sum, float factor, const float *row)
{
#pragma unroll
    for (int c = 0; c < SPAN; ++c) sum[c] += factor * row[c];
}

template <class T>
static __device__ __forceinline__ void store_span(const AttentionRun &run, T *head, int64_t stride,
                                                  int64_t t, int part, const float *from,
                                                  float scale)
{
    T *to = head + t * stride + part * SPAN;
    int64_t columns = t < run.length ? run.width - part * SPAN : 0;
#pragma unroll
    for (int c = 0; c < SPAN; ++c)
        if (c < columns) store_float(to + c, from[c] * scale);
}

/* Addresses of the head that a block computes. Grid: tiles of rows, heads, samples. */
template <class T> struct Head {
    const T *q, *k, *v, *y, *dy;
    T *dq, *dk, *dv, *out;
    float *log_sum, *dots;
    int64_t qk_stride, stride, y_stride;

    __device__ Head(const AttentionRun &run)
    {
        int64_t columns = run.heads * run.width, sample = run.first + blockIdx.z, head = blockIdx.y;
        stride = 3 * columns;
        qk_stride = run.rotated ? 2 * columns : stride;
        y_stride = columns;
        int64_t at = sample * run.length * stride + head * run.width;
        int64_t y_at = sample * run.length * columns + head * run.width;
        int64_t rotated_at = sample * run.length * qk_stride + head * run.width;
        q = run.rotated ? (const T *)run.rotated + rotated_at : (const T *)run.x + at;
        k = q + columns;
        v = (const T *)run.x + at + 2 * columns;
        dq = (T *)run.dx + at;
        dk = dq + columns;
        dv = dk + columns;
        out = (T *)run.y + y_at;
        y = out;
        dy = (const T *)run.dy + y_at;
        log_sum = run.log_sum + (sample * run.heads + head) * run.length;
        dots = run.dots + (sample * run.heads + head) * run.length;
    }
};

/* Computes y and log_sum. */
template <class T, int SPLIT> static __global__ void forward_kernel(AttentionRun run)
{
    __shared__ Rows<SPLIT> keys, values;
    const int QUERIES = LANES / SPLIT, part = threadIdx.x % SPLIT;
    Head<T> head(run);
    /* The last queries have the most keys and start first. */
    int64_t first = (int64_t)(gridDim.x - 1 - blockIdx.x) * QUERIES,
            t = first + threadIdx.x / SPLIT;
    float q[SPAN], sum[SPAN] = {0}, largest = -INFINITY, total = 0;
    load_span(run, q, head.q, head.qk_stride, t, part);
    int64_t end = first + QUERIES < run.length ? first + QUERIES : run.length;
    for (int64_t tile = 0; tile < end; tile += TILE) {
        __syncthreads();
        load_rows<T, SPLIT>(run, keys, head.k, head.qk_stride, tile);
        load_rows<T, SPLIT>(run, values, head.v, head.stride, tile);
        __syncthreads();
#pragma unroll 1
        for (int from = 0; from < TILE; from += SCORES) {
            float p[SCORES], new_largest = largest;
#pragma unroll
            for (int j = 0; j < SCORES; ++j) {
                p[j] = dot<SPLIT>(q, keys.row[from + j] + part * (SPAN + GAP)) * run.scale;
                if (tile + from + j > t) p[j] = -INFINITY;
                new_largest = p[j] > new_largest ? p[j] : new_largest;
            }
            float rescale = __expf(largest - new_largest);
            total *= rescale;
#pragma unroll
            for (int c = 0; c < SPAN; ++c) sum[c] *= rescale;
#pragma unroll
            for (int j = 0; j < SCORES; ++j) {
                float w = __expf(p[j] - new_largest);
                total += w;
                add_scaled(sum, w, values.row[from + j] + part * (SPAN + GAP));
            }
            largest = new_largest;
        }
    }
    if (t >= run.length) return;
    store_span(run, head.out, head.y_stride, t, part, sum, 1 / total);
    if (part == 0) head.log_sum[t] = largest + logf(total);
}

/* Computes dots: for each query the sum over columns of dy * y. One warp for each row. */
template <class T> static __global__ void dots_kernel(AttentionRun run)
{
    int64_t row = warp_row();
    if (row >= run.real * run.heads * run.length) return;
    int64_t t = row % run.length, head = row / run.length % run.heads,
            sample = row / run.length / run.heads;
    int64_t at = ((sample * run.length + t) * run.heads + head) * run.width;
    float sum = 0;
    for (int64_t c = threadIdx.x % WARP; c < run.width; c += WARP)
        sum += as_float(((const T *)run.dy)[at + c]) * as_float(((const T *)run.y)[at + c]);
    sum = warp_sum(sum);
    if (threadIdx.x % WARP == 0) run.dots[row] = sum;
}

/* Computes dq. */
template <class T, int SPLIT> static __global__ void queries_kernel(AttentionRun run)
{
    __shared__ Rows<SPLIT> keys, values;
    const int QUERIES = LANES / SPLIT, part = threadIdx.x % SPLIT;
    Head<T> head(run);
    int64_t first = (int64_t)(gridDim.x - 1 - blockIdx.x) * QUERIES,
            t = first + threadIdx.x / SPLIT;
    bool valid = t < run.length;
    float q[SPAN], dy[SPAN], dq[SPAN] = {0};
    load_span(run, q, head.q, head.qk_stride, t, part);
    load_span(run, dy, head.dy, head.y_stride, t, part);
    float log_sum = valid ? head.log_sum[t] : 0, row_dots = valid ? head.dots[t] : 0;
    int64_t end = first + QUERIES < run.length ? first + QUERIES : run.length;
    for (int64_t tile = 0; tile < end; tile += TILE) {
        __syncthreads();
        load_rows<T, SPLIT>(run, keys, head.k, head.qk_stride, tile);
        load_rows<T, SPLIT>(run, values, head.v, head.stride, tile);
        __syncthreads();
#pragma unroll 2
        for (int j = 0; j < TILE; ++j) {
            const float *key = keys.row[j] + part * (SPAN + GAP),
                        *value = values.row[j] + part * (SPAN + GAP);
            float score = dot<SPLIT>(q, key) * run.scale, dp = dot<SPLIT>(dy, value);
            float p = valid && tile + j <= t ? __expf(score - log_sum) : 0;
            add_scaled(dq, p * (dp - row_dots), key);
        }
    }
    store_span(run, head.dq, head.stride, t, part, dq, run.scale);
}

/* Computes dk and dv. */
template <class T, int SPLIT> static __global__ void keys_kernel(AttentionRun run)
{
    __shared__ Rows<SPLIT> queries, dys;
    __shared__ float log_sums[TILE], dots[TILE];
    const int KEYS = LANES / SPLIT, part = threadIdx.x % SPLIT;
    Head<T> head(run);
    int64_t first = (int64_t)blockIdx.x * KEYS, t = first + threadIdx.x / SPLIT;
    float k[SPAN], v[SPAN], dk[SPAN] = {0}, dv[SPAN] = {0};
    load_span(run, k, head.k, head.qk_stride, t, part);
    load_span(run, v, head.v, head.stride, t, part);
    for (int64_t tile = first / TILE * TILE; tile < run.length; tile += TILE) {
        __syncthreads();
        load_rows<T, SPLIT>(run, queries, head.q, head.qk_stride, tile);
        load_rows<T, SPLIT>(run, dys, head.dy, head.y_stride, tile);
        if (threadIdx.x < TILE && tile + threadIdx.x < run.length) {
            log_sums[threadIdx.x] = head.log_sum[tile + threadIdx.x];
            dots[threadIdx.x] = head.dots[tile + threadIdx.x];
        }
        __syncthreads();
#pragma unroll 2
        for (int j = 0; j < TILE; ++j) {
            const float *q = queries.row[j] + part * (SPAN + GAP),
                        *dy = dys.row[j] + part * (SPAN + GAP);
            float score = dot<SPLIT>(k, q) * run.scale, dp = dot<SPLIT>(v, dy);
            /* the query is real, and the key is not after it */
            bool attends = tile + j < run.length && t <= tile + j;
            float p = attends ? __expf(score - log_sums[j]) : 0;
            add_scaled(dv, p, dy);
            add_scaled(dk, attends ? p * (dp - dots[j]) : 0, q);
        }
    }
    store_span(run, head.dk, head.stride, t, part, dk, run.scale);
    store_span(run, head.dv, head.stride, t, part, dv, 1);
}

/* Rotates queries and keys, or with sign -1 their gradients back. `from` has rows like x; a row of
 * `to` has `parts` sets of heads: 2 for queries and keys, 3 in dx. `to` may be `from`. One thread
 * for each pair of columns. */
template <class T>
static __global__ void rotate_kernel(AttentionRun run, const T *from, T *to, int64_t parts,
                                     float sign)
{
    int64_t half = run.width / 2, i = element(), columns = run.heads * run.width;
    if (i >= run.real * run.length * 2 * run.heads * half) return;
    int64_t c = i % half, head = i / half % (2 * run.heads), row = i / half / (2 * run.heads);
    const T *in = from + row * 3 * columns + head * run.width;
    T *out = to + row * parts * columns + head * run.width;
    const float *angle = run.angles + 2 * (row % run.length * half + c);
    float a = as_float(in[c]), b = as_float(in[c + half]), cosine = angle[0],
          sine = sign * angle[1];
    store_float(out + c, a * cosine - b * sine);
    store_float(out + c + half, b * cosine + a * sine);
}

static __global__ void angles_kernel(float *angles, int64_t length, int64_t half)
{
    int64_t i = element();
    if (i >= length * half) return;
    double angle = (double)(i / half) * pow(10000.0, -(double)(i % half) / (double)half);
    angles[2 * i] = (float)cos(angle);
    angles[2 * i + 1] = (float)sin(angle);
}

/* most samples of a launch: the limit of a grid's third dimension */
enum { SAMPLES = 65535 };

static dim3 tile_grid(const AttentionRun &run, int split)
{
    int64_t left = run.real - run.first, samples = left < SAMPLES ? left : (int64_t)SAMPLES;
    return dim3(blocks_for(run.length, LANES / split), (unsigned)run.heads, (unsigned)samples);
}

template <class T, int SPLIT> static void run_forward(cudaStream_t stream, AttentionRun run)
{
    for (; run.first < run.real; run.first += SAMPLES)
        forward_kernel<T, SPLIT><<<tile_grid(run, SPLIT), LANES, 0, stream>>>(run);
}

template <class T, int SPLIT> static void run_backward(cudaStream_t stream, AttentionRun run)
{
    int64_t rows = run.real * run.heads * run.length;
    dots_kernel<T><<<blocks_for(rows, WARPS), THREADS, 0, stream>>>(run);
    for (; run.first < run.real; run.first += SAMPLES) {
        queries_kernel<T, SPLIT><<<tile_grid(run, SPLIT), LANES, 0, stream>>>(run);
        keys_kernel<T, SPLIT><<<tile_grid(run, SPLIT), LANES, 0, stream>>>(run);
    }
}

/* Calls f<T, SPLIT> with the smallest SPLIT whose lanes can hold a row. */
#define SPLIT_SWITCH(T, run, f)                                                                    \
    ((run).width <= SPAN       ? f<T, 1>(stream, run)                                              \
     : (run).width <= 2 * SPAN ? f<T, 2>(stream, run)                                              \
                               : f<T, 4>(stream, run))

cudaError_t launch_attention_angles(cudaStream_t stream, float *angles, int64_t length,
                                    int64_t half)
{
    angles_kernel<<<blocks_for(length * half, THREADS), THREADS, 0, stream>>>(angles, length, half);
    return cudaGetLastError();
}

template <class T>
static void rotate(cudaStream_t stream, const AttentionRun &run, const void *from, void *to,
                   int64_t parts, float sign)
{
    int64_t pairs = run.real * run.length * run.heads * run.width;
    rotate_kernel<T><<<blocks_for(pairs, THREADS), THREADS, 0, stream>>>(run, (const T *)from,
                                                                         (T *)to, parts, sign);
}

cudaError_t launch_attention_rotate(cudaStream_t stream, AttentionRun run)
{
#define LAUNCH(T) rotate<T>(stream, run, run.x, run.rotated, 2, 1)
    if (run.real > 0) TYPE_SWITCH(run.type, LAUNCH);
#undef LAUNCH
    return cudaGetLastError();
}

cudaError_t launch_attention_rotate_back(cudaStream_t stream, AttentionRun run)
{
#define LAUNCH(T) rotate<T>(stream, run, run.dx, run.dx, 3, -1)
    if (run.real > 0) TYPE_SWITCH(run.type, LAUNCH);
#undef LAUNCH
    return cudaGetLastError();
}

cudaError_t launch_attention(cudaStream_t stream, AttentionRun run)
{
#define LAUNCH(T) SPLIT_SWITCH(T, run, run_forward)
    if (run.real > 0) TYPE_SWITCH(run.type, LAUNCH);
#undef LAUNCH
    return cudaGetLastError();
}

cudaError_t launch_attention_backward(cudaStream_t stream, AttentionRun run)
{
#define LAUNCH(T) SPLIT_SWITCH(T, run, run_backward)
    if (run.real > 0) TYPE_SWITCH(run.type, LAUNCH);
#undef LAUNCH
    return cudaGetLastError();
}
