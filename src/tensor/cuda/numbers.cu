/* Single numbers that stay on the GPU, so that the host need not wait for them: the numbers of a
 * step (StepNumbers, UpdateNumbers), the sums of a loss, sums of squares, the factor of gradient
 * clipping. Sums are in double or exact. In a sum, thread t adds elements t, t + THREADS, ..., and
 * then a tree adds the sums of the threads. Only clip_kernel adds in ascending order. */
#include "cuda_kernels.h"
#include "passes/launch.cuh"

static __global__ void loss_sums_kernel(float *out, const float *results, int64_t lines)
{
    /* Column 0 of a line is the loss. For a loss of classes, column 1 is the number of logits that
     * rank before the label. */
    double loss = 0, top1 = 0, top5 = 0, column1 = 0, column2 = 0;
/* unrolled, so that the single block has many loads in flight */
#pragma unroll 8
    for (int64_t i = threadIdx.x; i < lines; i += THREADS) {
        const float *line = results + i * LOSS_COLUMNS;
        loss += line[0];
        column1 += line[1];
        column2 += line[2];
        /* column 1 is below 0 if the line has no label */
        top1 += line[1] >= 0 && line[1] < 1;
        top5 += line[1] >= 0 && line[1] < 5;
    }
    loss = block_sum(loss);
    top1 = block_sum(top1);
    top5 = block_sum(top5);
    column1 = block_sum(column1);
    column2 = block_sum(column2);
    if (threadIdx.x > 0) return;
    out[LOSS_SUM] = (float)loss;
    out[LOSS_LINES] = (float)lines;
    out[LOSS_TOP1] = (float)top1;
    out[LOSS_TOP5] = (float)top5;
    out[LOSS_ANY] = lines > 0;
    out[LOSS_COLUMN1] = (float)column1;
    out[LOSS_COLUMN2] = (float)column2;
}

static __global__ void range_sums_kernel(double *out, const double *x, const int64_t *first)
{
    double sum = 0;
    for (int64_t i = first[blockIdx.x] + threadIdx.x; i < first[blockIdx.x + 1]; i += THREADS)
        sum += x[i];
    sum = block_sum(sum);
    if (threadIdx.x == 0) out[blockIdx.x] = sum;
}

/* Adds the terms of `from` to *to, as square_sum_add does. */
static __device__ void add_exactly(SquareSum *to, const SquareSum &from)
{
    const int64_t scale = to->scale > from.scale ? to->scale : from.scale;
    SquareSum sum = {{0, 0, 0}, scale};
    for (int64_t i = 0; i < 3; ++i) {
        const int64_t a = i - (scale - to->scale), b = i - (scale - from.scale);
        sum.part[i] = (a >= 0 ? to->part[a] : 0) + (b >= 0 ? from.part[b] : 0);
    }
    *to = sum;
}

/* Returns the value of the sum, as square_sum_value does. */
static __device__ double exact_value(const SquareSum &sum)
{
    if (sum.scale == SQUARES_NAN) return NAN;
    if (sum.scale == SQUARES_INFINITE) return INFINITY;
    const int unit = 32 * (int)(sum.scale - SQUARES_SCALE_0);
    return ldexp((double)sum.part[2], unit - 64) + ldexp((double)sum.part[1], unit - 32) +
           ldexp((double)sum.part[0], unit);
}

static __global__ void join_squares_kernel(SquareSum *out, double *value, const SquareSum *x,
                                           const int64_t *first)
{
    __shared__ SquareSum part[THREADS];
    SquareSum sum = {{0, 0, 0}, 0};
    for (int64_t i = first[blockIdx.x] + threadIdx.x; i < first[blockIdx.x + 1]; i += THREADS)
        add_exactly(&sum, x[i]);
    part[threadIdx.x] = sum;
    for (int half = THREADS / 2; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half) add_exactly(&part[threadIdx.x], part[threadIdx.x + half]);
    }
    if (threadIdx.x > 0) return;
    out[blockIdx.x] = part[0];
    value[blockIdx.x] = exact_value(part[0]);
}

/* Grid: one thread. It is enough, because there is only one sum of squares for each tensor. */
static __global__ void clip_kernel(float *grad_scale, const double *squares, int count,
                                   double limit)
{
    double sum = 0;
    for (int i = 0; i < count; ++i) sum += squares[i];
    *grad_scale = sqrt(sum) > limit ? (float)(limit / sqrt(sum)) : 1;
}

cudaError_t launch_put(cudaStream_t stream, void *to, const void *from, size_t bytes)
{
    if (bytes > FLAT_PUT) return cudaErrorInvalidValue;
    return put_bytes<FLAT_PUT>(stream, to, from, bytes);
}

cudaError_t launch_loss_sums(cudaStream_t stream, float *out, const float *results, int64_t lines)
{
    loss_sums_kernel<<<1, THREADS, 0, stream>>>(out, results, lines);
    return cudaGetLastError();
}

cudaError_t launch_range_sums(cudaStream_t stream, double *out, const double *x,
                              const int64_t *first, int count)
{
    if (count > 0) range_sums_kernel<<<(unsigned)count, THREADS, 0, stream>>>(out, x, first);
    return cudaGetLastError();
}

cudaError_t launch_join_squares(cudaStream_t stream, SquareSum *out, double *value,
                                const SquareSum *x, const int64_t *first, int count)
{
    if (count > 0)
        join_squares_kernel<<<(unsigned)count, THREADS, 0, stream>>>(out, value, x, first);
    return cudaGetLastError();
}

cudaError_t launch_clip(cudaStream_t stream, float *grad_scale, const double *squares, int count,
                        double limit)
{
    clip_kernel<<<1, 1, 0, stream>>>(grad_scale, squares, count, limit);
    return cudaGetLastError();
}
