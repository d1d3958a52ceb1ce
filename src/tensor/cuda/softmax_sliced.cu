/* softmax_loss where each rank of a tensor group has a slice of every row of logits (Shoeybi et al.
 * 2019, section 3). The label's logit goes round first: with it, one pass over the slice finds all
 * that is to be known of it, how many logits beat the label's included. What is known goes round,
 * and every rank takes it together in the ranks' order. */
#include "loss.cuh"

/* A thread a row. */
template <class T> static __global__ void truth_kernel(LossSlices run)
{
    const LossRun &loss = run.loss;
    int64_t row = element();
    if (row >= loss.real) return;
    int64_t label = loss.labels[row] - loss.first;
    bool here = label >= 0 && label < loss.width;
    run.truth[row] = here ? value_of(((const T *)loss.x)[row * loss.stride + label]) : 0;
}

/* All ranks' but one are 0. A label out of range makes the loss NaN. */
static __device__ __forceinline__ float truth_at(const LossSlices &run, int64_t row)
{
    int32_t label = run.loss.labels[row];
    float truth = 0;
    for (int r = 0; r < run.ranks; ++r) truth += run.truths[r * run.loss.rows + row];
    return label >= 0 && label < run.loss.classes ? truth : nanf("");
}

/* Whole numbers as floats are exact up to 2^24. */
static __device__ __forceinline__ void put_part(float *out, const Logits &of, int64_t first)
{
    out[0] = of.best;
    out[1] = of.exps;
    out[2] = of.sum;
    out[3] = (float)of.beaten;
    out[4] = (float)(first + of.at);
}

static __device__ __forceinline__ Logits get_part(const float *in)
{
    return {in[0], in[1], in[2], (int)in[3], (int64_t)in[4]};
}

template <class T, int E, bool PACKS> ROW_KERNEL part_kernel(LossSlices run)
{
    const LossRun &loss = run.loss;
    int64_t row = blockIdx.x;
    const T *x = (const T *)loss.x + row * loss.stride;
    Truth truth = truth_of(loss, row, truth_at(run, row));
    Logits all = row_logits<T, E, PACKS>(loss, x, truth, [](int64_t, const Pack<T, E> &) {});
    if (threadIdx.x == 0) put_part(run.part + row * LOSS_PART, all, loss.first);
}

/* A thread a row. */
static __global__ void merge_kernel(LossSlices run)
{
    const LossRun &loss = run.loss;
    int64_t row = element();
    if (row >= loss.rows) return;
    if (row >= loss.real) {
        store_padding(loss, row);
        return;
    }
    Logits all = get_part(run.parts + row * LOSS_PART);
    for (int r = 1; r < run.ranks; ++r)
        take(&all, get_part(run.parts + (r * loss.rows + row) * LOSS_PART));
    store_row(loss, row, all, truth_at(run, row));
}

cudaError_t launch_softmax_truth(cudaStream_t stream, LossSlices run)
{
    unsigned blocks = blocks_for(run.loss.real, THREADS);
#define LAUNCH(T) truth_kernel<T><<<blocks, THREADS, 0, stream>>>(run)
    if (run.loss.real > 0) TYPE_SWITCH(run.loss.type, LAUNCH);
#undef LAUNCH
    return cudaGetLastError();
}

cudaError_t launch_softmax_part(cudaStream_t stream, LossSlices run)
{
    int wide = cuda_pack(run.loss.type, run.loss.stride);
    bool packs = in_packs(run.loss.x);
    unsigned blocks = (unsigned)run.loss.real, threads = row_threads(run.loss);
#define KERNEL(T, N, P) part_kernel<T, N, P><<<blocks, threads, 0, stream>>>(run)
#define LAUNCH(T)       WIDE_OR_ONE(KERNEL, T)
    if (run.loss.real > 0) TYPE_SWITCH(run.loss.type, LAUNCH);
#undef LAUNCH
#undef KERNEL
    return cudaGetLastError();
}

cudaError_t launch_softmax_merge(cudaStream_t stream, LossSlices run)
{
    if (run.loss.rows > 0)
        merge_kernel<<<blocks_for(run.loss.rows, THREADS), THREADS, 0, stream>>>(run);
    return cudaGetLastError();
}
