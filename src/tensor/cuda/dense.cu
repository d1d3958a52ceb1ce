/* What a dense layer needs beside the matrix products: bias and activation in one pass, and the bias gradient. */
#include "act.cuh"
#include "elem.cuh"

template <class T, Act ACT>
static __global__ void bias_act_kernel(T *y, const float *bias, int64_t n, int64_t columns)
{
    int64_t i = element();
    if (i < n) set(y + i, act_value<ACT>(value_of(y[i]) + (bias ? bias[i % columns] : 0)));
}

/* Grid: columns / WARP, parts of rows. Lane = column, warp w adds rows w, w + WARPS, ... of the part; then warp 0 adds the
 * warps in order. */
template <class T>
static __global__ void column_parts_kernel(float *partial, const T *dy, int64_t rows,
                                           int64_t columns, int64_t stride)
{
    __shared__ float part[WARPS][WARP];
    int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
    int64_t column = (int64_t)blockIdx.x * WARP + lane;
    int64_t first = rows * blockIdx.y / gridDim.y, last = rows * (blockIdx.y + 1) / gridDim.y;
    float sum = 0;
    if (column < columns)
        for (int64_t row = first + warp; row < last; row += WARPS)
            sum += value_of(dy[row * stride + column]);
    part[warp][lane] = sum;
    __syncthreads();
    if (warp != 0 || column >= columns) return;
    for (int w = 1; w < WARPS; ++w) sum += part[w][lane];
    partial[blockIdx.y * columns + column] = sum;
}

static __global__ void column_join_kernel(float *out, const float *partial, int parts,
                                          int64_t columns)
{
    int64_t column = element();
    if (column >= columns) return;
    float sum = 0;
    for (int p = 0; p < parts; ++p) sum += partial[p * columns + column];
    out[column] = sum;
}

cudaError_t cuda_bias_act(cudaStream_t stream, DType type, Act act, void *y, const float *bias,
                          int64_t rows, int64_t columns)
{
    int64_t n = rows * columns;
#define GRID          blocks_for(n, THREADS), THREADS, 0, stream
#define LAUNCH_ACT(A) bias_act_kernel<Elem, A><<<GRID>>>((Elem *)y, bias, n, columns)
#define LAUNCH(T)                                                                                  \
    typedef T Elem;                                                                                \
    ACT_SWITCH(act, LAUNCH_ACT)
    if (n > 0) TYPE_SWITCH(type, LAUNCH);
#undef LAUNCH
    return cudaGetLastError();
}

cudaError_t cuda_column_sum(cudaStream_t stream, DType type, float *out, float *partial,
                            const void *dy, int64_t rows, int64_t columns, int64_t stride)
{
    int parts = rows < COLUMN_PARTS * WARPS ? 1 : COLUMN_PARTS;
    dim3 grid(blocks_for(columns, WARP), (unsigned)parts);
    float *to = parts == 1 ? out : partial;
#define LAUNCH(T)                                                                                  \
    column_parts_kernel<T><<<grid, THREADS, 0, stream>>>(to, (const T *)dy, rows, columns, stride)
    TYPE_SWITCH(type, LAUNCH);
#undef LAUNCH
    if (parts > 1)
        column_join_kernel<<<blocks_for(columns, THREADS), THREADS, 0, stream>>>(out, partial,
                                                                                 parts, columns);
    return cudaGetLastError();
}
