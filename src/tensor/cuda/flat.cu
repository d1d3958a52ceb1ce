/* Elementwise work on flat ranges: sums, update rules, partial norms. Whether an element is
 * processed in a pack or alone depends on the grid. So update rules use explicit fused
 * multiply-adds: the compiler's own choice could differ between the two. A partial norm covers
 * FLAT_CHUNK elements and is computed by one block: thread t adds packs t, t + THREADS, ... in
 * double, then a tree adds the threads' sums, in an order that does not depend on where the range
 * lies. */
#include "map.cuh"

#include <cfloat>

struct Fill {
    enum { INPUTS = 0 };
    float value;
    __device__ __forceinline__ float operator()(float, float) const { return value; }
};
struct Add {
    enum { INPUTS = 2 };
    __device__ __forceinline__ float operator()(float a, float b) const { return a + b; }
};
struct Scale {
    enum { INPUTS = 1 };
    float alpha;
    __device__ __forceinline__ float operator()(float x, float) const { return alpha * x; }
};
struct ScaleAdd {
    enum { INPUTS = 2 };
    float alpha, beta;
    __device__ __forceinline__ float operator()(float x, float y) const
    {
        return __fmaf_rn(alpha, x, beta * y);
    }
};

enum { E = PACK(float) };

/* Calls f(number) for this thread's numbers of a chunk x of `count` elements, in order. */
template <bool PACKS, class F>
static __device__ __forceinline__ void each_of_chunk(const float *x, int64_t count, F f)
{
    in_batches<FLAT_CHUNK / THREADS / E>(
        threadIdx.x, count / E, THREADS, [&](int64_t i) { return read<E, PACKS>(x + i * E); },
        [&](int64_t, const Pack<float, E> &v) {
            for (int k = 0; k < E; ++k) f(v[k]);
        });
    int64_t rest = count / E * E + threadIdx.x;
    if (rest < count) f(x[rest]);
}

/* The chunk of a range of n elements that this block computes. */
static __device__ __forceinline__ FlatChunk chunk_of_range(int64_t n)
{
    int64_t first = (int64_t)blockIdx.x * FLAT_CHUNK, left = n - first;
    return {first, left < FLAT_CHUNK ? left : (int64_t)FLAT_CHUNK, (int64_t)blockIdx.x};
}

template <bool PACKS>
static __device__ __forceinline__ void sum_chunk(double *out, const float *x, FlatChunk chunk)
{
    __shared__ double part[THREADS];
    double sum = 0;
    each_of_chunk<PACKS>(x + chunk.offset, chunk.elements, [&](float v) { sum += (double)v * v; });
    part[threadIdx.x] = sum;
    for (int half = THREADS / 2; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half) part[threadIdx.x] += part[threadIdx.x + half];
    }
    if (threadIdx.x == 0) out[chunk.sum] = part[0];
}

template <bool PACKS> static __global__ void squares_kernel(double *out, const float *x, int64_t n)
{
    sum_chunk<PACKS>(out, x, chunk_of_range(n));
}

/* One block for each chunk. Alignment is checked here, since it differs between chunks of one
 * arena. */
static __global__ void chunk_squares_kernel(double *out, const float *x, const FlatChunk *chunk)
{
    const FlatChunk mine = chunk[blockIdx.x];
    if ((uintptr_t)(x + mine.offset) % PACK_BYTES == 0)
        sum_chunk<true>(out, x, mine);
    else
        sum_chunk<false>(out, x, mine);
}

/* Replaces the numbers that change at every step by those in the backend's memory, unless `now` is
 * NULL. */
static __device__ __forceinline__ SgdArgs with_step_numbers(SgdArgs a)
{
    if (!a.now) return a;
    a.lr = a.now->lr;
    a.grad_scale = a.now->grad_scale;
    return a;
}

static __device__ __forceinline__ AdamArgs with_step_numbers(AdamArgs a)
{
    if (!a.now) return a;
    a.lr = a.now->lr;
    a.grad_scale = a.now->grad_scale;
    a.correct1 = a.now->correct1;
    a.correct2 = a.now->correct2;
    return a;
}

/* Several threads may write *found: all write 1. */
template <bool PACKS>
static __global__ void find_overflow_kernel(float *found, const float *x, int64_t n)
{
    bool all = true;
    const FlatChunk chunk = chunk_of_range(n);
    each_of_chunk<PACKS>(x + chunk.offset, chunk.elements,
                         [&](float v) { all = all && fabsf(v) <= FLT_MAX; });
    if (!all) *found = 1;
}

typedef struct SgdRun {
    SgdArgs args;
    float *w, *m;
    const float *g;
    int64_t n;
} SgdRun;

template <int COUNT> static __device__ __forceinline__ void sgd_at(const SgdRun &run, int64_t i)
{
    const SgdArgs a = with_step_numbers(run.args);
    float w[COUNT], g[COUNT], m[COUNT];
    bool remembers = a.momentum != 0;
    read_floats<COUNT, true>(w, run.w + i);
    read_floats<COUNT, true>(g, run.g + i);
    if (remembers && !a.first) read_floats<COUNT, true>(m, run.m + i);
#pragma unroll
    for (int k = 0; k < COUNT; ++k) {
        float step = __fmaf_rn(g[k], a.grad_scale, a.weight_decay * w[k]);
        if (remembers) {
            float velocity = a.first ? step : __fmaf_rn(a.momentum, m[k], step);
            m[k] = velocity;
            step = a.nesterov ? __fmaf_rn(a.momentum, velocity, step) : velocity;
        }
        w[k] = __fmaf_rn(-a.lr, step, w[k]);
    }
    if (remembers) write<COUNT, true>(run.m + i, m);
    write<COUNT, true>(run.w + i, w);
}

/* Each thread updates COUNT elements, and the first threads also one each of the elements that are
 * left over. */
template <int COUNT> static __global__ void sgd_kernel(SgdRun run)
{
    int64_t i = element();
    if (i < run.n / COUNT) sgd_at<COUNT>(run, i * COUNT);
    if (i < run.n % COUNT) sgd_at<1>(run, run.n / COUNT * COUNT + i);
}

template <int COUNT> static __device__ __forceinline__ void adam_at(const AdamRun &run, int64_t i)
{
    const AdamArgs a = with_step_numbers(run.args);
    float w[COUNT], g[COUNT], m[COUNT], v[COUNT], out[COUNT];
    read_floats<COUNT, true>(w, run.w + i);
    read_floats<COUNT, true>(g, run.g + i);
    read_floats<COUNT, true>(m, run.m + i);
    read_floats<COUNT, true>(v, run.v + i);
#pragma unroll
    for (int k = 0; k < COUNT; ++k) {
        float weight = w[k], gradient = g[k] * a.grad_scale;
        if (!run.direction && !a.decoupled) gradient = __fmaf_rn(a.weight_decay, weight, gradient);
        m[k] = __fmaf_rn(a.beta1, m[k], (1 - a.beta1) * gradient);
        v[k] = __fmaf_rn(a.beta2, v[k], (1 - a.beta2) * gradient * gradient);
        float u = (m[k] / a.correct1) / (sqrtf(v[k] / a.correct2) + a.eps);
        if (run.direction) {
            out[k] = __fmaf_rn(a.weight_decay, weight, u);
        } else {
            if (a.decoupled) weight *= __fmaf_rn(-a.lr, a.weight_decay, 1);
            out[k] = __fmaf_rn(-a.lr, u, weight);
        }
    }
    write<COUNT, true>(run.m + i, m);
    write<COUNT, true>(run.v + i, v);
    write<COUNT, true>(run.out + i, out);
}

template <int COUNT> static __global__ void adam_kernel(AdamRun run)
{
    int64_t i = element();
    if (i < run.n / COUNT) adam_at<COUNT>(run, i * COUNT);
    if (i < run.n % COUNT) adam_at<1>(run, run.n / COUNT * COUNT + i);
}

/* Adds COUNT elements of all slices, slice by slice in order. */
template <class T, int COUNT>
static __device__ __forceinline__ void add_slices_at(const SlicesRun &run, int64_t i)
{
    const T *from = (const T *)run.slices + i;
    float sum[COUNT];
    Pack<T, COUNT> v = read<COUNT, true>(from);
#pragma unroll
    for (int k = 0; k < COUNT; ++k) sum[k] = v[k];
    for (int s = 1; s < run.count; ++s) {
        v = read<COUNT, true>(from + s * run.stride);
#pragma unroll
        for (int k = 0; k < COUNT; ++k) sum[k] += v[k];
    }
    write<COUNT, true>((T *)run.out + i, sum);
}

template <class T, int COUNT> static __global__ void add_slices_kernel(SlicesRun run)
{
    int64_t i = element();
    if (i < run.n / COUNT) add_slices_at<T, COUNT>(run, i * COUNT);
    if (i < run.n % COUNT) add_slices_at<T, 1>(run, run.n / COUNT * COUNT + i);
}

#define NO_INPUT ((const float *)nullptr)

cudaError_t launch_fill(cudaStream_t stream, float *to, float value, int64_t n)
{
    return map(stream, Fill{value}, to, NO_INPUT, NO_INPUT, n);
}

cudaError_t launch_add(cudaStream_t stream, float *out, const float *a, const float *b, int64_t n)
{
    return map(stream, Add(), out, a, b, n);
}

cudaError_t launch_scale_add(cudaStream_t stream, float *y, float alpha, const float *x, float beta,
                             int64_t n)
{
    if (beta == 0) return map(stream, Scale{alpha}, y, x, NO_INPUT, n);
    return map(stream, ScaleAdd{alpha, beta}, y, x, (const float *)y, n);
}

cudaError_t launch_add_slices(cudaStream_t stream, SlicesRun run)
{
    int wide = cuda_pack(run.type, run.stride);
    bool packs = wide > 1 && in_packs(run.out, run.slices);
#define KERNEL(T, COUNT)                                                                           \
    add_slices_kernel<T, COUNT><<<blocks_for(run.n, THREADS *COUNT), THREADS, 0, stream>>>(run)
#define LAUNCH(T)                                                                                  \
    if (packs)                                                                                     \
        KERNEL(T, PACK(T));                                                                        \
    else                                                                                           \
        KERNEL(T, 1)
    if (run.n > 0) TYPE_SWITCH(run.type, LAUNCH);
#undef LAUNCH
#undef KERNEL
    return cudaGetLastError();
}

cudaError_t launch_squares(cudaStream_t stream, double *out, const float *x, int64_t n)
{
    unsigned blocks = blocks_for(n, FLAT_CHUNK);
    if (n > 0 && in_packs(x))
        squares_kernel<true><<<blocks, THREADS, 0, stream>>>(out, x, n);
    else if (n > 0)
        squares_kernel<false><<<blocks, THREADS, 0, stream>>>(out, x, n);
    return cudaGetLastError();
}

cudaError_t launch_chunk_squares(cudaStream_t stream, double *out, const float *x,
                                 const FlatChunk *chunk, int64_t count)
{
    if (count > 0) chunk_squares_kernel<<<(unsigned)count, THREADS, 0, stream>>>(out, x, chunk);
    return cudaGetLastError();
}

cudaError_t launch_find_overflow(cudaStream_t stream, float *found, const float *x, int64_t n)
{
    unsigned blocks = blocks_for(n, FLAT_CHUNK);
    if (n > 0 && in_packs(x))
        find_overflow_kernel<true><<<blocks, THREADS, 0, stream>>>(found, x, n);
    else if (n > 0)
        find_overflow_kernel<false><<<blocks, THREADS, 0, stream>>>(found, x, n);
    return cudaGetLastError();
}

cudaError_t launch_sgd(cudaStream_t stream, SgdArgs a, float *w, const float *g, float *m,
                       int64_t n)
{
    SgdRun run = {a, w, m, g, n};
    if (n > 0 && in_packs(w, g, m))
        sgd_kernel<E><<<blocks_for(n, THREADS * E), THREADS, 0, stream>>>(run);
    else if (n > 0)
        sgd_kernel<1><<<blocks_for(n, THREADS), THREADS, 0, stream>>>(run);
    return cudaGetLastError();
}

cudaError_t launch_adam(cudaStream_t stream, AdamRun run)
{
    if (run.n > 0 && in_packs(run.w, run.g, run.m, run.v) && in_packs(run.out))
        adam_kernel<E><<<blocks_for(run.n, THREADS * E), THREADS, 0, stream>>>(run);
    else if (run.n > 0)
        adam_kernel<1><<<blocks_for(run.n, THREADS), THREADS, 0, stream>>>(run);
    return cudaGetLastError();
}
