/* Kernels for row vectors such as biases: one adds the vector to every row and applies an
 * activation, another sums the rows, for the gradient of the vector. */
#include "../passes/act.cuh"
#include "../passes/columns.cuh"

enum { BATCH = 4 };

template <class T, int E, bool ALIGNED, Act ACT>
static __global__ void add_row_kernel(AddRowRun run)
{
    int64_t c = first_column<E>(), columns = run.columns;
    if (c >= columns) return;
    const T *x = (const T *)run.x + c;
    T *y = (T *)run.y + c;
    float add[E];
    read_floats<E, ALIGNED>(add, run.row + c);
    each_row<BATCH>(
        run.rows, [&](int64_t row) { return read_pack<E, ALIGNED>(x + row * columns); },
        [&](int64_t row, const Pack<T, E> &v) {
            float out[E];
#pragma unroll
            for (int k = 0; k < E; ++k) out[k] = row < run.real ? act_value<ACT>(v[k] + add[k]) : 0;
            write_floats<E, ALIGNED>(y + row * columns, out);
        });
}

template <class T, int E, bool ALIGNED>
static __global__ void column_parts_kernel(float *partial, const T *dy, int64_t rows,
                                           int64_t columns, int64_t stride)
{
    const T *from = dy + first_column<E>();
    sum_part<float, 1, E, 2 * BATCH>(
        partial, rows, columns,
        [&](int64_t row) { return read_pack<E, ALIGNED>(from + row * stride); },
        [&](int64_t, const Pack<T, E> &v, float(*sum)[E]) {
#pragma unroll
            for (int k = 0; k < E; ++k) sum[0][k] += v[k];
        });
}

static __global__ void column_join_kernel(float *out, const float *partial, int64_t parts,
                                          int64_t columns)
{
    int64_t column = (int64_t)blockIdx.x * WARP + threadIdx.x;
    float sum[1];
    if (join_parts<float, 1>(partial, parts, columns, column, sum)) out[column] = sum[0];
}

cudaError_t launch_add_row(cudaStream_t stream, AddRowRun run)
{
    int pack_size = cuda_pack_size(run.type, run.columns);
    LaunchShape on = grid_over_rows(run.rows, run.columns, pack_size, BATCH);
    bool aligned = aligned_to_packs(run.x, run.y, run.row);
#define KERNEL(T, N, P) add_row_kernel<T, N, P, ACTIVATION><<<on.grid, on.threads, 0, stream>>>(run)
#define LAUNCH(T)                                                                                  \
    typedef T Elem;                                                                                \
    ACT_SWITCH(run.act, WITH_ACT)
    if (run.rows > 0) TYPE_SWITCH(run.type, LAUNCH);
#undef LAUNCH
#undef KERNEL
    return cudaGetLastError();
}

/* The last pack of a row may include padding of the row. The sums of padding are not stored. */
cudaError_t launch_column_sum(cudaStream_t stream, DType type, float *out, float *partial,
                              const void *dy, int64_t rows, int64_t columns, int64_t stride)
{
    int pack_size = cuda_pack_size(type, stride);
    int64_t parts = cuda_sum_parts(type, rows, stride);
    LaunchShape on = grid_over_parts(columns, pack_size, parts);
    bool aligned = aligned_to_packs(dy);
    float *to = parts == 1 ? out : partial;
#define KERNEL(T, N, P)                                                                            \
    column_parts_kernel<T, N, P>                                                                   \
        <<<on.grid, on.threads, 0, stream>>>(to, (const T *)dy, rows, columns, stride)
#define LAUNCH(T) PACK_SIZE_SWITCH(KERNEL, T)
    TYPE_SWITCH(type, LAUNCH);
#undef LAUNCH
#undef KERNEL
    if (parts > 1)
        column_join_kernel<<<blocks_for(columns, WARP), join_threads(), 0, stream>>>(
            out, partial, parts, columns);
    return cudaGetLastError();
}
