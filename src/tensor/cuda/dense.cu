/* What a dense layer needs beside the matrix products: bias and activation in one pass, and the bias gradient. */
#include "act.cuh"
#include "launch.cuh"

template <Act ACT>
static __global__ void bias_act_kernel(float *y, const float *bias, int64_t n, int64_t columns)
{
    int64_t i = element();
    if (i < n) y[i] = act_value<ACT>(bias ? y[i] + bias[i % columns] : y[i]);
}

/* A block covers WARP columns: lane = column, warp w adds rows w, w + WARPS, ...; then warp 0 adds the warps in order. */
static __global__ void column_sum_kernel(float *out, const float *dy, int64_t rows, int64_t columns)
{
    __shared__ float part[WARPS][WARP];
    int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
    int64_t column = (int64_t)blockIdx.x * WARP + lane;
    float sum = 0;
    if (column < columns)
        for (int64_t row = warp; row < rows; row += WARPS) sum += dy[row * columns + column];
    part[warp][lane] = sum;
    __syncthreads();
    if (warp != 0 || column >= columns) return;
    for (int w = 1; w < WARPS; ++w) sum += part[w][lane];
    out[column] = sum;
}

cudaError_t cuda_bias_act(cudaStream_t stream, Act act, float *y, const float *bias, int64_t rows,
                          int64_t columns)
{
    int64_t n = rows * columns;
#define LAUNCH(A)                                                                                  \
    bias_act_kernel<A><<<blocks_for(n, THREADS), THREADS, 0, stream>>>(y, bias, n, columns)
    if (n > 0) ACT_SWITCH(act, LAUNCH)
#undef LAUNCH
    return cudaGetLastError();
}

cudaError_t cuda_column_sum(cudaStream_t stream, float *out, const float *dy, int64_t rows,
                            int64_t columns)
{
    if (columns > 0)
        column_sum_kernel<<<blocks_for(columns, WARP), THREADS, 0, stream>>>(out, dy, rows,
                                                                             columns);
    return cudaGetLastError();
}
