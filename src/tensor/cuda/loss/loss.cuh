/* One pass over a row of logits, which computes the numbers that softmax_loss needs. A block of one
 * warp or of ROW_THREADS threads computes a row. Used for complete rows (loss.cu) and for slices of
 * rows (softmax_sliced.cu). */
#ifndef WEFT_LOSS_CUH
#define WEFT_LOSS_CUH

#include "cuda_loss_kernels.h"
#include "../passes/elem.cuh"
#include <cfloat>

enum {
    /* number of packs that a thread loads at a time */
    BATCH = 4,
    /* largest number of columns of a row that one warp reads; a wider row has ROW_THREADS
     * threads */
    WARP_COLUMNS_MAX = 1024,
    ROW_THREADS = 512,
    /* number of blocks of ROW_THREADS threads that a multiprocessor must be able to run at a time;
     * it limits their registers and their shared memory */
    ROW_BLOCKS = 2
};
#define ROW_KERNEL static __global__ void __launch_bounds__(ROW_THREADS, ROW_BLOCKS)

static unsigned row_threads(const LossRun &run)
{
    return run.width <= WARP_COLUMNS_MAX ? (unsigned)WARP : (unsigned)ROW_THREADS;
}

/* Sets *value to the largest value of the warp's lanes, and *column to the lowest column that has
 * this value, on every lane. */
static __device__ __forceinline__ void warp_max(float *value, int64_t *column)
{
    for (int step = WARP / 2; step > 0; step /= 2) {
        float other = __shfl_xor_sync(EVERY_LANE, *value, step);
        int64_t other_column = __shfl_xor_sync(EVERY_LANE, (long long)*column, step);
        if (other > *value || (other == *value && other_column < *column)) {
            *value = other;
            *column = other_column;
        }
    }
}

/* Summary of some logits of a row. */
struct Logits {
    /* largest logit */
    float max;
    /* sum of exp(logit - max) */
    float exp_sum;
    /* sum of the logits; 0 without label smoothing */
    float sum;
    /* number of logits that rank before the label */
    int before_label;
    /* column of the first logit that equals `max`; while the row is read, the first column of the
     * pack with this logit */
    int64_t max_column;
};

static __device__ __forceinline__ void merge_logits(Logits *all, const Logits &other)
{
    float max = fmaxf(all->max, other.max);
    all->exp_sum = all->exp_sum * expf(all->max - max) + other.exp_sum * expf(other.max - max);
    if (other.max > all->max || (other.max == all->max && other.max_column < all->max_column))
        all->max_column = other.max_column;
    all->max = max;
    all->before_label += other.before_label;
    all->sum += other.sum;
}

/* Returns the summary of no logits, in a row of `width` columns. */
static __device__ __forceinline__ Logits empty_logits(int64_t width)
{
    return {-FLT_MAX, 0, 0, 0, width};
}

/* Merges the summaries of a warp's lanes, on every lane. */
static __device__ __forceinline__ Logits warp_merge(const Logits &mine)
{
    Logits all = mine;
    warp_max(&all.max, &all.max_column);
    all.exp_sum = warp_sum(mine.exp_sum * expf(mine.max - all.max));
    all.before_label = (int)warp_sum((float)mine.before_label);
    all.sum = warp_sum(mine.sum);
    return all;
}

/* Merges the summaries of a block's threads. The result is valid in the first warp. */
static __device__ __forceinline__ Logits block_merge(const Logits &mine, int64_t width)
{
    __shared__ Logits warps[ROW_THREADS / WARP];
    Logits all = warp_merge(mine);
    if (blockDim.x == WARP) return all;
    if (threadIdx.x % WARP == 0) warps[threadIdx.x / WARP] = all;
    __syncthreads();
    if (threadIdx.x >= WARP) return all;
    return warp_merge(threadIdx.x < blockDim.x / WARP ? warps[threadIdx.x] : empty_logits(width));
}

struct Label {
    /* column of the label relative to this slice; may be outside the slice */
    int64_t column;
    /* logit of the label */
    float logit;
    /* the largest float below `logit` (count_before_label) */
    float below;
    /* true: label smoothing is on, so the sum of the logits is needed */
    bool smoothed;
};

static __device__ __forceinline__ Label make_label(const LossRun &run, int64_t row, float logit)
{
    return {run.labels[row] - run.first, logit, nextafterf(logit, -INFINITY), run.smoothing != 0};
}

/* Returns how many of the N logits from column k on rank before the label: logits that are larger,
 * or equal and in an earlier column. If the label's logit is NaN, all logits rank before it. In
 * earlier columns "larger or equal" is tested as "larger than label.below". value(e): logit of
 * column k + e. */
template <int N, class Value>
static __device__ __forceinline__ int count_before_label(int64_t k, Label label, Value value)
{
    float limit = k > label.column ? label.logit : label.below;
    int count = 0;
#pragma unroll
    for (int e = 0; e < N; ++e) count += !(value(e) <= limit);
    if (k > label.column || k + N <= label.column) return count;
    int at_label = (int)(label.column - k);
    count = 0;
    for (int e = 0; e < N; ++e)
        count +=
            e != at_label && !(e < at_label ? value(e) < label.logit : value(e) <= label.logit);
    return count;
}

/* Adds N logits from column k on to a summary. After a new maximum, the sum of exponentials is
 * scaled down. value(e): logit of column k + e. */
template <int N, class Value>
static __device__ __forceinline__ void add_logits(Logits *all, int64_t k, Label label, Value value)
{
    float max = value(0), before = all->max;
#pragma unroll
    for (int e = 1; e < N; ++e) max = fmaxf(max, value(e));
    all->max_column = max > before ? k : all->max_column;
    all->max = fmaxf(max, before);
    all->exp_sum *= __expf(before - all->max);
#pragma unroll
    for (int e = 0; e < N; ++e) all->exp_sum += __expf(value(e) - all->max);
    all->before_label += count_before_label<N>(k, label, value);
    if (label.smoothed)
        for (int e = 0; e < N; ++e) all->sum += value(e);
}

/* Returns the summary of a row, valid in thread 0. Its max_column is 0 if no logit is larger than
 * -FLT_MAX. keep(i, pack) is called for every pack i with E columns of the row, by the thread that
 * has read the pack. */
template <class T, int E, bool ALIGNED, class Keep>
static __device__ __forceinline__ Logits row_logits(const LossRun &run, const T *x, Label label,
                                                    Keep keep)
{
    Logits mine = empty_logits(run.width);
    in_batches<BATCH>(
        threadIdx.x, run.width / E, blockDim.x,
        [&](int64_t i) { return read_pack<E, ALIGNED>(x + i * E); },
        [&](int64_t i, const Pack<T, E> &v) {
            keep(i, v);
            add_logits<E>(&mine, i * E, label, [&](int e) { return v[e]; });
        });
    int64_t rest = run.width / E * E + threadIdx.x;
    if (rest < run.width) add_logits<1>(&mine, rest, label, [&](int) { return as_float(x[rest]); });
    Logits all = block_merge(mine, run.width);
    if (threadIdx.x != 0) return all;
    if (all.max_column >= run.width) {
        all.max_column = 0;
        return all;
    }
    int64_t first = all.max_column / E * E;
    Pack<T, E> v = read_pack<E, ALIGNED>(x + first);
    for (int e = E - 1; e >= 0; --e)
        if (first + e < run.width && v[e] == all.max) all.max_column = first + e;
    return all;
}

/* Writes the results of a row and its log_sum; returns log_sum. */
static __device__ __forceinline__ float store_row(const LossRun &run, int64_t row,
                                                  const Logits &all, float label_logit)
{
    float log_sum = all.max + logf(all.exp_sum), s = run.smoothing,
          *out = run.results + row * LOSS_COLUMNS;
    out[0] = (1 - s) * (log_sum - label_logit) + s * (log_sum - all.sum / run.classes);
    out[1] = (float)all.before_label;
    out[2] = (float)all.max_column;
    return run.log_sum[row] = log_sum;
}

static __device__ __forceinline__ void store_padding(const LossRun &run, int64_t row)
{
    for (int c = 0; c < LOSS_COLUMNS; ++c) run.results[row * LOSS_COLUMNS + c] = 0;
    run.log_sum[row] = 0;
}

#endif
