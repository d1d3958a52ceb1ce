/* Attention, causal or full, in tiles (Dao et al. 2022, "FlashAttention"; 2023,
 * "FlashAttention-2"), computed in fp32. SPLIT neighbouring lanes compute a row, which is a query
 * in forward and for dq, or a key for dk and dv. Each lane has SPAN of the row's columns in
 * registers. The rows on the other side (keys for a query, queries for a key) are read through
 * shared memory, TILE rows at a time. All sums of a row have a fixed order, so the bits are the
 * same each time. With rotary positions (Su et al. 2021) queries and keys are rotated first, by a
 * table of cosines and sines, and their gradients are rotated back. */
#include "../passes/elem.cuh"

/* SPAN: columns of a row that a lane has. GAP: floats between two spans in shared memory. TILE:
 * rows of a tile. LANES: threads of a block. SCORES: scores of a row that a lane has in registers
 * at a time. */
enum { SPAN = 32, GAP = 4, TILE = 32, LANES = 128, SCORES = 8 };

static_assert(TILE % SCORES == 0, "whole groups of scores");

/* A tile of rows in shared memory. There are GAP floats between two spans, so that the lanes of a
 * row use different banks. */
template <int SPLIT> struct Rows {
    float row[TILE][SPLIT * (SPAN + GAP)];
};

/* Reads TILE rows of `head` from row `first` on; writes 0 beyond the length and the width. stride:
 * elements from one row to the next. */
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

/* Reads span `part` of row t of `head`; writes 0 beyond the length and the width. */
template <class T>
static __device__ __forceinline__ void load_span(const AttentionRun &run, float *out, const T *head,
                                                 int64_t stride, int64_t t, int part)
{
    const T *from = head + t * stride + part * SPAN;
    int64_t columns = t < run.length ? run.width - part * SPAN : 0;
#pragma unroll
    for (int c = 0; c < SPAN; ++c) out[c] = c < columns ? as_float(from[c]) : 0;
}

/* Returns the dot product of two rows, on every lane of the row. mine: this lane's span of the
 * first row; row: the same span of the second row, in shared memory. */
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

/* Addresses for a head of queries, and for the keys and values to which it attends, in one
 * sample. */
template <class T> struct Head {
    const T *q, *k, *v, *y, *dy;
    /* out: the head in y, to write it */
    T *dq, *dk, *dv, *out;
    float *log_sum, *dots;
    /* elements from one row to the next: qk_stride: of q and k; stride: of v, dq, dk and dv;
     * y_stride: of y, dy and out */
    int64_t qk_stride, stride, y_stride;

    __device__ Head(const AttentionRun &run, int64_t head)
    {
        int64_t sample = run.first + blockIdx.z, kv_head = head / (run.heads / run.kv_heads);
        int64_t queries = run.heads * run.width, keys = run.kv_heads * run.width;
        stride = queries + 2 * keys;
        qk_stride = run.rotated ? queries + keys : stride;
        y_stride = queries;
        int64_t at = sample * run.length * stride;
        int64_t y_at = sample * run.length * queries + head * run.width;
        const T *x = (const T *)run.x + at;
        const T *qk = run.rotated ? (const T *)run.rotated + sample * run.length * qk_stride : x;
        q = qk + head * run.width;
        k = qk + queries + kv_head * run.width;
        v = x + queries + keys + kv_head * run.width;
        T *dx = (T *)run.dx + at;
        dq = dx + head * run.width;
        dk = dx + queries + kv_head * run.width;
        dv = dk + keys;
        out = (T *)run.y + y_at;
        y = out;
        dy = (const T *)run.dy + y_at;
        log_sum = run.log_sum + (sample * run.heads + head) * run.length;
        dots = run.dots + (sample * run.heads + head) * run.length;
    }
};

/* Returns whether query t attends to key `key`. */
static __device__ __forceinline__ bool attends(const AttentionRun &run, int64_t t, int64_t key)
{
    if (run.full) return key < run.length;
    return key <= t && t - key < run.window;
}

/* Keys begin .. end - 1. keys_of returns a range with all keys to which queries first .. last
 * attend. The range begins at the first key of a tile. */
struct KeyRange {
    int64_t begin, end;
};
static __device__ __forceinline__ KeyRange keys_of(const AttentionRun &run, int64_t first,
                                                   int64_t last)
{
    if (run.full) return {0, run.length};
    int64_t begin = first - run.window + 1;
    return {begin > 0 ? begin / TILE * TILE : 0, last < run.length ? last + 1 : run.length};
}

/* Computes y and log_sum. Grid: tiles of queries, heads of queries, samples. */
template <class T, int SPLIT> static __global__ void forward_kernel(AttentionRun run)
{
    __shared__ Rows<SPLIT> keys, values;
    const int QUERIES = LANES / SPLIT, part = threadIdx.x % SPLIT;
    Head<T> head(run, blockIdx.y);
    /* the last queries have the most keys, so their blocks start first */
    int64_t first = (int64_t)(gridDim.x - 1 - blockIdx.x) * QUERIES,
            t = first + threadIdx.x / SPLIT;
    float q[SPAN], sum[SPAN] = {0}, largest = -INFINITY, total = 0;
    load_span(run, q, head.q, head.qk_stride, t, part);
    const KeyRange range = keys_of(run, first, first + QUERIES - 1);
    for (int64_t tile = range.begin; tile < range.end; tile += TILE) {
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
                if (!attends(run, t, tile + from + j)) p[j] = -INFINITY;
                new_largest = p[j] > new_largest ? p[j] : new_largest;
            }
            /* the query may attend to none of the keys so far */
            float origin = new_largest == -INFINITY ? 0 : new_largest;
            float rescale = __expf(largest - origin);
            total *= rescale;
#pragma unroll
            for (int c = 0; c < SPAN; ++c) sum[c] *= rescale;
#pragma unroll
            for (int j = 0; j < SCORES; ++j) {
                float w = __expf(p[j] - origin);
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

/* Computes run.dots: for each query the sum over columns of dy * y. Grid: one warp for each query
 * of each head. */
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

/* Computes dq. Grid: tiles of queries, heads of queries, samples. */
template <class T, int SPLIT> static __global__ void queries_kernel(AttentionRun run)
{
    __shared__ Rows<SPLIT> keys, values;
    const int QUERIES = LANES / SPLIT, part = threadIdx.x % SPLIT;
    Head<T> head(run, blockIdx.y);
    int64_t first = (int64_t)(gridDim.x - 1 - blockIdx.x) * QUERIES,
            t = first + threadIdx.x / SPLIT;
    bool valid = t < run.length;
    float q[SPAN], dy[SPAN], dq[SPAN] = {0};
    load_span(run, q, head.q, head.qk_stride, t, part);
    load_span(run, dy, head.dy, head.y_stride, t, part);
    float log_sum = valid ? head.log_sum[t] : 0, row_dots = valid ? head.dots[t] : 0;
    const KeyRange range = keys_of(run, first, first + QUERIES - 1);
    for (int64_t tile = range.begin; tile < range.end; tile += TILE) {
        __syncthreads();
        load_rows<T, SPLIT>(run, keys, head.k, head.qk_stride, tile);
        load_rows<T, SPLIT>(run, values, head.v, head.stride, tile);
        __syncthreads();
#pragma unroll 2
        for (int j = 0; j < TILE; ++j) {
            const float *key = keys.row[j] + part * (SPAN + GAP),
                        *value = values.row[j] + part * (SPAN + GAP);
            float score = dot<SPLIT>(q, key) * run.scale, dp = dot<SPLIT>(dy, value);
            bool pair = valid && attends(run, t, tile + j);
            float p = pair ? __expf(score - log_sum) : 0;
            add_scaled(dq, p * (dp - row_dots), key);
        }
    }
    store_span(run, head.dq, head.stride, t, part, dq, run.scale);
}

/* Computes dk and dv, which are sums over the heads of queries that share the keys, in the order of
 * the heads. Grid: tiles of keys, heads of keys, samples. */
template <class T, int SPLIT> static __global__ void keys_kernel(AttentionRun run)
{
    __shared__ Rows<SPLIT> queries, dys;
    __shared__ float log_sums[TILE], dots[TILE];
    const int KEYS = LANES / SPLIT, part = threadIdx.x % SPLIT;
    const int64_t group = run.heads / run.kv_heads;
    int64_t first = (int64_t)blockIdx.x * KEYS, t = first + threadIdx.x / SPLIT;
    float k[SPAN], v[SPAN], dk[SPAN] = {0}, dv[SPAN] = {0};
    Head<T> head(run, blockIdx.y * group);
    load_span(run, k, head.k, head.qk_stride, t, part);
    load_span(run, v, head.v, head.stride, t, part);
    /* 1 + index of the last query that attends to a key of this block */
    int64_t end = first + KEYS - 1 + run.window;
    if (run.full || end > run.length) end = run.length;
    for (int64_t i = 0; i < group; ++i) {
        head = Head<T>(run, blockIdx.y * group + i);
        for (int64_t tile = run.full ? 0 : first / TILE * TILE; tile < end; tile += TILE) {
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
                bool pair = tile + j < run.length && attends(run, tile + j, t);
                float p = pair ? __expf(score - log_sums[j]) : 0;
                add_scaled(dv, p, dy);
                add_scaled(dk, pair ? p * (dp - dots[j]) : 0, q);
            }
        }
    }
    store_span(run, head.dk, head.stride, t, part, dk, run.scale);
    store_span(run, head.dv, head.stride, t, part, dv, 1);
}

/* Rotates queries and keys or, with sign -1, rotates their gradients back. `from` has rows as x
 * has. A row of `to` has to_stride elements, and begins with the heads of queries and of keys. `to`
 * may be `from`. Grid: one thread for each pair of columns. */
template <class T>
static __global__ void rotate_kernel(AttentionRun run, const T *from, T *to, int64_t to_stride,
                                     float sign)
{
    int64_t half = run.width / 2, i = element(), heads = run.heads + run.kv_heads;
    if (i >= run.real * run.length * heads * half) return;
    int64_t c = i % half, head = i / half % heads, row = i / half / heads;
    const T *in = from + row * (heads + run.kv_heads) * run.width + head * run.width;
    T *out = to + row * to_stride + head * run.width;
    const float *angle = run.cos_sin + 2 * (row % run.length * half + c);
    float a = as_float(in[c]), b = as_float(in[c + half]), cosine = angle[0],
          sine = sign * angle[1];
    store_float(out + c, a * cosine - b * sine);
    store_float(out + c + half, b * cosine + a * sine);
}

static __global__ void rotary_table_kernel(float *cos_sin, int64_t length, int64_t half,
                                           RotarySpeeds speeds)
{
    int64_t i = element();
    if (i >= length * half) return;
    double angle = (double)(i / half) * speeds.speed[i % half];
    cos_sin[2 * i] = (float)(speeds.gain * cos(angle));
    cos_sin[2 * i + 1] = (float)(speeds.gain * sin(angle));
}

/* largest number of samples of a launch: the largest third dimension of a grid */
enum { SAMPLES = 65535 };

static dim3 tile_grid(const AttentionRun &run, int64_t heads, int split)
{
    int64_t left = run.real - run.first, samples = left < SAMPLES ? left : (int64_t)SAMPLES;
    return dim3(blocks_for(run.length, LANES / split), (unsigned)heads, (unsigned)samples);
}

template <class T, int SPLIT> static void run_forward(cudaStream_t stream, AttentionRun run)
{
    for (; run.first < run.real; run.first += SAMPLES)
        forward_kernel<T, SPLIT><<<tile_grid(run, run.heads, SPLIT), LANES, 0, stream>>>(run);
}

template <class T, int SPLIT> static void run_backward(cudaStream_t stream, AttentionRun run)
{
    int64_t rows = run.real * run.heads * run.length;
    dots_kernel<T><<<blocks_for(rows, WARPS), THREADS, 0, stream>>>(run);
    for (; run.first < run.real; run.first += SAMPLES) {
        queries_kernel<T, SPLIT><<<tile_grid(run, run.heads, SPLIT), LANES, 0, stream>>>(run);
        keys_kernel<T, SPLIT><<<tile_grid(run, run.kv_heads, SPLIT), LANES, 0, stream>>>(run);
    }
}

/* Calls f<T, SPLIT> with the smallest SPLIT for which SPLIT lanes can hold a row. */
#define SPLIT_SWITCH(T, run, f)                                                                    \
    ((run).width <= SPAN       ? f<T, 1>(stream, run)                                              \
     : (run).width <= 2 * SPAN ? f<T, 2>(stream, run)                                              \
                               : f<T, 4>(stream, run))

cudaError_t launch_rotary_table(cudaStream_t stream, float *cos_sin, int64_t length, int64_t half,
                                RotarySpeeds speeds)
{
    rotary_table_kernel<<<blocks_for(length * half, THREADS), THREADS, 0, stream>>>(cos_sin, length,
                                                                                    half, speeds);
    return cudaGetLastError();
}

template <class T>
static void rotate(cudaStream_t stream, const AttentionRun &run, const void *from, void *to,
                   int64_t to_heads, float sign)
{
    int64_t pairs = run.real * run.length * (run.heads + run.kv_heads) * (run.width / 2);
    rotate_kernel<T><<<blocks_for(pairs, THREADS), THREADS, 0, stream>>>(
        run, (const T *)from, (T *)to, to_heads * run.width, sign);
}

cudaError_t launch_attention_rotate(cudaStream_t stream, AttentionRun run)
{
#define LAUNCH(T) rotate<T>(stream, run, run.x, run.rotated, run.heads + run.kv_heads, 1)
    if (run.real > 0) TYPE_SWITCH(run.type, LAUNCH);
#undef LAUNCH
    return cudaGetLastError();
}

cudaError_t launch_attention_rotate_back(cudaStream_t stream, AttentionRun run)
{
#define LAUNCH(T) rotate<T>(stream, run, run.dx, run.dx, run.heads + 2 * run.kv_heads, -1)
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
