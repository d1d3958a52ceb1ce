/* Rows of a table by token, and rows of a table by place, with their gradients: each row of a gradient is summed by one
 * block, in the order of the tokens. */
#include "elem.cuh"

/* One block a token. */
template <class T> static __global__ void gather_kernel(EmbeddingRun run)
{
    int64_t i = blockIdx.x, width = run.width;
    T *y = (T *)run.y + i * width;
    int32_t token = i < run.real ? run.tokens[i] : 0;
    int64_t row = token - run.first;
    bool valid = token >= 0 && token < run.vocab, here = row >= 0 && row < run.rows;
    for (int64_t c = threadIdx.x; c < width; c += blockDim.x) {
        float value = i < run.real && here ? run.w[row * width + c] : 0;
        set(y + c, valid ? value : nanf("")); /* one outside the vocabulary makes the loss NaN */
    }
}

/* One block a token. The block of a token's first occurrence sums all of them: threads look for the others together, THREADS at
 * a time, and then each adds its columns in their order. */
template <class T> static __global__ void scatter_kernel(EmbeddingRun run)
{
    __shared__ int32_t window[THREADS];
    int64_t i = blockIdx.x, width = run.width;
    int32_t token = run.tokens[i];
    int64_t row = token - run.first;
    if (row < 0 || row >= run.rows) return;
    for (int64_t base = 0; base < i; base += THREADS) {
        int64_t j = base + threadIdx.x;
        if (__syncthreads_or(j < i && run.tokens[j] == token)) return; /* not the first */
    }
    float *dw = run.dw + row * width;
    for (int64_t from = 0; from < width; from += THREADS) {
        int64_t c = from + threadIdx.x;
        float sum = 0;
        for (int64_t base = i; base < run.real; base += THREADS) {
            int64_t j = base + threadIdx.x;
            __syncthreads();
            window[threadIdx.x] = j < run.real ? run.tokens[j] : -1;
            __syncthreads();
            for (int k = 0; k < THREADS; ++k)
                if (window[k] == token && c < width)
                    sum += value_of(((const T *)run.dy)[(base + k) * width + c]);
        }
        if (c < width) dw[c] = sum;
    }
}

template <class T> static __global__ void place_kernel(PositionsRun run)
{
    int64_t i = element(), n = run.samples * run.length * run.width;
    if (i >= n) return;
    int64_t c = i % run.width, place = i / run.width % run.length;
    bool real = i < run.real * run.length * run.width;
    float value =
        real ? value_of(((const T *)run.x)[i]) + run.w[(run.first + place) * run.width + c] : 0;
    set((T *)run.y + i, value);
}

template <class T> static __global__ void place_sum_kernel(PositionsRun run)
{
    int64_t i = element();
    if (i >= run.rows * run.width) return;
    int64_t c = i % run.width, place = i / run.width - run.first;
    float sum = 0;
    if (place >= 0 && place < run.length)
        for (int64_t n = 0; n < run.real; ++n)
            sum += value_of(((const T *)run.dy)[(n * run.length + place) * run.width + c]);
    run.dw[i] = sum;
}

cudaError_t cuda_embedding(cudaStream_t stream, EmbeddingRun run)
{
#define LAUNCH(T) gather_kernel<T><<<(unsigned)run.count, THREADS, 0, stream>>>(run)
    if (run.count > 0) TYPE_SWITCH(run.type, LAUNCH);
#undef LAUNCH
    return cudaGetLastError();
}

cudaError_t cuda_embedding_backward(cudaStream_t stream, EmbeddingRun run)
{
    cudaError_t error = cuda_fill(stream, run.dw, 0, run.rows * run.width);
#define LAUNCH(T) scatter_kernel<T><<<(unsigned)run.real, THREADS, 0, stream>>>(run)
    if (error == cudaSuccess && run.real > 0) TYPE_SWITCH(run.type, LAUNCH);
#undef LAUNCH
    return error == cudaSuccess ? cudaGetLastError() : error;
}

cudaError_t cuda_positions(cudaStream_t stream, PositionsRun run)
{
    int64_t n = run.samples * run.length * run.width;
#define LAUNCH(T) place_kernel<T><<<blocks_for(n, THREADS), THREADS, 0, stream>>>(run)
    if (n > 0) TYPE_SWITCH(run.type, LAUNCH);
#undef LAUNCH
    return cudaGetLastError();
}

cudaError_t cuda_positions_backward(cudaStream_t stream, PositionsRun run)
{
    int64_t n = run.rows * run.width;
#define LAUNCH(T) place_sum_kernel<T><<<blocks_for(n, THREADS), THREADS, 0, stream>>>(run)
    if (n > 0) TYPE_SWITCH(run.type, LAUNCH);
#undef LAUNCH
    return cudaGetLastError();
}
