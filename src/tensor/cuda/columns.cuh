/* Work by columns on matrices (rows, columns). A thread has E neighbouring columns and goes down
 * the rows: it reads what belongs to a column once, and no element needs a division. A sum over
 * rows has parts, which depend on the shape alone. In each part thread row y adds rows y, y +
 * blockDim.y, ...; then the thread rows are added in order, and at last the parts, JOIN_ROWS at a
 * time. */
#ifndef WEFT_COLUMNS_CUH
#define WEFT_COLUMNS_CUH

#include "elem.cuh"

enum {
    JOIN_ROWS = 32,
    /* most blocks of a launch; they loop over the rows. Twelve for each of a large GPU's 132
     * processors: a processor that runs two, three, four or six at a time has no incomplete
     * round */
    MAP_BLOCKS = 1584
};

struct Columns {
    dim3 grid, threads;
};

/* Grid for E columns a thread and `batch` rows at a time. */
static inline Columns over_rows(int64_t rows, int64_t columns, int elements, int batch)
{
    CudaTile tile = cuda_tile(columns, elements);
    int64_t most = MAP_BLOCKS / tile.across > 0 ? MAP_BLOCKS / tile.across : 1;
    int64_t deep = (rows + tile.rows * batch - 1) / (tile.rows * batch);
    return {dim3((unsigned)tile.across, (unsigned)(deep < most ? deep : most)),
            dim3((unsigned)tile.packs, (unsigned)tile.rows)};
}

static inline Columns over_parts(int64_t columns, int elements, int64_t parts)
{
    CudaTile tile = cuda_tile(columns, elements);
    return {dim3((unsigned)tile.across, (unsigned)parts),
            dim3((unsigned)tile.packs, (unsigned)tile.rows)};
}

/* This thread's first column; some threads at the end are beyond the last column. */
template <int E> static __device__ __forceinline__ int64_t first_column()
{
    return ((int64_t)blockIdx.x * blockDim.x + threadIdx.x) * E;
}

/* Runs in_batches over this thread's rows. */
template <int U, class Load, class Finish>
static __device__ __forceinline__ void each_row(int64_t rows, Load load, Finish finish)
{
    in_batches<U>((int64_t)blockIdx.y * blockDim.y + threadIdx.y, rows,
                  (int64_t)gridDim.y * blockDim.y, load, finish);
}

template <class S, int K, int E, int U, bool ALL, class Load, class Add>
static __device__ __forceinline__ void sum_batch(S (&sum)[K][E], int64_t first, int64_t last,
                                                 int64_t step, Load load, Add add)
{
    float some[K][E] = {};
    batch<U, ALL>(first, last, step, load,
                  [&](int64_t row, const auto &loaded) { add(row, loaded, some); });
#pragma unroll
    for (int i = 0; i < K * E; ++i) sum[i / E][i % E] += some[i / E][i % E];
}

/* Adds a block's sums in the order of its thread rows and stores them as one part. tile: which
 * blockDim.x threads of columns. partial: (parts, K, columns). All threads of the block call it. */
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
        unsigned which = i / blockDim.x, x = i % blockDim.x;
        int64_t c = (tile * blockDim.x + x) * E + which % E;
        S whole = shared[which][x];
        for (unsigned y = 1; y < blockDim.y; ++y) whole += shared[which][y * blockDim.x + x];
        if (c < columns) partial[(part * K + which / E) * columns + c] = whole;
    }
}

/* Adds K sums for each column. load(row) is called for U rows before add(row, loaded, sum), which
 * adds to the floats sum[k][element]; they are added to numbers of type S after each batch.
 * partial: (parts, K, columns). */
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

/* Adds a column's parts, one column for each x of the block. Returns true in the one thread that
 * then has the column's sums. */
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
