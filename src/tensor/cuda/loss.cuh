/* One pass over a row of logits by a block of one warp or of ROW_THREADS threads, and the numbers
 * that softmax_loss takes from it. For whole rows (loss.cu) and for the slices of one rank
 * (softmax_sliced.cu). */
#ifndef WEFT_LOSS_CUH
#define WEFT_LOSS_CUH

#include "elem.cuh"
#include <cfloat>

enum {
    BATCH = 4,
    /* rows of up to this many columns are read by one warp */
    NARROW = 1024,
    ROW_THREADS = 512,
    /* blocks for wide rows that a processor has registers and shared memory for */
    ROW_BLOCKS = 2
};
#define ROW_KERNEL static __global__ void __launch_bounds__(ROW_THREADS, ROW_BLOCKS)

static unsigned row_threads(const LossRun &run)
{
    return run.width <= NARROW ? (unsigned)WARP : (unsigned)ROW_THREADS;
}

/* Finds the largest value of a warp and the lowest index that has it, on every lane. */
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

/* Summary of some of a row's logits: best, the largest; at, the column of the first one that is
 * best, or of its pack; exps, the sum of exp(logit - best); beaten, how many rank before the label;
 * sum, of the logits. */
struct Logits {
    float best, exps, sum;
    int beaten;
    int64_t at;
};

static __device__ __forceinline__ void merge_logits(Logits *all, const Logits &o)
{
    float best = fmaxf(all->best, o.best);
    all->exps = all->exps * expf(all->best - best) + o.exps * expf(o.best - best);
    if (o.best > all->best || (o.best == all->best && o.at < all->at)) all->at = o.at;
    all->best = best;
    all->beaten += o.beaten;
    all->sum += o.sum;
}

static __device__ __forceinline__ Logits no_logits(int64_t width)
{
    return {-FLT_MAX, 0, 0, 0, width};
}

/* Joins the summaries of a warp's lanes, on every lane. */
static __device__ __forceinline__ Logits warp_join(const Logits &mine)
{
    Logits all = mine;
    warp_max(&all.best, &all.at);
    all.exps = warp_sum(mine.exps * expf(mine.best - all.best));
    all.beaten = (int)warp_sum((float)mine.beaten);
    all.sum = warp_sum(mine.sum);
    return all;
}

/* Joins the summaries of a block's threads, in its first warp. */
static __device__ __forceinline__ Logits join(const Logits &mine, int64_t width)
{
    __shared__ Logits of[ROW_THREADS / WARP];
    Logits all = warp_join(mine);
    if (blockDim.x == WARP) return all;
    if (threadIdx.x % WARP == 0) of[threadIdx.x / WARP] = all;
    __syncthreads();
    if (threadIdx.x >= WARP) return all;
    return warp_join(threadIdx.x < blockDim.x / WARP ? of[threadIdx.x] : no_logits(width));
}

/* The label's column, which may be in another rank's slice, its logit, and the next smaller float,
 * for comparisons. */
struct Truth {
    int64_t label;
    float logit, below;
    bool smoothed;
};

static __device__ __forceinline__ Truth truth_of(const LossRun &run, int64_t row, float logit)
{
    return {run.labels[row] - run.first, logit, nextafterf(logit, -INFINITY), run.smoothing != 0};
}

/* Counts those of N logits from column k on that rank before the label: larger logits, and equal
 * ones in an earlier column. All rank before a label that is NaN. In earlier columns, "larger or
 * equal" is tested as "larger than the next smaller float". */
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

/* Adds N logits from column k on. The sum of exponentials is scaled down when a larger logit
 * comes. */
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

/* Summary of a row, in thread 0. keep(i, pack) is called for every whole pack, by the thread that
 * has read it. `at` becomes the column of the first largest logit, or 0 if all are NaN. */
template <class T, int E, bool PACKS, class Keep>
static __device__ __forceinline__ Logits row_logits(const LossRun &run, const T *x, Truth truth,
                                                    Keep keep)
{
    Logits mine = no_logits(run.width);
    in_batches<BATCH>(
        threadIdx.x, run.width / E, blockDim.x,
        [&](int64_t i) { return read<E, PACKS>(x + i * E); },
        [&](int64_t i, const Pack<T, E> &v) {
            keep(i, v);
            add_logits<E>(&mine, i * E, truth, [&](int e) { return v[e]; });
        });
    int64_t rest = run.width / E * E + threadIdx.x;
    if (rest < run.width) add_logits<1>(&mine, rest, truth, [&](int) { return value_of(x[rest]); });
    Logits all = join(mine, run.width);
    if (threadIdx.x != 0) return all;
    if (all.at >= run.width) {
        all.at = 0;
        return all;
    }
    int64_t first = all.at / E * E;
    Pack<T, E> v = read<E, PACKS>(x + first);
    for (int e = E - 1; e >= 0; --e)
        if (first + e < run.width && v[e] == all.best) all.at = first + e;
    return all;
}

/* Writes the row's columns and log_sum; returns log_sum. */
static __device__ __forceinline__ float store_row(const LossRun &run, int64_t row,
                                                  const Logits &all, float truth)
{
    float log_sum = all.best + logf(all.exps), s = run.smoothing,
          *out = run.columns + row * LOSS_COLUMNS;
    out[0] = (1 - s) * (log_sum - truth) + s * (log_sum - all.sum / run.classes);
    out[1] = (float)all.beaten;
    out[2] = (float)all.at;
    return run.log_sum[row] = log_sum;
}

static __device__ __forceinline__ void store_padding(const LossRun &run, int64_t row)
{
    for (int c = 0; c < LOSS_COLUMNS; ++c) run.columns[row * LOSS_COLUMNS + c] = 0;
    run.log_sum[row] = 0;
}

#endif
