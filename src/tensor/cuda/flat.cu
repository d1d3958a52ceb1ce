/* Work on flat ranges of memory: elementwise sums, partial sums of squares. An element must get the
 * same bits whether it is processed in a pack or alone. Therefore scale_add uses an explicit fused
 * multiply-add; otherwise the compiler might fuse in only one of the two cases. A partial sum of
 * squares covers FLAT_CHUNK elements, and one block computes it: thread t adds packs t, t +
 * THREADS, ... in double, then a tree adds the sums of the threads. This order does not depend on
 * the alignment of the range. */
#include "passes/map.cuh"

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

/* elements that a thread processes at a time */
enum { E = PACK(float) };

/* Calls f(value) for this thread's elements of the chunk x of `count` elements, in ascending
 * order. */
template <bool ALIGNED, class F>
static __device__ __forceinline__ void for_chunk_elements(const float *x, int64_t count, F f)
{
    in_batches<FLAT_CHUNK / THREADS / E>(
        threadIdx.x, count / E, THREADS,
        [&](int64_t i) { return read_pack<E, ALIGNED>(x + i * E); },
        [&](int64_t, const Pack<float, E> &v) {
            for (int k = 0; k < E; ++k) f(v[k]);
        });
    int64_t rest = count / E * E + threadIdx.x;
    if (rest < count) f(x[rest]);
}

/* Returns the chunk that this block computes, of a range of n elements. */
static __device__ __forceinline__ FlatChunk chunk_of_range(int64_t n)
{
    int64_t first = (int64_t)blockIdx.x * FLAT_CHUNK, left = n - first;
    return {first, left < FLAT_CHUNK ? left : (int64_t)FLAT_CHUNK, (int64_t)blockIdx.x};
}

template <bool ALIGNED>
static __device__ __forceinline__ void sum_chunk_squares(double *out, const float *x,
                                                         FlatChunk chunk)
{
    __shared__ double part[THREADS];
    double sum = 0;
    for_chunk_elements<ALIGNED>(x + chunk.offset, chunk.elements,
                                [&](float v) { sum += (double)v * v; });
    part[threadIdx.x] = sum;
    for (int half = THREADS / 2; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half) part[threadIdx.x] += part[threadIdx.x + half];
    }
    if (threadIdx.x == 0) out[chunk.sum] = part[0];
}

template <bool ALIGNED>
static __global__ void squares_kernel(double *out, const float *x, int64_t n)
{
    sum_chunk_squares<ALIGNED>(out, x, chunk_of_range(n));
}

/* Grid: one block for each chunk. The kernel, not the launcher, checks the alignment, because it
 * differs between the chunks of an arena. */
static __global__ void chunk_squares_kernel(double *out, const float *x, const FlatChunk *chunk)
{
    const FlatChunk this_chunk = chunk[blockIdx.x];
    if ((uintptr_t)(x + this_chunk.offset) % PACK_BYTES == 0)
        sum_chunk_squares<true>(out, x, this_chunk);
    else
        sum_chunk_squares<false>(out, x, this_chunk);
}

/* Adds the THREADS numbers in `part`, which is shared memory. The sum is in part[0] afterwards. */
static __device__ __forceinline__ void add_threads(double *part)
{
    for (int half = THREADS / 2; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half) part[threadIdx.x] += part[threadIdx.x + half];
    }
    __syncthreads();
}

/* Returns the largest `mine` of the block's threads. mine: bits of the magnitude of a float. */
static __device__ __forceinline__ unsigned largest_bits(unsigned mine)
{
    __shared__ unsigned all[THREADS];
    all[threadIdx.x] = mine;
    for (int half = THREADS / 2; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half && all[threadIdx.x] < all[threadIdx.x + half])
            all[threadIdx.x] = all[threadIdx.x + half];
    }
    __syncthreads();
    return all[0];
}

/* Computes the sum of a chunk's squares as multiples of three units (SquareSum). When 1.5 * 2^52
 * units are added to a term, the term is rounded to a multiple of the unit. The subtraction of 1.5
 * * 2^52 units afterwards is exact, and so is the sum of the multiples. */
template <bool ALIGNED>
static __device__ __forceinline__ void sum_chunk_exactly(SquareSum *out, const float *x,
                                                         FlatChunk chunk)
{
    __shared__ double part[3][THREADS];
    unsigned top = 0;
    for_chunk_elements<ALIGNED>(x + chunk.offset, chunk.elements, [&](float v) {
        unsigned bits;
        memcpy(&bits, &v, sizeof bits);
        bits &= 0x7fffffffu;
        top = bits > top ? bits : top;
    });
    top = largest_bits(top);
    const int bound = 2 * ((int)(top >> 23 ? top >> 23 : 1) - 126);
    const int scale = (bound + 32 * SQUARES_SCALE_0) / 32 - SQUARES_SCALE_0;
    const double magic = 6755399441055744.0, unit0 = ldexp(1.0, 32 * scale),
                 unit1 = ldexp(1.0, 32 * scale - 32), unit2 = ldexp(1.0, 32 * scale - 64);
    double sum0 = 0, sum1 = 0, sum2 = 0;
    for_chunk_elements<ALIGNED>(x + chunk.offset, chunk.elements, [&](float v) {
        const double term = (double)v * v;
        const double part0 = term + magic * unit0 - magic * unit0, rest = term - part0;
        const double part1 = rest + magic * unit1 - magic * unit1;
        sum0 += part0;
        sum1 += part1;
        sum2 += rest - part1 + magic * unit2 - magic * unit2;
    });
    part[0][threadIdx.x] = sum0;
    part[1][threadIdx.x] = sum1;
    part[2][threadIdx.x] = sum2;
    for (int k = 0; k < 3; ++k) add_threads(part[k]);
    if (threadIdx.x > 0) return;
    SquareSum sum = {{0, 0, 0}, top > 0x7f800000u ? SQUARES_NAN : SQUARES_INFINITE};
    if (top < 0x7f800000u)
        sum = {{(int64_t)(part[0][0] / unit0), (int64_t)(part[1][0] / unit1),
                (int64_t)(part[2][0] / unit2)},
               scale + SQUARES_SCALE_0};
    out[chunk.sum] = sum;
}

/* Grid: one block for each chunk of the list `chunk` or, if it is NULL, for each chunk of a range
 * of n elements. */
static __global__ void exact_squares_kernel(SquareSum *out, const float *x, int64_t n,
                                            const FlatChunk *chunk)
{
    const FlatChunk this_chunk = chunk ? chunk[blockIdx.x] : chunk_of_range(n);
    if ((uintptr_t)(x + this_chunk.offset) % PACK_BYTES == 0)
        sum_chunk_exactly<true>(out, x, this_chunk);
    else
        sum_chunk_exactly<false>(out, x, this_chunk);
}

/* Sets *found to 1 if an element is infinite or NaN. Several threads may write *found; all write
 * 1. */
template <bool ALIGNED>
static __global__ void find_not_finite_kernel(float *found, const float *x, int64_t n)
{
    bool finite = true;
    const FlatChunk chunk = chunk_of_range(n);
    for_chunk_elements<ALIGNED>(x + chunk.offset, chunk.elements,
                                [&](float v) { finite = finite && fabsf(v) <= FLT_MAX; });
    if (!finite) *found = 1;
}

template <int COUNT> static __global__ void swap_kernel(float *a, float *b, int64_t n)
{
    int64_t i = element();
    float x[COUNT], y[COUNT];
    if (i < n / COUNT) {
        read_floats<COUNT, true>(x, a + i * COUNT);
        read_floats<COUNT, true>(y, b + i * COUNT);
        write_floats<COUNT, true>(a + i * COUNT, y);
        write_floats<COUNT, true>(b + i * COUNT, x);
    }
    if (i >= n % COUNT) return;
    i += n / COUNT * COUNT;
    const float from_a = a[i];
    a[i] = b[i];
    b[i] = from_a;
}

/* Adds elements i .. i + COUNT - 1 of all slices, in the order of the slices. */
template <class T, int COUNT>
static __device__ __forceinline__ void add_slice_elements(const SlicesRun &run, int64_t i)
{
    const T *from = (const T *)run.slices + i;
    float sum[COUNT];
    Pack<T, COUNT> v = read_pack<COUNT, true>(from);
#pragma unroll
    for (int k = 0; k < COUNT; ++k) sum[k] = v[k];
    for (int s = 1; s < run.count; ++s) {
        v = read_pack<COUNT, true>(from + s * run.stride);
#pragma unroll
        for (int k = 0; k < COUNT; ++k) sum[k] += v[k];
    }
    write_floats<COUNT, true>((T *)run.out + i, sum);
}

template <class T, int COUNT> static __global__ void add_slices_kernel(SlicesRun run)
{
    int64_t i = element();
    if (i < run.n / COUNT) add_slice_elements<T, COUNT>(run, i * COUNT);
    if (i < run.n % COUNT) add_slice_elements<T, 1>(run, run.n / COUNT * COUNT + i);
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
    int pack_size = cuda_pack_size(run.type, run.stride);
    bool aligned = pack_size > 1 && aligned_to_packs(run.out, run.slices);
#define KERNEL(T, COUNT)                                                                           \
    add_slices_kernel<T, COUNT><<<blocks_for(run.n, THREADS *COUNT), THREADS, 0, stream>>>(run)
#define LAUNCH(T)                                                                                  \
    if (aligned)                                                                                   \
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
    if (n > 0 && aligned_to_packs(x))
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

cudaError_t launch_exact_squares(cudaStream_t stream, SquareSum *out, const float *x, int64_t n)
{
    const FlatChunk *list = nullptr;
    if (n > 0)
        exact_squares_kernel<<<blocks_for(n, FLAT_CHUNK), THREADS, 0, stream>>>(out, x, n, list);
    return cudaGetLastError();
}

cudaError_t launch_exact_chunk_squares(cudaStream_t stream, SquareSum *out, const float *x,
                                       const FlatChunk *chunk, int64_t count)
{
    const int64_t n = 0;
    if (count > 0) exact_squares_kernel<<<(unsigned)count, THREADS, 0, stream>>>(out, x, n, chunk);
    return cudaGetLastError();
}

cudaError_t launch_find_not_finite(cudaStream_t stream, float *found, const float *x, int64_t n)
{
    unsigned blocks = blocks_for(n, FLAT_CHUNK);
    if (n > 0 && aligned_to_packs(x))
        find_not_finite_kernel<true><<<blocks, THREADS, 0, stream>>>(found, x, n);
    else if (n > 0)
        find_not_finite_kernel<false><<<blocks, THREADS, 0, stream>>>(found, x, n);
    return cudaGetLastError();
}

cudaError_t launch_swap(cudaStream_t stream, float *a, float *b, int64_t n)
{
    if (n > 0 && aligned_to_packs(a, b))
        swap_kernel<E><<<blocks_for(n, THREADS * E), THREADS, 0, stream>>>(a, b, n);
    else if (n > 0)
        swap_kernel<1><<<blocks_for(n, THREADS), THREADS, 0, stream>>>(a, b, n);
    return cudaGetLastError();
}
