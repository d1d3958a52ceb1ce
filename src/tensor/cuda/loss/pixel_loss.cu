/* Losses with a label for each pixel of channels-last images, and sigmoid_loss. Except in
 * class_sums_kernel, one thread processes all logits of a pixel, which are neighbours in memory. It
 * reads a logit for the last time before it writes the logit's gradient, so the gradients may be in
 * the memory of the logits. A block has one part of the pixels of one sample. Sums over parts are
 * in double, in ascending order. */
#include "cuda_loss_kernels.h"
#include "../passes/samples.cuh"

/* RESIDENT: number of blocks that a multiprocessor must be able to run at a time. CLASS_SUMS:
 * number of sums that region_loss computes for each class (class_sums_kernel). */
enum { RESIDENT = 2, CLASS_SUMS = 3 };

static __device__ __forceinline__ float loss_factor(const PixelRun &run)
{
    return run.numbers ? run.numbers->loss_factor : run.scale;
}

/* The pixels of this block: pixels first .. last - 1 of a sample. */
struct Part {
    int64_t sample, first, last;
    __device__ __forceinline__ explicit Part(const PixelRun &run)
        : sample(blockIdx.x / run.parts), first(blockIdx.x % run.parts * run.pixels / run.parts),
          last((blockIdx.x % run.parts + 1) * run.pixels / run.parts)
    {
    }
};

/* Calls f(row, logits) for this thread's pixels. row: index of the pixel among the pixels of all
 * samples. */
template <class T, class F>
static __device__ __forceinline__ void each_pixel(const PixelRun &run, const Part &part, F f)
{
    for (int64_t i = part.first + threadIdx.x; i < part.last; i += THREADS) {
        const int64_t row = part.sample * run.pixels + i;
        f(row, (const T *)run.x + row * run.classes);
    }
}

static __device__ __forceinline__ float weight_of(const PixelRun &run, int c)
{
    return run.weights.count > 0 ? run.weights.value[c] : 1;
}

/* Results of the softmax of a pixel. */
struct Softmax {
    /* log of the sum of the logits' exponentials */
    float log_sum;
    /* class of the largest logit */
    int best;
};

template <class T> static __device__ __forceinline__ Softmax softmax_of(const T *x, int classes)
{
    float largest = -INFINITY, total = 0;
    int best = 0;
    for (int c = 0; c < classes; ++c) {
        const float v = as_float(x[c]);
        if (v > largest) best = c;
        largest = v > largest ? v : largest;
    }
    for (int c = 0; c < classes; ++c) total += __expf(as_float(x[c]) - largest);
    return {largest + logf(total), best};
}

/* Returns the number of logits that rank before the label: logits that are larger, or equal and of
 * an earlier class. */
template <class T> static __device__ __forceinline__ int rank_of(const T *x, int classes, int label)
{
    const float own = as_float(x[label]);
    int rank = 0;
    for (int c = 0; c < classes; ++c) {
        const float v = as_float(x[c]);
        rank += c != label && (c < label ? !(v < own) : !(v <= own));
    }
    return rank;
}

/* Returns the loss of a pixel, not yet multiplied by the factor of its sample. */
template <class T>
static __device__ __forceinline__ float loss_of(const PixelRun &run, const T *x, float log_sum,
                                                int label)
{
    const float nll = log_sum - as_float(x[label]);
    float loss = weight_of(run, label) * nll;
    if (run.focus > 0) loss *= powf(-expm1f(-nll), run.focus);
    if (run.smoothing == 0) return loss;
    float sum = 0;
    for (int c = 0; c < run.classes; ++c) sum += weight_of(run, c) * as_float(x[c]);
    return (1 - run.smoothing) * loss +
           run.smoothing / (float)run.classes * (run.weight_sum * log_sum - sum);
}

/* Computes run.log_sum, the sum of the weights of a part, and run.loss_results, in which losses are
 * not yet multiplied by the factor of their sample. A label out of range makes the loss NaN. */
template <class T> static __global__ void losses_kernel(PixelRun run)
{
    const Part part(run);
    double weight = 0;
    each_pixel<T>(run, part, [&](int64_t row, const T *x) {
        float *out = run.loss_results + row * LOSS_COLUMNS;
        const bool real = part.sample < run.real;
        const Softmax s = real ? softmax_of(x, (int)run.classes) : Softmax{0, 0};
        const int label = real ? run.labels[row] : -1;
        const bool valid = label >= 0 && label < run.classes;
        if (valid) weight += (double)weight_of(run, label);
        out[0] = valid ? loss_of(run, x, s.log_sum, label) : label == -1 ? 0 : nanf("");
        out[1] = valid ? (float)rank_of(x, (int)run.classes, label) : real ? -1.0f : 0.0f;
        out[2] = (float)s.best;
        run.log_sum[row] = s.log_sum;
    });
    weight = block_sum(weight);
    if (threadIdx.x == 0) run.partial[blockIdx.x] = weight;
}

/* Computes run.factor of each sample: number of pixels / sum of the weights of their labels. */
static __global__ void factors_kernel(PixelRun run)
{
    const int64_t sample = element();
    if (sample >= run.samples) return;
    double weight = 0;
    for (int64_t p = 0; p < run.parts; ++p) weight += run.partial[sample * run.parts + p];
    run.factor[sample] = weight > 0 ? (float)((double)run.pixels / weight) : 0;
}

static __global__ void scale_kernel(PixelRun run)
{
    const int64_t row = element();
    if (row >= run.samples * run.pixels) return;
    run.loss_results[row * LOSS_COLUMNS] *= run.factor[row / run.pixels];
}

/* Returns m, where -m (1 - p) is the derivative of (1 - p)^focus (-log p) by the label's logit and
 * p is the probability of the label. */
static __device__ __forceinline__ float focal_slope(float focus, float log_p)
{
    const float rest = -expm1f(log_p);
    if (!(rest > 0)) return 0;
    return powf(rest, focus) - focus * expf(log_p) * log_p * powf(rest, focus - 1);
}

/* Computes dx = factor p - base w - (hit at the label), where p is the probability and w the weight
 * of a class. */
template <class T> static __global__ void grad_kernel(PixelRun run)
{
    const Part part(run);
    const bool real = part.sample < run.real;
    const float scale = real ? loss_factor(run) * run.factor[part.sample] : 0;
    each_pixel<T>(run, part, [&](int64_t row, const T *x) {
        T *dx = (T *)run.dx + row * run.classes;
        const int label = real ? run.labels[row] : -1;
        const bool valid = label >= 0 && label < run.classes;
        const float log_sum = valid ? run.log_sum[row] : 0;
        float hit = 0, base = 0, factor = 0;
        if (valid) {
            const float m =
                run.focus > 0 ? focal_slope(run.focus, as_float(x[label]) - log_sum) : 1;
            hit = scale * (1 - run.smoothing) * m * weight_of(run, label);
            base = scale * (run.smoothing / (float)run.classes);
            factor = hit + base * run.weight_sum;
        }
        for (int c = 0; c < run.classes; ++c) {
            const float p = valid ? __expf(as_float(x[c]) - log_sum) : 0;
            store_float(dx + c, factor * p - weight_of(run, c) * base - (c == label ? hit : 0));
        }
    });
}

/* ---- region_loss ---- */

template <class T> static __global__ void log_sums_kernel(PixelRun run)
{
    const Part part(run);
    each_pixel<T>(run, part, [&](int64_t row, const T *x) {
        run.log_sum[row] = part.sample < run.real ? softmax_of(x, (int)run.classes).log_sum : 0;
    });
}

template <class T, int E> struct ClassPack {
    Pack<T, E> x;
    float log_sum;
    int label;
};

/* Computes three sums for each class. [0]: the sum of its probabilities in the pixels whose label
 * is the class. [1]: the sum of its probabilities in all pixels that have a label. [2]: the number
 * of pixels whose label is the class. A label out of range makes the sums NaN. */
template <class T, int E, bool ALIGNED>
static __global__ void __launch_bounds__(THREADS, RESIDENT) class_sums_kernel(PixelRun run)
{
    const int64_t c = first_column<E>(), classes = run.classes;
    for (int64_t sample = blockIdx.z; sample < run.real; sample += gridDim.z) {
        const T *x = sample_at<const T>(run.x, sample, run.pixels, classes, c);
        const int64_t first = sample * run.pixels;
        sum_part<double, CLASS_SUMS, E, 2>(
            run.partial + sample * gridDim.y * CLASS_SUMS * classes, run.pixels, classes,
            [&](int64_t row) {
                ClassPack<T, E> v = {};
                v.x = read_pack<E, ALIGNED>(x + row * classes);
                v.log_sum = run.log_sum[first + row];
                v.label = run.labels[first + row];
                return v;
            },
            [&](int64_t, const ClassPack<T, E> &v, float(*sum)[E]) {
                const bool bad = v.label < -1 || v.label >= classes;
#pragma unroll
                for (int k = 0; k < E; ++k) {
                    const float p = bad ? nanf("") : __expf(v.x[k] - v.log_sum);
                    const bool hit = v.label == (int)c + k;
                    sum[0][k] += hit ? p : 0;
                    sum[1][k] += v.label == -1 ? 0 : p;
                    sum[2][k] += hit ? 1 : 0;
                }
            });
    }
}

/* Returns the overlap of a class, Dice or IoU. Sets slope[0] to its derivative by the class's
 * sum[1], and slope[1] to its derivative by sum[0] (class_sums_kernel). __host__: the host's
 * compiler warns about a value without a case, which nvcc does not. */
static __host__ __device__ inline double overlap_of(const PixelRun &run, const double *sum,
                                                    double slope[2])
{
    const double inside = sum[0], all = sum[1], labelled = sum[2];
    double upper = NAN, lower = NAN;
    slope[1] = NAN;
    switch (run.region) {
    case REGION_DICE:
        upper = 2 * inside + 1;
        lower = all + labelled + 1;
        slope[1] = 2 / lower;
        break;
    case REGION_IOU:
        upper = inside + 1;
        lower = all + labelled + 1 - inside;
        slope[1] = 1 / lower + upper / (lower * lower);
        break;
    }
    slope[0] = -upper / (lower * lower);
    return upper / lower;
}

/* Computes the loss of each sample, and the slopes of its classes. Grid: one block for each
 * sample. */
static __global__ void region_kernel(PixelRun run, int64_t parts)
{
    __shared__ double shared[WARP];
    const int64_t sample = blockIdx.x, classes = run.classes;
    const double *partial = run.partial + sample * parts * CLASS_SUMS * classes;
    float *slopes = run.slopes + sample * 2 * classes,
          *out = run.loss_results + sample * LOSS_COLUMNS;
    const bool real = sample < run.real;
    double mine = 0;
    for (int64_t at = 0; at < classes; at += WARP) {
        const int64_t c = at + threadIdx.x;
        double sum[CLASS_SUMS], slope[2] = {0, 0};
        if (!real && threadIdx.y == 0 && c < classes) slopes[c] = slopes[classes + c] = 0;
        if (!real) continue;
        if (join_parts<double, CLASS_SUMS>(partial, parts, classes, c, sum)) {
            mine += overlap_of(run, sum, slope);
            slopes[c] = (float)slope[0];
            slopes[classes + c] = (float)slope[1];
        }
        __syncthreads();
    }
    if (threadIdx.y == 0) shared[threadIdx.x] = mine;
    __syncthreads();
    if (threadIdx.x + threadIdx.y > 0) return;
    double overlap = 0;
    for (int x = 0; x < WARP; ++x) overlap += shared[x];
    out[0] = real ? (float)(1 - overlap / (double)classes) : 0;
    out[1] = out[2] = 0;
}

template <class T> static __global__ void region_grad_kernel(PixelRun run)
{
    const Part part(run);
    const bool real = part.sample < run.real;
    const float scale = real ? -loss_factor(run) / (float)run.classes : 0;
    const float *all = run.slopes + part.sample * 2 * run.classes, *inside = all + run.classes;
    each_pixel<T>(run, part, [&](int64_t row, const T *x) {
        T *dx = (T *)run.dx + row * run.classes;
        const int label = real ? run.labels[row] : -1;
        const float log_sum = label >= 0 ? run.log_sum[row] : 0;
        float mean = 0;
        for (int c = 0; c < run.classes && label >= 0; ++c)
            mean += __expf(as_float(x[c]) - log_sum) * (all[c] + (c == label ? inside[c] : 0));
        for (int c = 0; c < run.classes; ++c) {
            const float p = label >= 0 ? scale * __expf(as_float(x[c]) - log_sum) : 0;
            store_float(dx + c,
                        label >= 0 ? p * (all[c] + (c == label ? inside[c] : 0) - mean) : 0);
        }
    });
}

/* ---- sigmoid_loss ---- */

/* Computes the results for one logit and one label, 0 or 1, of each sample. Any other label makes
 * the loss NaN. */
template <class T> static __global__ void sigmoid_kernel(PixelRun run)
{
    const int64_t row = element();
    if (row >= run.samples) return;
    const bool real = row < run.real;
    const float z = real ? as_float(((const T *)run.x)[row]) : 0;
    const int label = real ? run.labels[row] : 0;
    float *out = run.loss_results + row * LOSS_COLUMNS;
    const float loss = log1pf(expf(-fabsf(z))) + ((z > 0 ? z : 0) - (float)label * z);
    out[0] = !real ? 0 : label == 0 || label == 1 ? loss : nanf("");
    out[1] = !real || (z >= 0) == (label > 0) ? 0 : 1;
    out[2] = z;
}

template <class T> static __global__ void sigmoid_grad_kernel(PixelRun run)
{
    const int64_t row = element();
    if (row >= run.samples) return;
    float dx = 0;
    if (row < run.real) {
        const float z = as_float(((const T *)run.x)[row]), e = expf(-fabsf(z));
        dx = loss_factor(run) * ((z >= 0 ? 1 : e) / (1 + e) - (float)run.labels[row]);
    }
    store_float((T *)run.dx + row, dx);
}

/* ---- launchers ---- */

static SampleShape shape_of_run(const PixelRun &run)
{
    return {run.type, run.samples, run.pixels, run.classes};
}

#define PARTS   (unsigned)(run.samples * run.parts), THREADS, 0, stream
#define ROWS(n) blocks_for(n, THREADS), THREADS, 0, stream

cudaError_t launch_pixel_loss(cudaStream_t stream, PixelRun run)
{
#define LAUNCH(T) losses_kernel<T><<<PARTS>>>(run)
    TYPE_SWITCH(run.type, LAUNCH);
#undef LAUNCH
    factors_kernel<<<ROWS(run.samples)>>>(run);
    scale_kernel<<<ROWS(run.samples * run.pixels)>>>(run);
    return cudaGetLastError();
}

cudaError_t launch_pixel_loss_backward(cudaStream_t stream, PixelRun run)
{
#define LAUNCH(T) grad_kernel<T><<<PARTS>>>(run)
    TYPE_SWITCH(run.type, LAUNCH);
#undef LAUNCH
    return cudaGetLastError();
}

cudaError_t launch_region_loss(cudaStream_t stream, PixelRun run)
{
    const int pack_size = cuda_pack_size(run.type, run.classes);
    const int64_t parts = sample_parts(shape_of_run(run));
    const LaunchShape on = grid_of_sums(shape_of_run(run), pack_size);
    const bool aligned = aligned_to_packs(run.x);
#define KERNEL(T, N, P) class_sums_kernel<T, N, P><<<on.grid, on.threads, 0, stream>>>(run)
#define LAUNCH(T)                                                                                  \
    log_sums_kernel<T><<<PARTS>>>(run);                                                            \
    PACK_SIZE_SWITCH(KERNEL, T)
    TYPE_SWITCH(run.type, LAUNCH);
#undef LAUNCH
#undef KERNEL
    region_kernel<<<(unsigned)run.samples, join_threads(), 0, stream>>>(run, parts);
    return cudaGetLastError();
}

cudaError_t launch_region_loss_backward(cudaStream_t stream, PixelRun run)
{
#define LAUNCH(T) region_grad_kernel<T><<<PARTS>>>(run)
    TYPE_SWITCH(run.type, LAUNCH);
#undef LAUNCH
    return cudaGetLastError();
}

cudaError_t launch_sigmoid_loss(cudaStream_t stream, PixelRun run)
{
#define LAUNCH(T) sigmoid_kernel<T><<<ROWS(run.samples)>>>(run)
    TYPE_SWITCH(run.type, LAUNCH);
#undef LAUNCH
    return cudaGetLastError();
}

cudaError_t launch_sigmoid_loss_backward(cudaStream_t stream, PixelRun run)
{
#define LAUNCH(T) sigmoid_grad_kernel<T><<<ROWS(run.samples)>>>(run)
    TYPE_SWITCH(run.type, LAUNCH);
#undef LAUNCH
    return cudaGetLastError();
}
