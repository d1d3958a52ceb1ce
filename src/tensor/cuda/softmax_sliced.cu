/* softmax_loss where each rank of a tensor group has a slice of every row of logits (Shoeybi et al.
 * 2019, section 3). First the ranks gather the label's logit. Then one pass over a slice finds all
 * that is needed of it, including how many logits rank before the label. The ranks gather these
 * summaries, and every rank joins them in the order of the ranks. */
#include "loss.cuh"

/* Copies the label's logit where this slice has it. One thread for each row. */
template <class T> static __global__ void truth_kernel(LossSlices run)
{
    const LossRun &loss = run.loss;
    int64_t row = element();
    if (row >= loss.real) return;
    int64_t label = loss.labels[row] - loss.first;
    bool here = label >= 0 && label < loss.width;
    run.truth[row] = here ? value_of(((const T *)loss.x)[row * loss.stride + label]) : 0;
}

/* The label's logit: the sum over the ranks, all but one of which give 0. NaN for a label out of
 * range. */
static __device__ __forceinline__ float truth_at(const LossSlices &run, int64_t row)
{
    int32_t label = run.loss.labels[row];
    float truth = 0;
    for (int r = 0; r < run.ranks; ++r) truth += run.truths[r * run.loss.rows + row];
    return label >= 0 && label < run.loss.classes ? truth : nanf("");
}

/* Writes a summary as floats, which are exact for integers up to 2^24. */
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

/* Joins the ranks' summaries and writes the results. One thread for each row. */
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
        merge_logits(&all, get_part(run.parts + (r * loss.rows + row) * LOSS_PART));
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
