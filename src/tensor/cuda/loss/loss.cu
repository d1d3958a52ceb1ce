/* Softmax cross-entropy with label smoothing (names with softmax), and the losses of numbers (names
 * with point): square, absolute, Huber and Charbonnier. In softmax kernels a block of one warp or
 * of ROW_THREADS threads computes a row. */
#include "loss.cuh"

/* number of packs that a thread loads at a time if they may be in shared memory; a small number is
 * enough, because the latency of shared memory is short */
enum { KEPT_BATCH = 2 };

static __device__ __forceinline__ float loss_factor(const LossRun &run)
{
    return run.numbers ? run.numbers->loss_factor : run.scale;
}

/* Numbers of a row that its gradient needs in addition to the logits. */
struct Gradient {
    /* log_sum: log of the sum of the row's exponentials; scale: OpRun.loss_factor */
    float log_sum, scale;
    /* on: target probability of the label; off: of any other class */
    float off, on;
    /* column of the label relative to this slice; may be outside the slice */
    int64_t label;
};

/* Returns the numbers of a row, except log_sum, which the caller sets. */
static __device__ __forceinline__ Gradient make_gradient(const LossRun &run, int64_t row)
{
    float off = run.smoothing / run.classes;
    return {0, loss_factor(run), off, off + (1 - run.smoothing), run.labels[row] - run.first};
}

/* Writes E gradients from column k on; zeros beyond the width. v: the logits. */
template <int E, bool ALIGNED, class T>
static __device__ __forceinline__ void write_gradient(const LossRun &run, T *dx, int64_t k,
                                                      const Pack<T, E> &v, const Gradient &g)
{
    float out[E];
    int label = (int)(g.label - k), end = (int)(run.width - k);
#pragma unroll
    for (int e = 0; e < E; ++e) out[e] = g.scale * (__expf(v[e] - g.log_sum) - g.off);
    if ((label >= 0 && label < E) || end < E)
#pragma unroll
        for (int e = 0; e < E; ++e) {
            if (e == label) out[e] = g.scale * (__expf(v[e] - g.log_sum) - g.on);
            if (e >= end) out[e] = 0;
        }
    write_floats<E, ALIGNED>(dx + k, out);
}

/* Writes the gradient of a row. load(i) returns pack i of its logits. dx may be in the logits'
 * memory. U packs are loaded before their gradients are written. */
template <int U, class T, int E, bool ALIGNED, class Load>
static __device__ __forceinline__ void row_gradient(const LossRun &run, int64_t row,
                                                    const Gradient &gradient, Load load)
{
    T *dx = (T *)run.dx + row * run.stride;
    in_batches<U>(threadIdx.x, run.stride / E, blockDim.x, load,
                  [&](int64_t i, const Pack<T, E> &v) {
                      write_gradient<E, ALIGNED>(run, dx, i * E, v, gradient);
                  });
}

template <class T, int E, bool ALIGNED>
static __device__ __forceinline__ void zero_row(const LossRun &run, int64_t row)
{
    T *dx = (T *)run.dx + row * run.stride;
    for (int64_t i = threadIdx.x; i < run.stride / E; i += blockDim.x)
        write_zeros<E, ALIGNED>(dx + i * E);
}

/* Computes the loss and, unless dx is NULL, the gradient. The first kept_count packs of the row
 * stay in shared memory between the two passes; the other packs are read again, from the L2 cache.
 * dx may be in x's memory: each pack is read again only by the thread that then overwrites it. */
template <class T, int E, bool ALIGNED> ROW_KERNEL softmax_kernel(LossRun run, int64_t kept_count)
{
    extern __shared__ uint4 shared[];
    __shared__ float log_sum;
    Pack<T, E> *kept = (Pack<T, E> *)shared;
    int64_t row = blockIdx.x;
    if (row >= run.real) {
        if (threadIdx.x == 0) store_padding(run, row);
        if (run.dx) zero_row<T, E, ALIGNED>(run, row);
        return;
    }
    const T *x = (const T *)run.x + row * run.stride;
    prefetch_row(x, run.width);
    /* a label out of range makes the loss NaN */
    int32_t label = run.labels[row];
    bool valid = label >= 0 && label < run.width;
    float logit = valid ? as_float(x[label]) : nanf("");
    Logits all = row_logits<T, E, ALIGNED>(run, x, make_label(run, row, logit),
                                           [&](int64_t i, const Pack<T, E> &v) {
                                               if (i < kept_count) kept[i] = v;
                                           });
    if (threadIdx.x == 0) log_sum = store_row(run, row, all, logit);
    if (!run.dx) return;
    Gradient gradient = make_gradient(run, row);
    __syncthreads();
    gradient.log_sum = log_sum;
    row_gradient<KEPT_BATCH, T, E, ALIGNED>(run, row, gradient, [&](int64_t i) {
        return i < kept_count ? kept[i] : read_pack<E, ALIGNED>(x + i * E);
    });
}

template <class T, int E, bool ALIGNED> ROW_KERNEL softmax_backward_kernel(LossRun run)
{
    int64_t row = blockIdx.x;
    if (row >= run.real) {
        zero_row<T, E, ALIGNED>(run, row);
        return;
    }
    const T *x = (const T *)run.x + row * run.stride;
    Gradient gradient = make_gradient(run, row);
    gradient.log_sum = run.log_sum[row];
    row_gradient<BATCH, T, E, ALIGNED>(run, row, gradient,
                                       [&](int64_t i) { return read_pack<E, ALIGNED>(x + i * E); });
}

/* The error of a number of a row, and its weight; both are 0 if the target is missing (NaN). */
struct Error {
    /* x - target */
    float d;
    float weight;
};
template <class T>
static __device__ __forceinline__ Error error_at(const LossRun &run, int64_t row, int64_t k)
{
    const float target = run.targets[row * run.width + k];
    if (target != target) return {0, 0};
    return {as_float(((const T *)run.x)[row * run.stride + k]) - target,
            run.weights ? run.weights[row * run.weights_stride + k] : 1};
}

/* __host__: the host's compiler warns about a value without a case, which nvcc does not. */
static __host__ __device__ __forceinline__ float value_of(const LossRun &run, float d)
{
    const float a = fabsf(d), s = run.point_parameter;
    switch (run.point) {
    case POINT_ABSOLUTE:
        return a;
    case POINT_HUBER:
        return a <= s ? 0.5f * d * d : s * (a - 0.5f * s);
    case POINT_CHARBONNIER:
        return d * d / (sqrtf(d * d + s * s) + s);
    case POINT_SQUARE:
        break;
    }
    return d * d;
}

static __host__ __device__ __forceinline__ float slope_of(const LossRun &run, float d)
{
    const float s = run.point_parameter;
    switch (run.point) {
    case POINT_ABSOLUTE:
        return (float)(d > 0) - (float)(d < 0);
    case POINT_HUBER:
        return fminf(fmaxf(d, -s), s);
    case POINT_CHARBONNIER:
        return d / sqrtf(d * d + s * s);
    case POINT_SQUARE:
        break;
    }
    return 2 * d;
}

/* Sums over numbers of a row: of the weighted losses, and of the weights. */
struct PointSums {
    double loss, weight;
};

/* Returns the sums over columns first, first + step, ... below `end` of a row. Pieces of PIECE
 * columns are added in fp32, and the sums of the pieces in double. */
template <class T>
static __device__ __forceinline__ PointSums point_sums(const LossRun &run, int64_t row,
                                                       int64_t first, int64_t end, int64_t step)
{
    enum { PIECE = 64 };
    PointSums sum = {0, 0};
    for (int64_t from = first; from < end; from += PIECE * step) {
        float part = 0, weights = 0;
        for (int64_t k = from; k < end && k < from + PIECE * step; k += step) {
            const Error e = error_at<T>(run, row, k);
            part += e.weight * value_of(run, e.d);
            weights += e.weight;
        }
        sum.loss += part;
        sum.weight += weights;
    }
    return sum;
}

static __device__ __forceinline__ void store_point(const LossRun &run, int64_t row, float loss,
                                                   float weight)
{
    float *out = run.results + row * LOSS_COLUMNS;
    out[0] = weight > 0 ? loss / weight : 0;
    out[1] = out[2] = 0;
    run.row_weight[row] = weight;
}

/* Computes the loss of narrow rows. Grid: one warp for each row. */
template <class T> static __global__ void point_kernel(LossRun run)
{
    const int lane = threadIdx.x % WARP;
    const int64_t row = warp_row();
    if (row >= run.rows) return;
    const PointSums sum = point_sums<T>(run, row, lane, row < run.real ? run.width : 0, WARP);
    const float weight = warp_sum((float)sum.weight), loss = warp_sum((float)sum.loss);
    if (lane == 0) store_point(run, row, loss, weight);
}

/* The part of a row that this block computes: columns first .. end - 1. */
struct PointPart {
    int64_t row, first, end;
    __device__ __forceinline__ PointPart(const LossRun &run, int64_t columns, int64_t parts)
        : row(blockIdx.x / parts), first(blockIdx.x % parts * columns / parts),
          end((blockIdx.x % parts + 1) * columns / parts)
    {
    }
};

/* Computes the sums of each part of wide rows. Grid: one block for each part of each row. */
template <class T> static __global__ void point_part_kernel(LossRun run, int64_t parts)
{
    const PointPart part(run, run.width, parts);
    PointSums sum = {0, 0};
    if (part.row < run.real)
        sum = point_sums<T>(run, part.row, part.first + threadIdx.x, part.end, THREADS);
    const double loss = block_sum(sum.loss), weight = block_sum(sum.weight);
    if (threadIdx.x > 0) return;
    run.partial[2 * blockIdx.x] = loss;
    run.partial[2 * blockIdx.x + 1] = weight;
}

static __global__ void point_join_kernel(LossRun run, int64_t parts)
{
    const int64_t row = element();
    if (row >= run.rows) return;
    PointSums sum = {0, 0};
    for (int64_t p = 0; p < parts; ++p) {
        sum.loss += run.partial[2 * (row * parts + p)];
        sum.weight += run.partial[2 * (row * parts + p) + 1];
    }
    store_point(run, row, (float)sum.loss, (float)sum.weight);
}

/* Writes the gradients of columns first, first + step, ... below `end` of a row. */
template <class T>
static __device__ __forceinline__ void point_gradients(const LossRun &run, int64_t row,
                                                       int64_t first, int64_t end, int64_t step)
{
    const float all = run.row_weight[row], scale = all > 0 ? loss_factor(run) / all : 0;
    for (int64_t k = first; k < end; k += step) {
        float gradient = 0;
        if (row < run.real && k < run.width) {
            const Error e = error_at<T>(run, row, k);
            gradient = scale * e.weight * slope_of(run, e.d);
        }
        store_float((T *)run.dx + row * run.stride + k, gradient);
    }
}

template <class T> static __global__ void point_backward_kernel(LossRun run)
{
    const int64_t row = warp_row();
    if (row < run.rows) point_gradients<T>(run, row, threadIdx.x % WARP, run.stride, WARP);
}

template <class T> static __global__ void point_part_backward_kernel(LossRun run, int64_t parts)
{
    const PointPart part(run, run.stride, parts);
    point_gradients<T>(run, part.row, part.first + threadIdx.x, part.end, THREADS);
}

/* upper limit for the bytes of the __shared__ variables of a block, without the packs that it
 * keeps */
enum { STATIC_BYTES = 1024 };

cudaError_t cuda_softmax_shared_bytes(int device, int64_t *bytes)
{
    int all = 0, reserved = 0;
    cudaError_t st =
        cudaDeviceGetAttribute(&all, cudaDevAttrMaxSharedMemoryPerMultiprocessor, device);
    if (st == cudaSuccess)
        st = cudaDeviceGetAttribute(&reserved, cudaDevAttrReservedSharedMemoryPerBlock, device);
    *bytes = all / ROW_BLOCKS - reserved - STATIC_BYTES;
    return st;
}

/* Allows a kernel to use more shared memory than the 48 KiB that every kernel may use. bytes: bytes
 * of the packs that a block keeps. */
static cudaError_t allow_shared(const void *kernel, int64_t bytes)
{
    enum { DEFAULT_BYTES = 48 << 10 };
    if (bytes + STATIC_BYTES <= DEFAULT_BYTES) return cudaSuccess;
    cudaError_t st =
        cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)bytes);
    if (st != cudaSuccess) return st;
    return cudaFuncSetAttribute(kernel, cudaFuncAttributePreferredSharedMemoryCarveout,
                                cudaSharedmemCarveoutMaxShared);
}

template <class T, int E, bool ALIGNED>
static cudaError_t launch_softmax(cudaStream_t stream, const LossRun &run)
{
    const int64_t pack_bytes = sizeof(Pack<T, E>), packs = run.width / E,
                  shared_packs = run.dx ? run.shared_bytes / pack_bytes : 0;
    int64_t kept_count = shared_packs < packs ? shared_packs : packs;
    size_t bytes = (size_t)(kept_count * pack_bytes);
    unsigned blocks = (unsigned)run.rows, threads = row_threads(run);
    cudaError_t st = allow_shared((const void *)softmax_kernel<T, E, ALIGNED>, bytes);
    if (st != cudaSuccess) return st;
    softmax_kernel<T, E, ALIGNED><<<blocks, threads, bytes, stream>>>(run, kept_count);
    return cudaGetLastError();
}

cudaError_t launch_softmax_loss(cudaStream_t stream, LossRun run)
{
    int pack_size = cuda_pack_size(run.type, run.stride);
    bool aligned = aligned_to_packs(run.x, run.dx);
    if (run.rows == 0) return cudaSuccess;
#define KERNEL(T, N, P) return launch_softmax<T, N, P>(stream, run)
#define LAUNCH(T)       PACK_SIZE_SWITCH(KERNEL, T)
    TYPE_SWITCH(run.type, LAUNCH);
#undef LAUNCH
#undef KERNEL
}

cudaError_t launch_softmax_loss_backward(cudaStream_t stream, LossRun run)
{
    int pack_size = cuda_pack_size(run.type, run.stride);
    bool aligned = aligned_to_packs(run.x, run.dx);
    unsigned blocks = (unsigned)run.rows, threads = row_threads(run);
#define KERNEL(T, N, P) softmax_backward_kernel<T, N, P><<<blocks, threads, 0, stream>>>(run)
#define LAUNCH(T)       PACK_SIZE_SWITCH(KERNEL, T)
    if (run.rows > 0) TYPE_SWITCH(run.type, LAUNCH);
#undef LAUNCH
#undef KERNEL
    return cudaGetLastError();
}

cudaError_t launch_point_loss(cudaStream_t stream, LossRun run)
{
    const int64_t parts = cuda_point_parts(run.width);
    const unsigned blocks = (unsigned)(run.rows * parts);
#define LAUNCH(T)                                                                                  \
    if (parts > 1)                                                                                 \
        point_part_kernel<T><<<blocks, THREADS, 0, stream>>>(run, parts);                          \
    else                                                                                           \
        point_kernel<T><<<blocks_for(run.rows, WARPS), THREADS, 0, stream>>>(run)
    if (run.rows == 0) return cudaSuccess;
    TYPE_SWITCH(run.type, LAUNCH);
#undef LAUNCH
    if (parts > 1)
        point_join_kernel<<<blocks_for(run.rows, THREADS), THREADS, 0, stream>>>(run, parts);
    return cudaGetLastError();
}

cudaError_t launch_point_loss_backward(cudaStream_t stream, LossRun run)
{
    const int64_t parts = cuda_point_parts(run.width);
    const unsigned blocks = (unsigned)(run.rows * parts);
#define LAUNCH(T)                                                                                  \
    if (parts > 1)                                                                                 \
        point_part_backward_kernel<T><<<blocks, THREADS, 0, stream>>>(run, parts);                 \
    else                                                                                           \
        point_backward_kernel<T><<<blocks_for(run.rows, WARPS), THREADS, 0, stream>>>(run)
    if (run.rows > 0) TYPE_SWITCH(run.type, LAUNCH);
#undef LAUNCH
    return cudaGetLastError();
}
