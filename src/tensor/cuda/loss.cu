/* Softmax cross-entropy with label smoothing, and mean squared error: a block a row, of one warp or WARPS of them. */
#include "loss.cuh"

static __device__ __forceinline__ float scale_of(const LossRun &run)
{
    return run.numbers ? run.numbers->loss_scale : run.scale;
}

template <class T, int E, bool PACKS> static __global__ void softmax_kernel(LossRun run)
{
    int64_t row = blockIdx.x;
    if (row >= run.real) {
        if (threadIdx.x == 0) store_padding(run, row);
        return;
    }
    const T *x = (const T *)run.x + row * run.stride;
    int32_t label = run.labels[row]; /* one out of range makes the loss NaN */
    bool valid = label >= 0 && label < run.width;
    float logit = valid ? value_of(x[label]) : nanf("");
    Logits all = row_logits<T, E, PACKS>(run, x, truth_of(run, row, logit));
    if (threadIdx.x == 0) store_row(run, row, all, logit);
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
    float off = run.smoothing / run.classes, on = off + (1 - run.smoothing);
    int64_t label = run.labels[row] - run.first; /* of a slice perhaps not here */
    in_batches<BATCH>(
        threadIdx.x, run.stride / E, blockDim.x,
        [&](int64_t i) { return read<E, PACKS>(x + i * E); },
        [&](int64_t i, const Pack<T, E> &v) {
            float out[E];
            int64_t place = label - i * E;
            int here = place >= 0 && place < E ? (int)place : -1;
            int64_t left = run.width - i * E;
            int end = left < E ? (int)left : E;
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
    if (lane < LOSS_COLUMNS) run.columns[row * LOSS_COLUMNS + lane] = lane ? 0 : sum / run.width;
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
