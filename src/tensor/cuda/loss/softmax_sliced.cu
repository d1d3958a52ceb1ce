/* softmax_loss if each row of logits is cut into slices, of which each rank of a tensor-parallel
 * group has one or several (Shoeybi et al. 2019, section 3). First the ranks gather the label's
 * logit. Then one pass over a slice computes its summary (Logits), including the number of logits
 * that rank before the label. The ranks gather the summaries, and every rank merges them in the
 * order of the slices. */
#include "loss.cuh"

/* Copies the label's logit if this slice has it; writes 0 otherwise. Grid: one thread for each
 * row. */
template <class T> static __global__ void label_kernel(LossSlices run)
{
    const LossRun &loss = run.loss;
    int64_t row = element();
    if (row >= loss.real) return;
    int64_t label = loss.labels[row] - loss.first;
    bool in_slice = label >= 0 && label < loss.width;
    run.label_logit[row] = in_slice ? as_float(((const T *)loss.x)[row * loss.stride + label]) : 0;
}

/* Returns the label's logit: the sum over the slices, of which all but one have 0. Returns NaN for
 * a label out of range. */
static __device__ __forceinline__ float label_logit(const LossSlices &run, int64_t row)
{
    int32_t label = run.loss.labels[row];
    float logit = 0;
    for (int r = 0; r < run.slices; ++r) logit += run.all_label_logits[r * run.loss.rows + row];
    return label >= 0 && label < run.loss.classes ? logit : nanf("");
}

/* Writes a summary as floats, which are exact for integers up to 2^24. first: class of the slice's
 * first logit. */
static __device__ __forceinline__ void write_summary(float *out, const Logits &slice, int64_t first)
{
    out[0] = slice.max;
    out[1] = slice.exp_sum;
    out[2] = slice.sum;
    out[3] = (float)slice.before_label;
    out[4] = (float)(first + slice.max_column);
}

static __device__ __forceinline__ Logits read_summary(const float *in)
{
    return {in[0], in[1], in[2], (int)in[3], (int64_t)in[4]};
}

template <class T, int E, bool ALIGNED> ROW_KERNEL summary_kernel(LossSlices run)
{
    const LossRun &loss = run.loss;
    int64_t row = blockIdx.x;
    const T *x = (const T *)loss.x + row * loss.stride;
    Label label = make_label(loss, row, label_logit(run, row));
    Logits all = row_logits<T, E, ALIGNED>(loss, x, label, [](int64_t, const Pack<T, E> &) {});
    if (threadIdx.x == 0) write_summary(run.summary + row * LOSS_SUMMARY, all, loss.first);
}

/* Merges the summaries of a row and writes its results. Grid: one thread for each row. */
static __global__ void merge_kernel(LossSlices run)
{
    const LossRun &loss = run.loss;
    int64_t row = element();
    if (row >= loss.rows) return;
    if (row >= loss.real) {
        store_padding(loss, row);
        return;
    }
    Logits all = read_summary(run.all_summaries + row * LOSS_SUMMARY);
    for (int r = 1; r < run.slices; ++r)
        merge_logits(&all, read_summary(run.all_summaries + (r * loss.rows + row) * LOSS_SUMMARY));
    store_row(loss, row, all, label_logit(run, row));
}

cudaError_t launch_softmax_label(cudaStream_t stream, LossSlices run)
{
    unsigned blocks = blocks_for(run.loss.real, THREADS);
#define LAUNCH(T) label_kernel<T><<<blocks, THREADS, 0, stream>>>(run)
    if (run.loss.real > 0) TYPE_SWITCH(run.loss.type, LAUNCH);
#undef LAUNCH
    return cudaGetLastError();
}

cudaError_t launch_softmax_summary(cudaStream_t stream, LossSlices run)
{
    int pack_size = run.by_width ? 1 : cuda_pack_size(run.loss.type, run.loss.stride);
    bool aligned = aligned_to_packs(run.loss.x);
    unsigned blocks = (unsigned)run.loss.real, threads = row_threads(run.loss);
#define KERNEL(T, N, P) summary_kernel<T, N, P><<<blocks, threads, 0, stream>>>(run)
#define LAUNCH(T)       PACK_SIZE_SWITCH(KERNEL, T)
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
