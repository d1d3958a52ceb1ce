/* Softmax cross-entropy with label smoothing, and mean squared error: a block a row, of one warp or WARPS of them. */
#include "elem.cuh"
#include <cfloat>

enum { BATCH = 4, NARROW = 1024 /* columns that one warp takes */ };

/* The largest value and the lowest index that holds it, on every lane. */
static __device__ __forceinline__ void warp_max(float *value, int64_t *at)
{
    for (int step = WARP / 2; step > 0; step /= 2) {
        float other = __shfl_xor_sync(EVERY_LANE, *value, step);
        int64_t other_at = __shfl_xor_sync(EVERY_LANE, (long long)*at, step);
        if (other > *value || (other == *value && other_at < *at)) {
            *value = other;
            *at = other_at;
        }
    }
}

static __device__ __forceinline__ float scale_of(const LossRun &run)
{
    return run.numbers ? run.numbers->loss_scale : run.scale;
}

static __device__ __forceinline__ void store_columns(float *out, float loss, float beaten, float at)
{
    out[0] = loss;
    out[1] = beaten;
    out[2] = at;
}

/* What is known of some of a row's logits: the largest, where (its first element, or that of its pack), sum of exp(logit - best),
 * how many beat the label, sum. */
struct Logits {
    float best, exps, sum;
    int beaten;
    int64_t at;
};

/* Takes a block's together, in thread 0. */
static __device__ __forceinline__ Logits join(Logits mine)
{
    __shared__ Logits of[WARPS];
    Logits all = mine;
    warp_max(&all.best, &all.at);
    all.exps = warp_sum(mine.exps * expf(mine.best - all.best));
    all.beaten = (int)warp_sum((float)mine.beaten);
    all.sum = warp_sum(mine.sum);
    if (blockDim.x == WARP) return all;
    if (threadIdx.x % WARP == 0) of[threadIdx.x / WARP] = all;
    __syncthreads();
    for (int w = 1; threadIdx.x == 0 && w < WARPS; ++w) {
        Logits o = of[w];
        float best = fmaxf(all.best, o.best);
        all.exps = all.exps * expf(all.best - best) + o.exps * expf(o.best - best);
        if (o.best > all.best || (o.best == all.best && o.at < all.at)) all.at = o.at;
        all.best = best;
        all.beaten += o.beaten;
        all.sum += o.sum;
    }
    return all;
}

/* What logits are compared with: the label's column and logit, and the next smaller number. */
struct Truth {
    int64_t label;
    float logit, below;
    bool smoothed;
};

/* Of N logits from column k on, those that are larger than the label's, or equal and earlier; a label that is NaN is beaten by
 * all. Before the label to be equal is to be larger than the next smaller number. */
template <int N, class Value>
static __device__ __forceinline__ int count_beaten(int64_t k, Truth truth, Value value)
{
    float limit = k > truth.label ? truth.logit : truth.below;
    int count = 0;
#pragma unroll
    for (int e = 0; e < N; ++e) count += !(value(e) <= limit);
    if (k > truth.label || k + N <= truth.label) return count;
    int label = (int)(truth.label - k);
    count = 0;
    for (int e = 0; e < N; ++e)
        count += e != label && !(e < label ? value(e) < truth.logit : value(e) <= truth.logit);
    return count;
}

/* N logits from column k on. The sum of exponentials shrinks where a larger one comes. */
template <int N, class Value>
static __device__ __forceinline__ void add_logits(Logits *of, int64_t k, Truth truth, Value value)
{
    float most = value(0), before = of->best;
#pragma unroll
    for (int e = 1; e < N; ++e) most = fmaxf(most, value(e));
    of->at = most > before ? k : of->at;
    of->best = fmaxf(most, before);
    of->exps *= __expf(before - of->best);
#pragma unroll
    for (int e = 0; e < N; ++e) of->exps += __expf(value(e) - of->best);
    of->beaten += count_beaten<N>(k, truth, value);
    if (truth.smoothed)
        for (int e = 0; e < N; ++e) of->sum += value(e);
}

template <class T, int E, bool PACKS> static __global__ void softmax_kernel(LossRun run)
{
    int64_t row = blockIdx.x;
    float *out = run.columns + row * LOSS_COLUMNS;
    if (row >= run.real) {
        if (threadIdx.x == 0) {
            store_columns(out, 0, 0, 0);
            run.log_sum[row] = 0;
        }
        return;
    }
    const T *x = (const T *)run.x + row * run.stride;
    int32_t label = run.labels[row]; /* one out of range makes the loss NaN */
    bool valid = label >= 0 && label < run.width;
    float logit = valid ? value_of(x[label]) : nanf("");
    Truth truth = {label, logit, nextafterf(logit, -INFINITY), run.smoothing != 0};
    Logits mine = {-FLT_MAX, 0, 0, 0, run.width};
    in_batches<BATCH>(
        threadIdx.x, run.width / E, blockDim.x,
        [&](int64_t i) { return read<E, PACKS>(x + i * E); },
        [&](int64_t i, const Pack<T, E> &v) {
            add_logits<E>(&mine, i * E, truth, [&](int e) { return v[e]; });
        });
    int64_t rest = run.width / E * E + threadIdx.x;
    if (rest < run.width) add_logits<1>(&mine, rest, truth, [&](int) { return value_of(x[rest]); });
    Logits all = join(mine);
    if (threadIdx.x != 0) return;
    while (all.at < run.width && value_of(x[all.at]) != all.best) ++all.at;
    float log_sum = all.best + logf(all.exps), s = run.smoothing;
    run.log_sum[row] = log_sum;
    float loss = (1 - s) * (log_sum - logit) + s * (log_sum - all.sum / run.width);
    store_columns(out, loss, (float)all.beaten, all.at < run.width ? (float)all.at : 0);
}

/* E gradients from column k on; zeros beyond the width. */
template <class T, int E, bool PACKS> static __global__ void softmax_backward_kernel(LossRun run)
{
    int64_t row = blockIdx.x;
    const T *x = (const T *)run.x + row * run.stride;
    T *dx = (T *)run.dx + row * run.stride;
    if (row >= run.real) {
        for (int64_t i = threadIdx.x; i < run.stride / E; i += blockDim.x)
            write_zeros<E, PACKS>(dx + i * E);
        return;
    }
    float log_sum = run.log_sum[row], scale = scale_of(run);
    float off = run.smoothing / run.width, on = off + (1 - run.smoothing);
    int32_t label = run.labels[row];
    in_batches<BATCH>(
        threadIdx.x, run.stride / E, blockDim.x,
        [&](int64_t i) { return read<E, PACKS>(x + i * E); },
        [&](int64_t i, const Pack<T, E> &v) {
            float out[E];
            int here = label / E == i ? (int)(label % E) : -1;
            int end = i < run.width / E ? E : (int)(run.width % E);
#pragma unroll
            for (int e = 0; e < E; ++e) {
                float gradient = scale * (__expf(v[e] - log_sum) - (e == here ? on : off));
                out[e] = e < end ? gradient : 0;
            }
            write<E, PACKS>(dx + i * E, out);
        });
}

/* A warp a row. */
template <class T> static __global__ void mse_kernel(LossRun run)
{
    int lane = threadIdx.x % WARP;
    int64_t row = warp_row();
    if (row >= run.rows) return;
    float sum = 0;
    if (row < run.real)
        for (int64_t k = lane; k < run.width; k += WARP) {
            float d = value_of(((const T *)run.x)[row * run.stride + k]) -
                      run.targets[row * run.width + k];
            sum += d * d;
        }
    sum = warp_sum(sum);
    if (lane == 0) store_columns(run.columns + row * LOSS_COLUMNS, sum / run.width, 0, 0);
}

template <class T> static __global__ void mse_backward_kernel(LossRun run)
{
    int64_t row = warp_row();
    if (row >= run.rows) return;
    float scale = scale_of(run) * 2 / run.width;
    for (int64_t k = threadIdx.x % WARP; k < run.stride; k += WARP) {
        float gradient = 0;
        if (row < run.real && k < run.width)
            gradient = scale * (value_of(((const T *)run.x)[row * run.stride + k]) -
                                run.targets[row * run.width + k]);
        set((T *)run.dx + row * run.stride + k, gradient);
    }
}

static unsigned row_threads(const LossRun &run)
{
    return run.width <= NARROW ? WARP : THREADS;
}

cudaError_t cuda_softmax_loss(cudaStream_t stream, LossRun run)
{
    int wide = cuda_pack(run.type, run.stride);
    bool packs = in_packs(run.x);
    unsigned blocks = (unsigned)run.rows, threads = row_threads(run);
#define KERNEL(T, N, P) softmax_kernel<T, N, P><<<blocks, threads, 0, stream>>>(run)
#define LAUNCH(T)       WIDE_OR_ONE(KERNEL, T)
    if (run.rows > 0) TYPE_SWITCH(run.type, LAUNCH);
#undef KERNEL
    return cudaGetLastError();
}

cudaError_t cuda_softmax_loss_backward(cudaStream_t stream, LossRun run)
{
    int wide = cuda_pack(run.type, run.stride);
    bool packs = in_packs(run.x, run.dx);
    unsigned blocks = (unsigned)run.rows, threads = row_threads(run);
#define KERNEL(T, N, P) softmax_backward_kernel<T, N, P><<<blocks, threads, 0, stream>>>(run)
    if (run.rows > 0) TYPE_SWITCH(run.type, LAUNCH);
#undef LAUNCH
#undef KERNEL
    return cudaGetLastError();
}

cudaError_t cuda_mse_loss(cudaStream_t stream, LossRun run)
{
#define LAUNCH(T) mse_kernel<T><<<blocks_for(run.rows, WARPS), THREADS, 0, stream>>>(run)
    if (run.rows > 0) TYPE_SWITCH(run.type, LAUNCH);
#undef LAUNCH
    return cudaGetLastError();
}

cudaError_t cuda_mse_loss_backward(cudaStream_t stream, LossRun run)
{
#define LAUNCH(T) mse_backward_kernel<T><<<blocks_for(run.rows, WARPS), THREADS, 0, stream>>>(run)
    if (run.rows > 0) TYPE_SWITCH(run.type, LAUNCH);
#undef LAUNCH
    return cudaGetLastError();
}
