/* Softmax cross-entropy with label smoothing, and mean squared error. For softmax a block of one
 * warp or of ROW_THREADS threads has a row. */
#include "loss.cuh"

/* packs in a batch from shared memory, which answers fast */
enum { KEPT_BATCH = 2 };

static __device__ __forceinline__ float scale_of(const LossRun &run)
{
    return run.numbers ? run.numbers->loss_scale : run.scale;
}

/* Numbers of a row that its gradient needs besides the logits. label: the label's column relative
 * to this slice, perhaps outside it. */
struct Gradient {
    float log_sum, scale, off, on;
    int64_t label;
};

static __device__ __forceinline__ Gradient gradient_of(const LossRun &run, int64_t row)
{
    float off = run.smoothing / run.classes;
    return {0, scale_of(run), off, off + (1 - run.smoothing), run.labels[row] - run.first};
}

/* Writes E gradients from column k on; zeros beyond the width. */
template <int E, bool PACKS, class T>
static __device__ __forceinline__ void write_gradient(const LossRun &run, T *dx, int64_t k,
                                                      const Pack<T, E> &v, const Gradient &of)
{
    float out[E];
    int label = (int)(of.label - k), end = (int)(run.width - k);
#pragma unroll
    for (int e = 0; e < E; ++e) out[e] = of.scale * (__expf(v[e] - of.log_sum) - of.off);
    if ((label >= 0 && label < E) || end < E)
#pragma unroll
        for (int e = 0; e < E; ++e) {
            if (e == label) out[e] = of.scale * (__expf(v[e] - of.log_sum) - of.on);
            if (e >= end) out[e] = 0;
        }
    write<E, PACKS>(dx + k, out);
}

/* Writes the gradient of a row. of(i) returns pack i of its logits, which dx may overwrite; U packs
 * are read at a time. */
template <int U, class T, int E, bool PACKS, class Of>
static __device__ __forceinline__ void row_gradient(const LossRun &run, int64_t row,
                                                    const Gradient &gradient, Of of)
{
    T *dx = (T *)run.dx + row * run.stride;
    in_batches<U>(threadIdx.x, run.stride / E, blockDim.x, of, [&](int64_t i, const Pack<T, E> &v) {
        write_gradient<E, PACKS>(run, dx, i * E, v, gradient);
    });
}

template <class T, int E, bool PACKS>
static __device__ __forceinline__ void zero_row(const LossRun &run, int64_t row)
{
    T *dx = (T *)run.dx + row * run.stride;
    for (int64_t i = threadIdx.x; i < run.stride / E; i += blockDim.x)
        write_zeros<E, PACKS>(dx + i * E);
}

/* Loss and, unless dx is NULL, the gradient. The first `keeps` packs of the row stay in shared
 * memory between the two passes; the others are read again, from the L2 cache. Every thread has
 * read all it needs of x before any thread writes dx. */
template <class T, int E, bool PACKS> ROW_KERNEL softmax_kernel(LossRun run, int64_t keeps)
{
    extern __shared__ uint4 shared[];
    __shared__ float log_sum;
    Pack<T, E> *kept = (Pack<T, E> *)shared;
    int64_t row = blockIdx.x;
    if (row >= run.real) {
        if (threadIdx.x == 0) store_padding(run, row);
        if (run.dx) zero_row<T, E, PACKS>(run, row);
        return;
    }
    const T *x = (const T *)run.x + row * run.stride;
    prefetch_row(x, run.width);
    /* A label out of range makes the loss NaN. */
    int32_t label = run.labels[row];
    bool valid = label >= 0 && label < run.width;
    float logit = valid ? value_of(x[label]) : nanf("");
    Logits all = row_logits<T, E, PACKS>(run, x, truth_of(run, row, logit),
                                         [&](int64_t i, const Pack<T, E> &v) {
                                             if (i < keeps) kept[i] = v;
                                         });
    if (threadIdx.x == 0) log_sum = store_row(run, row, all, logit);
    if (!run.dx) return;
    Gradient gradient = gradient_of(run, row);
    __syncthreads();
    gradient.log_sum = log_sum;
    row_gradient<KEPT_BATCH, T, E, PACKS>(run, row, gradient, [&](int64_t i) {
        return i < keeps ? kept[i] : read<E, PACKS>(x + i * E);
    });
}

template <class T, int E, bool PACKS> ROW_KERNEL softmax_backward_kernel(LossRun run)
{
    int64_t row = blockIdx.x;
    if (row >= run.real) {
        zero_row<T, E, PACKS>(run, row);
        return;
    }
    const T *x = (const T *)run.x + row * run.stride;
    Gradient gradient = gradient_of(run, row);
    gradient.log_sum = run.log_sum[row];
    row_gradient<BATCH, T, E, PACKS>(run, row, gradient,
                                     [&](int64_t i) { return read<E, PACKS>(x + i * E); });
}

/* One warp for each row. */
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

/* most bytes of shared memory for a block's other variables */
enum { STATIC_BYTES = 1024 };

cudaError_t cuda_softmax_room(int device, int64_t *bytes)
{
    int all = 0, reserved = 0;
    cudaError_t st =
        cudaDeviceGetAttribute(&all, cudaDevAttrMaxSharedMemoryPerMultiprocessor, device);
    if (st == cudaSuccess)
        st = cudaDeviceGetAttribute(&reserved, cudaDevAttrReservedSharedMemoryPerBlock, device);
    *bytes = all / ROW_BLOCKS - reserved - STATIC_BYTES;
    return st;
}

/* Allows a kernel more than the 48 KiB of shared memory that every kernel may use. */
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

template <class T, int E, bool PACKS>
static cudaError_t launch_softmax(cudaStream_t stream, const LossRun &run)
{
    const int64_t pack_bytes = sizeof(Pack<T, E>), packs = run.width / E,
                  room = run.dx ? run.room : 0;
    int64_t keeps = room / pack_bytes < packs ? room / pack_bytes : packs;
    size_t bytes = (size_t)(keeps * pack_bytes);
    unsigned blocks = (unsigned)run.rows, threads = row_threads(run);
    cudaError_t st = allow_shared((const void *)softmax_kernel<T, E, PACKS>, bytes);
    if (st != cudaSuccess) return st;
    softmax_kernel<T, E, PACKS><<<blocks, threads, bytes, stream>>>(run, keeps);
    return cudaGetLastError();
}

cudaError_t launch_softmax_loss(cudaStream_t stream, LossRun run)
{
    int wide = cuda_pack(run.type, run.stride);
    bool packs = in_packs(run.x, run.dx);
    if (run.rows == 0) return cudaSuccess;
#define KERNEL(T, N, P) return launch_softmax<T, N, P>(stream, run)
#define LAUNCH(T)       WIDE_OR_ONE(KERNEL, T)
    TYPE_SWITCH(run.type, LAUNCH);
#undef LAUNCH
#undef KERNEL
}

cudaError_t launch_softmax_loss_backward(cudaStream_t stream, LossRun run)
{
    int wide = cuda_pack(run.type, run.stride);
    bool packs = in_packs(run.x, run.dx);
    unsigned blocks = (unsigned)run.rows, threads = row_threads(run);
#define KERNEL(T, N, P) softmax_backward_kernel<T, N, P><<<blocks, threads, 0, stream>>>(run)
#define LAUNCH(T)       WIDE_OR_ONE(KERNEL, T)
    if (run.rows > 0) TYPE_SWITCH(run.type, LAUNCH);
#undef LAUNCH
#undef KERNEL
    return cudaGetLastError();
}

cudaError_t launch_mse_loss(cudaStream_t stream, LossRun run)
{
#define LAUNCH(T) mse_kernel<T><<<blocks_for(run.rows, WARPS), THREADS, 0, stream>>>(run)
    if (run.rows > 0) TYPE_SWITCH(run.type, LAUNCH);
#undef LAUNCH
    return cudaGetLastError();
}

cudaError_t launch_mse_loss_backward(cudaStream_t stream, LossRun run)
{
#define LAUNCH(T) mse_backward_kernel<T><<<blocks_for(run.rows, WARPS), THREADS, 0, stream>>>(run)
    if (run.rows > 0) TYPE_SWITCH(run.type, LAUNCH);
#undef LAUNCH
    return cudaGetLastError();
}
