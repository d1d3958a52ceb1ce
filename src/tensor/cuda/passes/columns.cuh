/* Passes over matrices (rows, columns). A thread has E neighbouring columns and a loop over rows,
 * so it reads the parameters of its columns once, and computes no index by division. A sum over
 * rows is divided into parts; their number depends on the shape alone:
 *     sum_part     the threads with threadIdx.y = y add rows y, y + blockDim.y, ... of a part
 *     store_part   adds the sums of the threads in the order of y
 *     join_parts   thread y adds parts y, y + JOIN_ROWS, ...; the sums of the threads are then
 *                  added in the order of y */
#ifndef WEFT_COLUMNS_CUH
#define WEFT_COLUMNS_CUH

#include "elem.cuh"

enum {
    JOIN_ROWS = 32,
    /* Largest number of blocks of a launch; the blocks loop over the rows. It is 12 for each of the
     * 132 multiprocessors of a large GPU. A multiprocessor that runs 2, 3, 4 or 6 blocks at a time
     * then also runs that number in its last round. */
    MAP_BLOCKS = 1584
};

struct LaunchShape {
    /* number of blocks */
    dim3 grid;
    /* number of threads in a block */
    dim3 threads;
};

/* Returns the launch shape of a pass over rows. elements: columns of a thread; batch: rows of a
 * batch. */
static inline LaunchShape grid_over_rows(int64_t rows, int64_t columns, int elements, int batch)
{
    CudaTile tile = cuda_tile(columns, elements);
    int64_t down_max = MAP_BLOCKS / tile.across > 0 ? MAP_BLOCKS / tile.across : 1;
    int64_t down = (rows + tile.rows * batch - 1) / (tile.rows * batch);
    return {dim3((unsigned)tile.across, (unsigned)(down < down_max ? down : down_max)),
            dim3((unsigned)tile.packs, (unsigned)tile.rows)};
}

/* Returns the launch shape of a sum over rows in `parts` parts. elements: columns of a thread. */
static inline LaunchShape grid_over_parts(int64_t columns, int elements, int64_t parts)
{
    CudaTile tile = cuda_tile(columns, elements);
    return {dim3((unsigned)tile.across, (unsigned)parts),
            dim3((unsigned)tile.packs, (unsigned)tile.rows)};
}

/* Returns the first column of this thread. For some threads of the last block it is beyond the last
 * column of the matrix. */
template <int E> static __device__ __forceinline__ int64_t first_column()
{
    return ((int64_t)blockIdx.x * blockDim.x + threadIdx.x) * E;
}

/* Runs in_batches, in batches of U, over the rows of this thread. */
template <int U, class Load, class Finish>
static __device__ __forceinline__ void each_row(int64_t rows, Load load, Finish finish)
{
    in_batches<U>((int64_t)blockIdx.y * blockDim.y + threadIdx.y, rows,
                  (int64_t)gridDim.y * blockDim.y, load, finish);
}

/* Adds one batch of rows in sum_part. ALL: all U rows are below `last`. */
template <class S, int K, int E, int U, bool ALL, class Load, class Add>
static __device__ __forceinline__ void sum_batch(S (&sum)[K][E], int64_t first, int64_t last,
                                                 int64_t step, Load load, Add add)
{
    float batch_sum[K][E] = {};
    batch<U, ALL>(first, last, step, load,
                  [&](int64_t row, const auto &loaded) { add(row, loaded, batch_sum); });
#pragma unroll
    for (int i = 0; i < K * E; ++i) sum[i / E][i % E] += batch_sum[i / E][i % E];
}

/* Adds the sums of the block's threads in the order of threadIdx.y, and stores the results as part
 * `part` of partial (parts, K, columns). The first column of the block is tile * blockDim.x * E.
 * All threads of the block call it. */
template <class S, int K, int E>
static __device__ __forceinline__ void store_part(S *partial, int64_t part, int64_t tile,
                                                  int64_t columns, const S (&sum)[K][E])
{
    __shared__ S shared[K * E][THREADS];
    __syncthreads();
#pragma unroll
    for (int i = 0; i < K * E; ++i)
        shared[i][threadIdx.y * blockDim.x + threadIdx.x] = sum[i / E][i % E];
    __syncthreads();
    unsigned sums = K * E * blockDim.x, threads = blockDim.x * blockDim.y;
    for (unsigned i = threadIdx.y * blockDim.x + threadIdx.x; i < sums; i += threads) {
        unsigned sum_index = i / blockDim.x, x = i % blockDim.x;
        int64_t c = (tile * blockDim.x + x) * E + sum_index % E;
        S total = shared[sum_index][x];
        for (unsigned y = 1; y < blockDim.y; ++y) total += shared[sum_index][y * blockDim.x + x];
        if (c < columns) partial[(part * K + sum_index / E) * columns + c] = total;
    }
}

/* Computes this block's part of K sums for each column, and stores it in partial (parts, K,
 * columns). For a batch of U rows, load(row) is called for every row, and then add(row, loaded,
 * sum) for every row; `add` adds to the floats sum[k][element]. After each batch, the floats are
 * added to sums of type S. */
template <class S, int K, int E, int U, class Load, class Add>
static __device__ __forceinline__ void sum_part(S *partial, int64_t rows, int64_t columns,
                                                Load load, Add add)
{
    int64_t first = rows * blockIdx.y / gridDim.y, last = rows * (blockIdx.y + 1) / gridDim.y,
            column = first_column<E>();
    S sum[K][E] = {};
    int64_t row = first + threadIdx.y, step = blockDim.y;
    if (column >= columns) row = last;
    for (; row + (U - 1) * step < last; row += U * step)
        sum_batch<S, K, E, U, true>(sum, row, last, step, load, add);
    if (row < last) sum_batch<S, K, E, U, false>(sum, row, last, step, load, add);
    store_part<S, K, E>(partial, blockIdx.y, blockIdx.x, columns, sum);
}

static inline dim3 join_threads()
{
    return dim3(WARP, JOIN_ROWS);
}

/* Adds the parts of a column. A block has join_threads() threads and one column for each
 * threadIdx.x. All threads of the block call it. Returns true in the thread that has the sums of
 * the column in `sum`. */
template <class S, int K>
static __device__ __forceinline__ bool join_parts(const S *partial, int64_t parts, int64_t columns,
                                                  int64_t column, S sum[K])
{
    __shared__ S shared[K][JOIN_ROWS][WARP];
    for (int k = 0; k < K; ++k) sum[k] = 0;
    for (int64_t part = threadIdx.y; column < columns && part < parts; part += JOIN_ROWS)
        for (int k = 0; k < K; ++k) sum[k] += partial[(part * K + k) * columns + column];
    for (int k = 0; k < K; ++k) shared[k][threadIdx.y][threadIdx.x] = sum[k];
    __syncthreads();
    if (threadIdx.y != 0 || column >= columns) return false;
    for (int k = 0; k < K; ++k)
        for (int y = 1; y < JOIN_ROWS; ++y) sum[k] += shared[k][y][threadIdx.x];
    return true;
}

#endif
