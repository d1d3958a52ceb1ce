/* Batch norm over the rows of a (rows, channels) matrix: an image's pixels, channels last. Sums are taken in double, over parts
 * of the rows, a cut by shape alone, and the parts are joined in order. */
#include "act.cuh"
#include "elem.cuh"

/* Grid: channels / WARP, parts. Lane = channel, warp w adds rows w, w + WARPS, ... of the part; then warp 0 adds the warps in order.
 * f(row, channel, sum) adds to two sums. */
template <class F> static __device__ __forceinline__ void sum_part(const BatchNormRun &run, F f)
{
    __shared__ double part[WARPS][2][WARP];
    int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
    int64_t c = (int64_t)blockIdx.x * WARP + lane;
    int64_t first = run.real * blockIdx.y / gridDim.y,
            last = run.real * (blockIdx.y + 1) / gridDim.y;
    double sum[2] = {0, 0};
    if (c < run.channels)
        for (int64_t row = first + warp; row < last; row += WARPS) f(row, c, sum);
    part[warp][0][lane] = sum[0];
    part[warp][1][lane] = sum[1];
    __syncthreads();
    if (warp != 0 || c >= run.channels) return;
    for (int k = 0; k < 2; ++k) {
        for (int w = 1; w < WARPS; ++w) sum[k] += part[w][k][lane];
        run.partial[(2 * blockIdx.y + k) * run.channels + c] = sum[k];
    }
}

static __device__ __forceinline__ double joined(const BatchNormRun &run, int which, int64_t c)
{
    double sum = 0;
    for (int64_t p = 0; p < run.parts; ++p) sum += run.partial[(2 * p + which) * run.channels + c];
    return sum;
}

/* Around the first row's value, so that a large mean costs no digits. */
template <class T> static __global__ void statistics_kernel(BatchNormRun run)
{
    const T *x = (const T *)run.x;
    sum_part(run, [&](int64_t row, int64_t c, double *sum) {
        double d = (double)value_of(x[row * run.channels + c]) - (double)value_of(x[c]);
        sum[0] += d;
        sum[1] += d * d;
    });
}

template <class T> static __global__ void finish_kernel(BatchNormRun run)
{
    int64_t c = element();
    if (c >= run.channels) return;
    double n = (double)run.real, d = n > 0 ? joined(run, 0, c) / n : 0;
    double variance = n > 0 ? joined(run, 1, c) / n - d * d : 0;
    if (variance < 0) variance = 0;
    BatchNormSaved s = run.saved;
    s.mean[c] = n > 0 ? (float)((double)value_of(((const T *)run.x)[c]) + d) : 0;
    s.inverse[c] = (float)(1 / sqrt(variance + run.eps));
    s.variance[c] = (float)(n > 1 ? variance * n / (n - 1) : 0);
}

static __global__ void running_kernel(BatchNormRun run)
{
    int64_t c = element();
    if (c >= run.channels) return;
    run.saved.mean[c] = run.running_mean[c];
    run.saved.inverse[c] = (float)(1 / sqrt((double)run.running_variance[c] + run.eps));
}

template <class T, Act ACT> static __global__ void apply_kernel(BatchNormRun run)
{
    int64_t i = element();
    if (i >= run.rows * run.channels) return;
    int64_t c = i % run.channels;
    float value = 0;
    if (i < run.real * run.channels) {
        value = (value_of(((const T *)run.x)[i]) - run.saved.mean[c]) *
                    (run.saved.inverse[c] * run.scale[c]) +
                run.shift[c];
        if (run.residual) value += value_of(((const T *)run.residual)[i]);
        value = act_value<ACT>(value);
    }
    set((T *)run.y + i, value);
}

template <class T> static __global__ void grad_sums_kernel(BatchNormRun run)
{
    sum_part(run, [&](int64_t row, int64_t c, double *sum) {
        float dy = value_of(((const T *)run.dy)[row * run.channels + c]);
        float x = value_of(((const T *)run.x)[row * run.channels + c]);
        sum[0] += dy;
        sum[1] += (double)dy * ((x - run.saved.mean[c]) * run.saved.inverse[c]);
    });
}

static __global__ void grad_finish_kernel(BatchNormRun run)
{
    int64_t c = element();
    if (c >= run.channels) return;
    run.saved.dy[c] = (float)joined(run, 0, c);
    run.saved.dy_x[c] = (float)joined(run, 1, c);
}

template <class T> static __global__ void grad_kernel(BatchNormRun run)
{
    int64_t i = element();
    if (i >= run.rows * run.channels) return;
    int64_t c = i % run.channels;
    float value = 0;
    if (i < run.real * run.channels) {
        float inverse = run.saved.inverse[c], n = (float)run.real;
        float hat = (value_of(((const T *)run.x)[i]) - run.saved.mean[c]) * inverse;
        value =
            run.scale[c] * inverse *
            (value_of(((const T *)run.dy)[i]) - run.saved.dy[c] / n - hat * run.saved.dy_x[c] / n);
    }
    set((T *)run.dx + i, value);
}

static dim3 parts_grid(const BatchNormRun &run)
{
    return dim3(blocks_for(run.channels, WARP), (unsigned)run.parts);
}

cudaError_t cuda_batch_norm(cudaStream_t stream, BatchNormRun run)
{
    int64_t n = run.rows * run.channels;
#define STATISTICS(T)                                                                              \
    statistics_kernel<T><<<parts_grid(run), THREADS, 0, stream>>>(run);                            \
    finish_kernel<T><<<blocks_for(run.channels, THREADS), THREADS, 0, stream>>>(run)
    if (run.training)
        TYPE_SWITCH(run.type, STATISTICS);
    else
        running_kernel<<<blocks_for(run.channels, THREADS), THREADS, 0, stream>>>(run);
#define LAUNCH_ACT(A) apply_kernel<Elem, A><<<blocks_for(n, THREADS), THREADS, 0, stream>>>(run)
#define LAUNCH(T)                                                                                  \
    typedef T Elem;                                                                                \
    ACT_SWITCH(run.act, LAUNCH_ACT)
    if (n > 0) TYPE_SWITCH(run.type, LAUNCH);
#undef LAUNCH
    return cudaGetLastError();
}

cudaError_t cuda_batch_norm_sums(cudaStream_t stream, BatchNormRun run)
{
#define LAUNCH(T) grad_sums_kernel<T><<<parts_grid(run), THREADS, 0, stream>>>(run)
    TYPE_SWITCH(run.type, LAUNCH);
#undef LAUNCH
    grad_finish_kernel<<<blocks_for(run.channels, THREADS), THREADS, 0, stream>>>(run);
    return cudaGetLastError();
}

cudaError_t cuda_batch_norm_data(cudaStream_t stream, BatchNormRun run)
{
    int64_t n = run.rows * run.channels;
#define LAUNCH(T) grad_kernel<T><<<blocks_for(n, THREADS), THREADS, 0, stream>>>(run)
    if (n > 0) TYPE_SWITCH(run.type, LAUNCH);
#undef LAUNCH
    return cudaGetLastError();
}
