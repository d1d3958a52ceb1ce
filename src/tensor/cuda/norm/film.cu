/* Film of channels-last images: y = x (1 + s) + t, with a number s and a number t for each channel
 * of each sample. The gradients of s and t are sums over the pixels of a sample, in parts. A thread
 * adds a batch of a few pixels in float, and the sums of batches in double. */
#include "../passes/samples.cuh"

/* BATCH, RESIDENT: as in batch_norm.cu, with pixels as rows. */
enum { BATCH = 4, RESIDENT = 2 };

/* Factors 1 + s and shifts t of a thread's columns in one sample; all are 0 if the sample is
 * padding. */
template <class T, int E, bool ALIGNED> struct Film {
    float factor[E], shift[E];
    __device__ __forceinline__ Film(const FilmRun &run, int64_t sample, int64_t c)
    {
        const T *row = (const T *)run.by + sample * 2 * run.channels + c;
        const bool real = sample < run.real;
        const Pack<T, E> s = read_pack<E, ALIGNED>(row);
        const Pack<T, E> t = read_pack<E, ALIGNED>(row + run.channels);
#pragma unroll
        for (int k = 0; k < E; ++k) {
            factor[k] = real ? 1 + s[k] : 0;
            shift[k] = real ? t[k] : 0;
        }
    }
};

/* Multiplies by 1 + s and, with SHIFTS, adds t: computes y from x (SHIFTS), or dx from dy. */
template <class T, int E, bool ALIGNED, bool SHIFTS>
static __global__ void __launch_bounds__(THREADS, 3) apply_kernel(FilmRun run, const T *from, T *to)
{
    const int64_t c = first_column<E>(), channels = run.channels;
    if (c >= channels) return;
    for (int64_t sample = blockIdx.z; sample < run.samples; sample += gridDim.z) {
        const T *in = sample_at<const T>(from, sample, run.pixels, channels, c);
        T *out = sample_at<T>(to, sample, run.pixels, channels, c);
        const Film<T, E, ALIGNED> film(run, sample, c);
        const bool real = sample < run.real;
        each_row<BATCH>(
            run.pixels, [&](int64_t row) { return read_pack<E, ALIGNED>(in + row * channels); },
            [&](int64_t row, const Pack<T, E> &v) {
                float value[E];
#pragma unroll
                for (int k = 0; k < E; ++k)
                    value[k] = real ? v[k] * film.factor[k] + (SHIFTS ? film.shift[k] : 0) : 0;
                write_floats<E, ALIGNED>(out + row * channels, value);
            });
    }
}

/* Sums dy x, and dy, for each channel of each sample. */
template <class T, int E, bool ALIGNED>
static __global__ void __launch_bounds__(THREADS, RESIDENT) sums_kernel(FilmRun run)
{
    const int64_t c = first_column<E>(), channels = run.channels;
    for (int64_t sample = blockIdx.z; sample < run.real; sample += gridDim.z) {
        const T *x = sample_at<const T>(run.x, sample, run.pixels, channels, c);
        const T *dy = sample_at<const T>(run.dy, sample, run.pixels, channels, c);
        sum_part<double, 2, E, BATCH / 2>(
            run.partial + sample * gridDim.y * 2 * channels, run.pixels, channels,
            [&](int64_t row) {
                TwoPacks<T, E> v = {};
                v.a = read_pack<E, ALIGNED>(x + row * channels);
                v.b = read_pack<E, ALIGNED>(dy + row * channels);
                return v;
            },
            [&](int64_t, const TwoPacks<T, E> &v, float(*sum)[E]) {
#pragma unroll
                for (int k = 0; k < E; ++k) {
                    sum[0][k] += v.b[k] * v.a[k];
                    sum[1][k] += v.b[k];
                }
            });
    }
}

/* Joins the parts of the sums for WARP channels of a sample, and writes dby. */
template <class T> static __global__ void join_kernel(FilmRun run, int64_t parts)
{
    const int64_t tiles = (run.channels + WARP - 1) / WARP, sample = blockIdx.x / tiles,
                  c = blockIdx.x % tiles * WARP + threadIdx.x;
    T *row = (T *)run.dby + sample * 2 * run.channels;
    double sum[2] = {0, 0};
    if (sample < run.real) {
        const double *partial = run.partial + sample * parts * 2 * run.channels;
        if (!join_parts<double, 2>(partial, parts, run.channels, c, sum)) return;
    } else if (threadIdx.y > 0 || c >= run.channels) {
        return;
    }
    store_float(row + c, (float)sum[0]);
    store_float(row + run.channels + c, (float)sum[1]);
}

static SampleShape shape_of_run(const FilmRun &run, int64_t samples)
{
    return {run.type, samples, run.pixels, run.channels};
}

template <bool SHIFTS>
static void queue_apply(cudaStream_t stream, const FilmRun &run, const void *from, void *to)
{
    const int pack_size = cuda_pack_size(run.type, run.channels);
    const LaunchShape on = grid_of_pass(shape_of_run(run, run.samples), pack_size, BATCH);
    const bool aligned = aligned_to_packs(from, to, run.by);
#define KERNEL(T, N, P)                                                                            \
    apply_kernel<T, N, P, SHIFTS><<<on.grid, on.threads, 0, stream>>>(run, (const T *)from, (T *)to)
#define LAUNCH(T) PACK_SIZE_SWITCH(KERNEL, T)
    TYPE_SWITCH(run.type, LAUNCH);
#undef LAUNCH
#undef KERNEL
}

cudaError_t launch_film(cudaStream_t stream, FilmRun run)
{
    queue_apply<true>(stream, run, run.x, run.y);
    return cudaGetLastError();
}

cudaError_t launch_film_data(cudaStream_t stream, FilmRun run)
{
    queue_apply<false>(stream, run, run.dy, run.dx);
    return cudaGetLastError();
}

cudaError_t launch_film_sums(cudaStream_t stream, FilmRun run)
{
    const int pack_size = cuda_pack_size(run.type, run.channels);
    const LaunchShape on = grid_of_sums(shape_of_run(run, run.real), pack_size);
    const int64_t parts = sample_parts(shape_of_run(run, run.real));
    const unsigned tiles = blocks_for(run.channels, WARP) * (unsigned)run.samples;
    const bool aligned = aligned_to_packs(run.x, run.dy);
#define KERNEL(T, N, P) sums_kernel<T, N, P><<<on.grid, on.threads, 0, stream>>>(run)
#define LAUNCH(T)                                                                                  \
    if (run.real > 0) {                                                                            \
        PACK_SIZE_SWITCH(KERNEL, T);                                                               \
    }                                                                                              \
    join_kernel<T><<<tiles, join_threads(), 0, stream>>>(run, parts)
    TYPE_SWITCH(run.type, LAUNCH);
#undef LAUNCH
#undef KERNEL
    return cudaGetLastError();
}
