/* Softmax cross-entropy with label smoothing, and mean squared error: one warp a row. */
#include "elem.cuh"
#include <cfloat>

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

static __device__ __forceinline__ void store_columns(float *out, float loss, float beaten, float at)
{
    out[0] = loss;
    out[1] = beaten;
    out[2] = at;
}

template <class T> static __global__ void softmax_kernel(LossRun run)
{
    int lane = threadIdx.x % WARP;
    int64_t row = warp_row();
    if (row >= run.rows) return;
    float *out = run.columns + row * LOSS_COLUMNS;
    if (row >= run.real) {
        if (lane == 0) {
            store_columns(out, 0, 0, 0);
            run.log_sum[row] = 0;
        }
        return;
    }
    const T *x = (const T *)run.x + row * run.stride;
    int32_t label = run.labels[row]; /* one out of range makes the loss NaN */
    bool valid = label >= 0 && label < run.width;
    float best = -FLT_MAX, truth = valid ? value_of(x[label]) : nanf("");
    int64_t at = run.width;
    float beaten = 0, sum = 0, exps = 0;
    /* One pass: the sum of exponentials shrinks where a larger one comes. */
    for (int64_t k = lane; k < run.width; k += WARP) {
        float value = value_of(x[k]);
        if (value > best) {
            exps *= expf(best - value);
            best = value;
            at = k;
        }
        exps += expf(value - best);
        /* larger, or equal and earlier; a label that is NaN is beaten by all */
        beaten += k != label && !(k < label ? value < truth : value <= truth);
        sum += value;
    }
    float mine = best;
    warp_max(&best, &at);
    exps = warp_sum(exps * expf(mine - best));
    beaten = warp_sum(beaten);
    sum = warp_sum(sum);
    if (lane != 0) return;
    float log_sum = best + logf(exps), s = run.smoothing;
    run.log_sum[row] = log_sum;
    float loss = (1 - s) * (log_sum - truth) + s * (log_sum - sum / run.width);
    store_columns(out, loss, beaten, at < run.width ? (float)at : 0);
}

template <class T> static __global__ void softmax_backward_kernel(LossRun run)
{
    int64_t i = element();
    if (i >= run.rows * run.stride) return;
    int64_t row = i / run.stride, k = i % run.stride;
    float s = run.smoothing, gradient = 0;
    if (row < run.real && k < run.width) {
        float target = s / run.width + (k == run.labels[row] ? 1 - s : 0);
        gradient = run.scale * (expf(value_of(((const T *)run.x)[i]) - run.log_sum[row]) - target);
    }
    set((T *)run.dx + i, gradient);
}

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
    int64_t i = element();
    if (i >= run.rows * run.stride) return;
    int64_t row = i / run.stride, k = i % run.stride;
    float gradient = 0;
    if (row < run.real && k < run.width)
        gradient = run.scale * 2 / run.width *
                   (value_of(((const T *)run.x)[i]) - run.targets[row * run.width + k]);
    set((T *)run.dx + i, gradient);
}

cudaError_t cuda_softmax_loss(cudaStream_t stream, LossRun run)
{
#define LAUNCH(T) softmax_kernel<T><<<blocks_for(run.rows, WARPS), THREADS, 0, stream>>>(run)
    if (run.rows > 0) TYPE_SWITCH(run.type, LAUNCH);
#undef LAUNCH
    return cudaGetLastError();
}

cudaError_t cuda_softmax_loss_backward(cudaStream_t stream, LossRun run)
{
    int64_t n = run.rows * run.stride;
#define LAUNCH(T) softmax_backward_kernel<T><<<blocks_for(n, THREADS), THREADS, 0, stream>>>(run)
    if (n > 0) TYPE_SWITCH(run.type, LAUNCH);
#undef LAUNCH
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
    int64_t n = run.rows * run.stride;
#define LAUNCH(T) mse_backward_kernel<T><<<blocks_for(n, THREADS), THREADS, 0, stream>>>(run)
    if (n > 0) TYPE_SWITCH(run.type, LAUNCH);
#undef LAUNCH
    return cudaGetLastError();
}
