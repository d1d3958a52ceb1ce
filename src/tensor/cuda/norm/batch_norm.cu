/* Batch norm over the rows of a matrix (rows, channels); the rows of channels-last images are their
 * pixels. A thread adds a batch of a few rows in float, and the sums of batches in double. */
#include "../passes/act.cuh"
#include "../passes/columns.cuh"

/* BATCH: rows that a thread loads at a time. RESIDENT: number of blocks that a multiprocessor must
 * be able to run at a time, so that all blocks of cuda_sum_parts run at the same time. */
enum { BATCH = 4, RESIDENT = 2 };

/* Sums (x - x0) and (x - x0)^2 of each channel, where x0 is the first row. So a large mean costs no
 * precision. */
template <class T, int E, bool ALIGNED>
static __global__ void __launch_bounds__(THREADS, RESIDENT) statistics_kernel(BatchNormRun run)
{
    int64_t c = first_column<E>(), channels = run.channels;
    const T *x = (const T *)run.x + c;
    Pack<T, E> origin = c < channels ? read_pack<E, ALIGNED>(x) : Pack<T, E>();
    sum_part<double, 2, E, 6>(
        run.partial, run.real, channels,
        [&](int64_t row) { return read_pack<E, ALIGNED>(x + row * channels); },
        [&](int64_t, const Pack<T, E> &v, float(*sum)[E]) {
#pragma unroll
            for (int k = 0; k < E; ++k) {
                float d = v[k] - origin[k];
                sum[0][k] += d;
                sum[1][k] += d * d;
            }
        });
}

/* Saves factor and shift of a channel, because backward_begin gets no parameters. */
static __device__ __forceinline__ void save_factor(const BatchNormRun &run, int64_t c)
{
    run.saved.factor[c] = run.scale[c] * run.saved.inverse[c];
    run.saved.shift[c] = run.shift[c];
}

/* Computes the statistics of the micro-batch from the parts of the two sums. */
template <class T> static __global__ void finish_kernel(BatchNormRun run, int64_t parts)
{
    int64_t c = (int64_t)blockIdx.x * WARP + threadIdx.x;
    double sum[2];
    if (!join_parts<double, 2>(run.partial, parts, run.channels, c, sum)) return;
    double n = (double)run.real, d = n > 0 ? sum[0] / n : 0;
    double variance = n > 0 ? sum[1] / n - d * d : 0;
    if (variance < 0) variance = 0;
    BatchNormSaved s = run.saved;
    s.mean[c] = n > 0 ? (float)((double)as_float(((const T *)run.x)[c]) + d) : 0;
    s.inverse[c] = (float)(1 / sqrt(variance + run.eps));
    s.variance[c] = (float)(n > 1 ? variance * n / (n - 1) : 0);
    save_factor(run, c);
}

/* Saves the running statistics, in evaluation. */
static __global__ void running_kernel(BatchNormRun run)
{
    int64_t c = element();
    if (c >= run.channels) return;
    run.saved.mean[c] = run.running_mean[c];
    run.saved.inverse[c] = (float)(1 / sqrt((double)run.running_variance[c] + run.eps));
    save_factor(run, c);
}

/* Parameters of the normalisation of a thread's columns, without residual and activation. */
template <int E> struct Normal {
    float mean[E], factor[E], shift[E];
    template <bool ALIGNED>
    __device__ __forceinline__ void read_from(const BatchNormRun &run, int64_t c)
    {
        read_floats<E, ALIGNED>(mean, run.saved.mean + c);
        read_floats<E, ALIGNED>(factor, run.saved.factor + c);
        read_floats<E, ALIGNED>(shift, run.saved.shift + c);
    }
    __device__ __forceinline__ float apply(int k, float x) const
    {
        return (x - mean[k]) * factor[k] + shift[k];
    }
};

/* Computes y. CLAMPS, here and in grad_sums_kernel: true: the activation is relu or relu6; false:
 * there is no activation. */
template <class T, int E, bool ALIGNED, bool CLAMPS>
static __global__ void __launch_bounds__(THREADS, 3) apply_kernel(BatchNormRun run)
{
    int64_t c = first_column<E>(), channels = run.channels;
    if (c >= channels) return;
    Normal<E> normal;
    normal.template read_from<ALIGNED>(run, c);
    const T *x = (const T *)run.x + c, *residual = (const T *)run.residual + c;
    T *y = (T *)run.y + c;
    each_row<BATCH>(
        run.rows,
        [&](int64_t row) {
            TwoPacks<T, E> v = {};
            v.a = read_pack<E, ALIGNED>(x + row * channels);
            if (run.residual) v.b = read_pack<E, ALIGNED>(residual + row * channels);
            return v;
        },
        [&](int64_t row, const TwoPacks<T, E> &v) {
            float out[E];
#pragma unroll
            for (int k = 0; k < E; ++k) {
                float value = normal.apply(k, v.a[k]);
                if (run.residual) value += v.b[k];
                if (CLAMPS) value = clamped(value, clamp_limit(run.act));
                out[k] = row < run.real ? value : 0;
            }
            write_floats<E, ALIGNED>(y + row * channels, out);
        });
}

template <bool CLAMPS>
static __device__ __forceinline__ float slope_at(const BatchNormRun &run, float at)
{
    return CLAMPS ? clamped_slope(at, clamp_limit(run.act)) : 1;
}

template <class T, int E> struct GradPacks {
    Pack<T, E> dy, x, y;
};

/* Sums g and g (x - mean), where g is dy times the slope of the activation. STORES: the slope is
 * computed from y, and g is stored in dy as the gradient of the residual. Otherwise the slope is
 * computed from x, here and again in grad_kernel, so that y is not read and dy is not written. */
template <class T, int E, bool ALIGNED, bool CLAMPS, bool STORES>
static __global__ void __launch_bounds__(THREADS, RESIDENT) grad_sums_kernel(BatchNormRun run)
{
    int64_t c = first_column<E>(), channels = run.channels;
    T *dy = (T *)run.dy + c;
    const T *x = (const T *)run.x + c, *y = (const T *)run.y + c;
    Normal<E> normal = {};
    if (c < channels) normal.template read_from<ALIGNED>(run, c);
    sum_part<double, 2, E, BATCH / 2>(
        run.partial, run.rows, channels,
        [&](int64_t row) {
            GradPacks<T, E> v = {};
            v.dy = read_pack<E, ALIGNED>(dy + row * channels);
            v.x = read_pack<E, ALIGNED>(x + row * channels);
            if (STORES) v.y = read_pack<E, ALIGNED>(y + row * channels);
            return v;
        },
        [&](int64_t row, const GradPacks<T, E> &v, float(*sum)[E]) {
            float masked[E];
#pragma unroll
            for (int k = 0; k < E; ++k)
                masked[k] =
                    v.dy[k] * slope_at<CLAMPS>(run, STORES ? v.y[k] : normal.apply(k, v.x[k]));
            if (STORES) write_floats<E, ALIGNED>(dy + row * channels, masked);
            if (row >= run.real) return;
#pragma unroll
            for (int k = 0; k < E; ++k) {
                sum[0][k] += masked[k];
                sum[1][k] += masked[k] * (v.x[k] - normal.mean[k]);
            }
        });
}

/* Computes saved.sum_dy and saved.sum_dy_xhat from the parts of the two sums. */
static __global__ void grad_finish_kernel(BatchNormRun run, int64_t parts)
{
    int64_t c = (int64_t)blockIdx.x * WARP + threadIdx.x;
    double sum[2];
    if (!join_parts<double, 2>(run.partial, parts, run.channels, c, sum)) return;
    run.saved.sum_dy[c] = (float)sum[0];
    run.saved.sum_dy_xhat[c] = (float)(sum[1] * run.saved.inverse[c]);
}

/* Destinations and sources of weights_kernel, which copies four arrays in one launch: the gradients
 * of scale and shift, mean and variance. From a NULL source, zeros are written. */
struct NormWeights {
    float *to[4];
    const float *from[4];
};
static __global__ void weights_kernel(NormWeights all, int64_t channels)
{
    int64_t c = element();
    if (c >= channels) return;
#pragma unroll
    for (int i = 0; i < 4; ++i) all.to[i][c] = all.from[i] ? all.from[i][c] : 0;
}

/* Computes dx = scale * inverse * (g - mean(g) - n * mean(g * n)), where n = (x - mean) * inverse
 * and g is dy times the slope of the activation. CLAMPS: true: dy has not been multiplied by the
 * slope yet. */
template <class T, int E, bool ALIGNED, bool CLAMPS>
static __global__ void __launch_bounds__(THREADS, 3) grad_kernel(BatchNormRun run)
{
    int64_t c = first_column<E>(), channels = run.channels;
    if (c >= channels) return;
    Normal<E> normal;
    float dy_mean[E], slope[E], inverse[E], n = (float)run.real;
    normal.template read_from<ALIGNED>(run, c);
    read_floats<E, ALIGNED>(inverse, run.saved.inverse + c);
    read_floats<E, ALIGNED>(dy_mean, run.saved.sum_dy + c);
    read_floats<E, ALIGNED>(slope, run.saved.sum_dy_xhat + c);
#pragma unroll
    for (int k = 0; k < E; ++k) {
        dy_mean[k] /= n;
        slope[k] = slope[k] / n * inverse[k];
    }
    const T *x = (const T *)run.x + c, *dy = (const T *)run.dy + c;
    T *dx = (T *)run.dx + c;
    each_row<BATCH / 2>(
        run.rows,
        [&](int64_t row) {
            TwoPacks<T, E> v = {};
            v.a = read_pack<E, ALIGNED>(x + row * channels);
            v.b = read_pack<E, ALIGNED>(dy + row * channels);
            return v;
        },
        [&](int64_t row, const TwoPacks<T, E> &v) {
            float out[E];
#pragma unroll
            for (int k = 0; k < E; ++k) {
                float masked = v.b[k] * slope_at<CLAMPS>(run, normal.apply(k, v.a[k]));
                float value =
                    normal.factor[k] * (masked - dy_mean[k] - (v.a[k] - normal.mean[k]) * slope[k]);
                out[k] = row < run.real ? value : 0;
            }
            write_floats<E, ALIGNED>(dx + row * channels, out);
        });
}

static int64_t sum_parts(const BatchNormRun &run)
{
    return cuda_sum_parts(run.type, run.rows, run.channels);
}

/* Returns whether the arrays with one number per channel are aligned to packs. */
static bool channels_aligned(const BatchNormRun &run)
{
    return aligned_to_packs(run.saved.factor, run.saved.shift, run.saved.mean, run.saved.inverse) &&
           aligned_to_packs(run.saved.sum_dy, run.saved.sum_dy_xhat);
}

static void compute_statistics(cudaStream_t stream, const BatchNormRun &run, int pack_size)
{
    int64_t parts = sum_parts(run);
    LaunchShape on = grid_over_parts(run.channels, pack_size, parts);
    bool aligned = aligned_to_packs(run.x);
#define KERNEL(T, N, P) statistics_kernel<T, N, P><<<on.grid, on.threads, 0, stream>>>(run)
#define LAUNCH(T)                                                                                  \
    PACK_SIZE_SWITCH(KERNEL, T);                                                                   \
    finish_kernel<T><<<blocks_for(run.channels, WARP), join_threads(), 0, stream>>>(run, parts)
    TYPE_SWITCH(run.type, LAUNCH);
#undef LAUNCH
#undef KERNEL
}

#define LAUNCH(T)                                                                                  \
    if (clamps) {                                                                                  \
        const bool CLAMPS = true;                                                                  \
        PACK_SIZE_SWITCH(KERNEL, T);                                                               \
    } else {                                                                                       \
        const bool CLAMPS = false;                                                                 \
        PACK_SIZE_SWITCH(KERNEL, T);                                                               \
    }

cudaError_t launch_batch_norm(cudaStream_t stream, BatchNormRun run)
{
    int pack_size = cuda_pack_size(run.type, run.channels);
    LaunchShape on = grid_over_rows(run.rows, run.channels, pack_size, BATCH);
    bool aligned = aligned_to_packs(run.x, run.y, run.residual) && channels_aligned(run);
    bool clamps = run.act != ACT_NONE;
    if (run.training)
        compute_statistics(stream, run, pack_size);
    else
        running_kernel<<<blocks_for(run.channels, THREADS), THREADS, 0, stream>>>(run);
#define KERNEL(T, N, P) apply_kernel<T, N, P, CLAMPS><<<on.grid, on.threads, 0, stream>>>(run)
    if (run.rows > 0) TYPE_SWITCH(run.type, LAUNCH);
#undef KERNEL
    return cudaGetLastError();
}

template <class T, int E, bool ALIGNED, bool CLAMPS>
static void queue_sums(cudaStream_t stream, const BatchNormRun &run, const LaunchShape &on)
{
    if (run.residual)
        grad_sums_kernel<T, E, ALIGNED, CLAMPS, CLAMPS><<<on.grid, on.threads, 0, stream>>>(run);
    else
        grad_sums_kernel<T, E, ALIGNED, CLAMPS, false><<<on.grid, on.threads, 0, stream>>>(run);
}

cudaError_t launch_batch_norm_sums(cudaStream_t stream, BatchNormRun run)
{
    int pack_size = cuda_pack_size(run.type, run.channels);
    int64_t parts = sum_parts(run);
    LaunchShape on = grid_over_parts(run.channels, pack_size, parts);
    bool aligned = aligned_to_packs(run.x, run.y, run.dy) && channels_aligned(run);
    bool clamps = run.act != ACT_NONE;
#define KERNEL(T, N, P) queue_sums<T, N, P, CLAMPS>(stream, run, on)
    TYPE_SWITCH(run.type, LAUNCH);
#undef KERNEL
    grad_finish_kernel<<<blocks_for(run.channels, WARP), join_threads(), 0, stream>>>(run, parts);
    return cudaGetLastError();
}

cudaError_t launch_batch_norm_weights(cudaStream_t stream, BatchNormRun run, float *const dw[4])
{
    const BatchNormSaved &s = run.saved;
    /* With fewer than two real rows there is no variance; mean and variance must then be 0
     * (OpRun.dw). saved.variance is 0 already. */
    const float *mean = run.real > 1 ? s.mean : NULL;
    NormWeights all = {{dw[0], dw[1], dw[2], dw[3]}, {s.sum_dy_xhat, s.sum_dy, mean, s.variance}};
    weights_kernel<<<blocks_for(run.channels, THREADS), THREADS, 0, stream>>>(all, run.channels);
    return cudaGetLastError();
}

cudaError_t launch_batch_norm_data(cudaStream_t stream, BatchNormRun run)
{
    int pack_size = cuda_pack_size(run.type, run.channels);
    LaunchShape on = grid_over_rows(run.rows, run.channels, pack_size, BATCH / 2);
    bool aligned = aligned_to_packs(run.x, run.dy, run.dx) && channels_aligned(run);
    bool clamps = !run.residual && run.act != ACT_NONE;
#define KERNEL(T, N, P) grad_kernel<T, N, P, CLAMPS><<<on.grid, on.threads, 0, stream>>>(run)
    if (run.rows > 0) TYPE_SWITCH(run.type, LAUNCH);
#undef KERNEL
    return cudaGetLastError();
}
