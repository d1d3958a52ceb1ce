/* Sums of channels of channels-last images: each thread computes a channel of a pixel, from the
 * channel's list of terms. */
#include "passes/elem.cuh"

/* bytes of tables that one launch copies as its argument; every CUDA version allows 4,096 bytes of
 * arguments */
enum { PIECE_BYTES = 3840 };

template <class T> static __global__ void sum_kernel(ChannelSumRun run)
{
    const int64_t i = element(), pixel = i / run.channels, c = i % run.channels;
    if (pixel >= run.pixels) return;
    float sum = run.table.shift[c];
    for (int32_t k = run.table.first[c]; k < run.table.first[c + 1]; ++k) {
        const ChannelTerm term = run.table.term[k];
        const T *from = (const T *)run.from[term.input] + pixel * run.from_channels[term.input];
        sum += term.factor * as_float(from[term.channel]);
    }
    store_float((T *)run.to + i, sum);
}

cudaError_t launch_channel_tables(cudaStream_t stream, void *to, const void *from, size_t bytes)
{
    return put_bytes<PIECE_BYTES>(stream, to, from, bytes);
}

cudaError_t launch_channel_sum(cudaStream_t stream, ChannelSumRun run)
{
    const int64_t n = run.pixels * run.channels;
#define LAUNCH(T) sum_kernel<T><<<blocks_for(n, THREADS), THREADS, 0, stream>>>(run)
    if (n > 0) TYPE_SWITCH(run.type, LAUNCH);
#undef LAUNCH
    return cudaGetLastError();
}
