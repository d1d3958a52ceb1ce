/* Group norm of channels-last images. Sums over the pixels of a sample are in parts; their number
 * depends on the shape of a sample alone. A block then joins the parts for the channels of one
 * group. A thread adds a batch of a few pixels in float, and the sums of batches in double. */
#include "../passes/act.cuh"
#include "../passes/samples.cuh"

/* BATCH, RESIDENT: as in batch_norm.cu, with pixels as rows. */
enum { BATCH = 4, RESIDENT = 2 };

template <class T>
static __device__ __forceinline__ T *sample_at(const GroupNormRun &run, const void *images,
                                               int64_t sample, int64_t c)
{
    return sample_at<T>(images, sample, run.pixels, run.channels, c);
}

static __device__ __forceinline__ double *partial_of(const GroupNormRun &run, int64_t sample,
                                                     int64_t parts)
{
    return run.partial + sample * parts * 2 * run.channels;
}

/* Sums (x - x0) and (x - x0)^2 of each channel of each sample, where x0 is the first pixel of the
 * sample. So a large mean costs no precision. */
template <class T, int E, bool ALIGNED>
static __global__ void __launch_bounds__(THREADS, RESIDENT) statistics_kernel(GroupNormRun run)
{
    const int64_t c = first_column<E>(), channels = run.channels;
    for (int64_t sample = blockIdx.z; sample < run.real; sample += gridDim.z) {
        const T *x = sample_at<T>(run, run.x, sample, c);
        const Pack<T, E> origin = c < channels ? read_pack<E, ALIGNED>(x) : Pack<T, E>();
        sum_part<double, 2, E, 6>(
            partial_of(run, sample, gridDim.y), run.pixels, channels,
            [&](int64_t row) { return read_pack<E, ALIGNED>(x + row * channels); },
            [&](int64_t, const Pack<T, E> &v, float(*sum)[E]) {
#pragma unroll
                for (int k = 0; k < E; ++k) {
                    const float d = v[k] - origin[k];
                    sum[0][k] += d;
                    sum[1][k] += d * d;
                }
            });
    }
}

/* The group of channels that this block computes. */
struct Group {
    /* sample: the sample; channels: number of channels of the group; first: its first channel */
    int64_t sample, channels, first;
    __device__ __forceinline__ explicit Group(const GroupNormRun &run)
        : sample(blockIdx.x / run.groups), channels(run.channels / run.groups),
          first(blockIdx.x % run.groups * channels)
    {
    }
};

/* Joins the parts of the two sums of each channel of a group. Calls add(c, sum, mine) once for each
 * channel of the group; `add` adds A numbers to mine[A]. c: index of the channel among all channels
 * of the image; sum: the two sums of the channel. Sets all[A], in every thread of the block, to the
 * totals over the channels of the group. */
template <int A, class Add>
static __device__ __forceinline__ void join_group(const GroupNormRun &run, const Group &group,
                                                  int64_t parts, Add add, double all[A])
{
    __shared__ double shared[A][WARP];
    const double *partial = partial_of(run, group.sample, parts) + group.first;
    double mine[A] = {};
    for (int64_t at = 0; at < group.channels; at += blockDim.x) {
        const int64_t c = at + threadIdx.x < group.channels ? at + threadIdx.x : run.channels;
        double sum[2];
        if (join_parts<double, 2>(partial, parts, run.channels, c, sum))
            add(group.first + c, sum, mine);
        __syncthreads();
    }
    if (threadIdx.y == 0)
        for (int i = 0; i < A; ++i) shared[i][threadIdx.x] = mine[i];
    __syncthreads();
    for (int i = 0; i < A; ++i) {
        all[i] = 0;
        for (unsigned x = 0; x < blockDim.x; ++x) all[i] += shared[i][x];
    }
}

/* Calls f(c) once for each channel of the group, in one thread of the block. c: as in
 * join_group. */
template <class F> static __device__ __forceinline__ void each_channel(const Group &group, F f)
{
    for (int64_t i = threadIdx.y * blockDim.x + threadIdx.x; i < group.channels;
         i += blockDim.x * blockDim.y)
        f(group.first + i);
}

/* Computes the statistics of a group from the sums of its channels. Let m be the mean of a channel,
 * s the sum of the squared differences of its numbers from m, and n the number of numbers in the
 * group: n variance = sum(s) + pixels sum((m - mean)^2). */
template <class T> static __global__ void finish_kernel(GroupNormRun run, int64_t parts)
{
    const Group group(run);
    const T *x = sample_at<T>(run, run.x, group.sample, 0);
    const double pixels = (double)run.pixels, channels = (double)group.channels;
    double all[3] = {}, mean = 0, inverse = 0;
    if (group.sample < run.real) {
        const double origin = (double)as_float(x[group.first]);
        join_group<3>(
            run, group, parts,
            [&](int64_t c, const double *sum, double *add) {
                const double d = sum[0] / pixels, m = (double)as_float(x[c]) - origin + d;
                add[0] += m;
                add[1] += m * m;
                add[2] += sum[1] - pixels * d * d;
            },
            all);
        const double m = all[0] / channels;
        const double variance = all[2] / (pixels * channels) + (all[1] / channels - m * m);
        mean = origin + m;
        inverse = 1 / sqrt((variance > 0 ? variance : 0) + (double)run.eps);
    }
    const GroupNormSaved &s = run.saved;
    each_channel(group, [&](int64_t c) {
        const int64_t at = group.sample * run.channels + c;
        s.mean[at] = (float)mean;
        s.inverse[at] = (float)inverse;
        s.factor[at] = (float)(inverse * (run.scale ? (double)run.scale[c] : 1));
        /* the mean is rounded to float, and the shift corrects the error */
        s.shift[at] = (float)((run.shift ? (double)run.shift[c] : 0) -
                              (mean - (double)(float)mean) * (double)s.factor[at]);
    });
}

/* Parameters of the normalisation of a thread's columns in one sample, without the activation. */
template <int E> struct Normal {
    float mean[E], factor[E], shift[E];
    template <bool ALIGNED>
    __device__ __forceinline__ void read_from(const GroupNormRun &run, int64_t at)
    {
        read_floats<E, ALIGNED>(mean, run.saved.mean + at);
        read_floats<E, ALIGNED>(factor, run.saved.factor + at);
        read_floats<E, ALIGNED>(shift, run.saved.shift + at);
    }
    __device__ __forceinline__ float apply(int k, float x) const
    {
        return (x - mean[k]) * factor[k] + shift[k];
    }
};

/* Computes y. CLAMPS, here and below: true: the activation is relu or relu6; false: there is no
 * activation. */
template <class T, int E, bool ALIGNED, bool CLAMPS>
static __global__ void __launch_bounds__(THREADS, 3) apply_kernel(GroupNormRun run)
{
    const int64_t c = first_column<E>(), channels = run.channels;
    if (c >= channels) return;
    for (int64_t sample = blockIdx.z; sample < run.samples; sample += gridDim.z) {
        const bool real = sample < run.real;
        const T *x = sample_at<T>(run, run.x, sample, c);
        T *y = sample_at<T>(run, run.y, sample, c);
        Normal<E> normal;
        normal.template read_from<ALIGNED>(run, sample * channels + c);
        each_row<BATCH>(
            run.pixels, [&](int64_t row) { return read_pack<E, ALIGNED>(x + row * channels); },
            [&](int64_t row, const Pack<T, E> &v) {
                float out[E];
#pragma unroll
                for (int k = 0; k < E; ++k) {
                    float value = normal.apply(k, v[k]);
                    if (CLAMPS) value = clamped(value, clamp_limit(run.act));
                    out[k] = real ? value : 0;
                }
                write_floats<E, ALIGNED>(y + row * channels, out);
            });
    }
}

template <bool CLAMPS>
static __device__ __forceinline__ float slope_at(const GroupNormRun &run, float at)
{
    return CLAMPS ? clamped_slope(at, clamp_limit(run.act)) : 1;
}

/* Sums g and g (x - mean) of each channel of each sample, where g is dy times the slope of the
 * activation, which is computed from x. */
template <class T, int E, bool ALIGNED, bool CLAMPS>
static __global__ void __launch_bounds__(THREADS, RESIDENT) grad_sums_kernel(GroupNormRun run)
{
    const int64_t c = first_column<E>(), channels = run.channels;
    for (int64_t sample = blockIdx.z; sample < run.real; sample += gridDim.z) {
        const T *x = sample_at<T>(run, run.x, sample, c),
                *dy = sample_at<T>(run, run.dy, sample, c);
        Normal<E> normal = {};
        if (c < channels) normal.template read_from<ALIGNED>(run, sample * channels + c);
        sum_part<double, 2, E, BATCH / 2>(
            partial_of(run, sample, gridDim.y), run.pixels, channels,
            [&](int64_t row) {
                TwoPacks<T, E> v = {};
                v.a = read_pack<E, ALIGNED>(x + row * channels);
                v.b = read_pack<E, ALIGNED>(dy + row * channels);
                return v;
            },
            [&](int64_t, const TwoPacks<T, E> &v, float(*sum)[E]) {
#pragma unroll
                for (int k = 0; k < E; ++k) {
                    const float d = v.b[k] * slope_at<CLAMPS>(run, normal.apply(k, v.a[k]));
                    sum[0][k] += d;
                    sum[1][k] += d * (v.a[k] - normal.mean[k]);
                }
            });
    }
}

/* Computes saved.sum_dy and saved.sum_dy_xhat of each channel, and the coefficients of
 *   dx = factor * g + by_x * (x - mean) + constant
 * where g is dy times the slope of the activation. This dx equals
 *   inverse * (h - mean(h) - n * mean(h * n)) with h = g * scale and n = (x - mean) * inverse. */
static __global__ void grad_finish_kernel(GroupNormRun run, int64_t parts)
{
    const Group group(run);
    const GroupNormSaved &s = run.saved;
    const int64_t sample_first = group.sample * run.channels;
    const double size = (double)run.pixels * (double)group.channels;
    double all[2] = {};
    if (group.sample >= run.real) return;
    const double inverse = (double)s.inverse[sample_first + group.first];
    join_group<2>(
        run, group, parts,
        [&](int64_t c, const double *sum, double *add) {
            const double factor = (double)s.factor[sample_first + c];
            s.sum_dy[sample_first + c] = (float)sum[0];
            s.sum_dy_xhat[sample_first + c] = (float)(sum[1] * inverse);
            add[0] += factor * sum[0];
            add[1] += factor * sum[1];
        },
        all);
    each_channel(group, [&](int64_t c) {
        s.by_x[sample_first + c] = (float)(-inverse * inverse * all[1] / size);
        s.constant[sample_first + c] = (float)(-all[0] / size);
    });
}

template <class T, int E, bool ALIGNED, bool CLAMPS>
static __global__ void __launch_bounds__(THREADS, RESIDENT) grad_kernel(GroupNormRun run)
{
    const int64_t c = first_column<E>(), channels = run.channels;
    if (c >= channels) return;
    for (int64_t sample = blockIdx.z; sample < run.samples; sample += gridDim.z) {
        const bool real = sample < run.real;
        const T *x = sample_at<T>(run, run.x, sample, c),
                *dy = sample_at<T>(run, run.dy, sample, c);
        T *dx = sample_at<T>(run, run.dx, sample, c);
        Normal<E> normal = {};
        float by_x[E] = {}, constant[E] = {};
        if (real) {
            const int64_t at = sample * channels + c;
            normal.template read_from<ALIGNED>(run, at);
            read_floats<E, ALIGNED>(by_x, run.saved.by_x + at);
            read_floats<E, ALIGNED>(constant, run.saved.constant + at);
        }
        each_row<BATCH / 2>(
            run.pixels,
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
                    const float d = v.b[k] * slope_at<CLAMPS>(run, normal.apply(k, v.a[k]));
                    const float value =
                        normal.factor[k] * d + by_x[k] * (v.a[k] - normal.mean[k]) + constant[k];
                    out[k] = real ? value : 0;
                }
                write_floats<E, ALIGNED>(dx + row * channels, out);
            });
    }
}

/* Computes dscale and dshift: adds the sums of each channel over the samples, in the order of the
 * samples. */
static __global__ void weights_kernel(GroupNormRun run, float *dscale, float *dshift)
{
    const int64_t c = element();
    if (c >= run.channels) return;
    double scale = 0, shift = 0;
    for (int64_t sample = 0; sample < run.real; ++sample) {
        scale += (double)run.saved.sum_dy_xhat[sample * run.channels + c];
        shift += (double)run.saved.sum_dy[sample * run.channels + c];
    }
    dscale[c] = (float)scale;
    dshift[c] = (float)shift;
}

static bool saved_aligned(const GroupNormSaved &s)
{
    return aligned_to_packs(s.mean, s.factor, s.shift) && aligned_to_packs(s.by_x, s.constant);
}

static SampleShape shape_of_run(const GroupNormRun &run, int64_t samples)
{
    return {run.type, samples, run.pixels, run.channels};
}

/* Returns the shape of a block that joins the parts of a group: a column of threads for each
 * channel, at most WARP columns. */
static dim3 group_threads(const GroupNormRun &run)
{
    const int64_t channels = run.channels / run.groups;
    return dim3((unsigned)(channels < WARP ? channels : (int64_t)WARP), JOIN_ROWS);
}

#define LAUNCH(T)                                                                                  \
    if (run.act != ACT_NONE) {                                                                     \
        const bool CLAMPS = true;                                                                  \
        PACK_SIZE_SWITCH(KERNEL, T);                                                               \
    } else {                                                                                       \
        const bool CLAMPS = false;                                                                 \
        PACK_SIZE_SWITCH(KERNEL, T);                                                               \
    }

static void queue_statistics(cudaStream_t stream, const GroupNormRun &run, int pack_size)
{
    const LaunchShape on = grid_of_sums(shape_of_run(run, run.real), pack_size);
    const unsigned groups = (unsigned)(run.samples * run.groups);
    const int64_t parts = sample_parts(shape_of_run(run, run.samples));
    const bool aligned = aligned_to_packs(run.x);
#define KERNEL(T, N, P) statistics_kernel<T, N, P><<<on.grid, on.threads, 0, stream>>>(run)
#define STATISTICS(T)                                                                              \
    if (run.real > 0) {                                                                            \
        PACK_SIZE_SWITCH(KERNEL, T);                                                               \
    }                                                                                              \
    finish_kernel<T><<<groups, group_threads(run), 0, stream>>>(run, parts)
    TYPE_SWITCH(run.type, STATISTICS);
#undef STATISTICS
#undef KERNEL
}

cudaError_t launch_group_norm(cudaStream_t stream, GroupNormRun run)
{
    const int pack_size = cuda_pack_size(run.type, run.channels);
    const LaunchShape on = grid_of_pass(shape_of_run(run, run.samples), pack_size, BATCH);
    const bool aligned = aligned_to_packs(run.x, run.y) && saved_aligned(run.saved);
    queue_statistics(stream, run, pack_size);
#define KERNEL(T, N, P) apply_kernel<T, N, P, CLAMPS><<<on.grid, on.threads, 0, stream>>>(run)
    TYPE_SWITCH(run.type, LAUNCH);
#undef KERNEL
    return cudaGetLastError();
}

cudaError_t launch_group_norm_sums(cudaStream_t stream, GroupNormRun run)
{
    const int pack_size = cuda_pack_size(run.type, run.channels);
    const LaunchShape on = grid_of_sums(shape_of_run(run, run.real), pack_size);
    const unsigned groups = (unsigned)(run.samples * run.groups);
    const int64_t parts = sample_parts(shape_of_run(run, run.samples));
    const bool aligned = aligned_to_packs(run.x, run.dy) && saved_aligned(run.saved);
    if (run.real == 0) return cudaSuccess;
#define KERNEL(T, N, P) grad_sums_kernel<T, N, P, CLAMPS><<<on.grid, on.threads, 0, stream>>>(run)
    TYPE_SWITCH(run.type, LAUNCH);
#undef KERNEL
    grad_finish_kernel<<<groups, group_threads(run), 0, stream>>>(run, parts);
    return cudaGetLastError();
}

cudaError_t launch_group_norm_weights(cudaStream_t stream, GroupNormRun run, float *dscale,
                                      float *dshift)
{
    weights_kernel<<<blocks_for(run.channels, THREADS), THREADS, 0, stream>>>(run, dscale, dshift);
    return cudaGetLastError();
}

cudaError_t launch_group_norm_data(cudaStream_t stream, GroupNormRun run)
{
    const int pack_size = cuda_pack_size(run.type, run.channels);
    const LaunchShape on = grid_of_pass(shape_of_run(run, run.samples), pack_size, BATCH / 2);
    const bool aligned = aligned_to_packs(run.x, run.dy, run.dx) && saved_aligned(run.saved);
#define KERNEL(T, N, P) grad_kernel<T, N, P, CLAMPS><<<on.grid, on.threads, 0, stream>>>(run)
    TYPE_SWITCH(run.type, LAUNCH);
#undef KERNEL
    return cudaGetLastError();
}
