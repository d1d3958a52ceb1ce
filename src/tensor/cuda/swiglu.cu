/* Kernels of swiglu. A thread has E neighbouring columns of gate and up, and a loop over rows. */
#include "passes/act.cuh"
#include "passes/columns.cuh"

enum { BATCH = 2 };

/* E neighbouring columns of a row: the gate, up and, in backward, dy. */
template <class T, int E> struct SwigluPacks {
    Pack<T, E> gate, up, dy;
};

template <class T, int E, bool ALIGNED>
static __device__ __forceinline__ SwigluPacks<T, E> read_packs(const SwigluRun &run, int64_t row,
                                                               int64_t c)
{
    const T *x = (const T *)run.x + row * 2 * run.width + c;
    SwigluPacks<T, E> v = {};
    v.gate = read_pack<E, ALIGNED>(x);
    v.up = read_pack<E, ALIGNED>(x + run.width);
    return v;
}

template <class T, int E, bool ALIGNED> static __global__ void forward_kernel(SwigluRun run)
{
    const int64_t c = first_column<E>();
    if (c >= run.width) return;
    each_row<BATCH>(
        run.rows, [&](int64_t row) { return read_packs<T, E, ALIGNED>(run, row, c); },
        [&](int64_t row, const SwigluPacks<T, E> &v) {
            float out[E];
#pragma unroll
            for (int k = 0; k < E; ++k) out[k] = act_value<ACT_SILU>(v.gate[k]) * v.up[k];
            write_floats<E, ALIGNED>((T *)run.y + row * run.width + c, out);
        });
}

template <class T, int E, bool ALIGNED> static __global__ void backward_kernel(SwigluRun run)
{
    const int64_t c = first_column<E>();
    if (c >= run.width) return;
    each_row<BATCH>(
        run.rows,
        [&](int64_t row) {
            SwigluPacks<T, E> v = read_packs<T, E, ALIGNED>(run, row, c);
            v.dy = read_pack<E, ALIGNED>((const T *)run.dy + row * run.width + c);
            return v;
        },
        [&](int64_t row, const SwigluPacks<T, E> &v) {
            T *dx = (T *)run.dx + row * 2 * run.width + c;
            float gate[E], up[E];
#pragma unroll
            for (int k = 0; k < E; ++k) {
                gate[k] = v.dy[k] * v.up[k] * act_slope<ACT_SILU>(v.gate[k], 0);
                up[k] = v.dy[k] * act_value<ACT_SILU>(v.gate[k]);
            }
            write_floats<E, ALIGNED>(dx, gate);
            write_floats<E, ALIGNED>(dx + run.width, up);
        });
}

cudaError_t launch_swiglu(cudaStream_t stream, SwigluRun run)
{
    const int pack_size = cuda_pack_size(run.type, run.width);
    const LaunchShape on = grid_over_rows(run.rows, run.width, pack_size, BATCH);
    const bool aligned = aligned_to_packs(run.x, run.y);
#define KERNEL(T, N, P) forward_kernel<T, N, P><<<on.grid, on.threads, 0, stream>>>(run)
#define LAUNCH(T)       PACK_SIZE_SWITCH(KERNEL, T)
    if (run.rows > 0) TYPE_SWITCH(run.type, LAUNCH);
#undef LAUNCH
#undef KERNEL
    return cudaGetLastError();
}

cudaError_t launch_swiglu_backward(cudaStream_t stream, SwigluRun run)
{
    const int pack_size = cuda_pack_size(run.type, run.width);
    const LaunchShape on = grid_over_rows(run.rows, run.width, pack_size, BATCH);
    const bool aligned = aligned_to_packs(run.x, run.dy, run.dx);
#define KERNEL(T, N, P) backward_kernel<T, N, P><<<on.grid, on.threads, 0, stream>>>(run)
#define LAUNCH(T)       PACK_SIZE_SWITCH(KERNEL, T)
    if (run.rows > 0) TYPE_SWITCH(run.type, LAUNCH);
#undef LAUNCH
#undef KERNEL
    return cudaGetLastError();
}
