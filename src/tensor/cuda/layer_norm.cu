/* Layer norm over the last dimension: a warp a row. The parameters' gradients are summed over parts of the rows, a cut by
 * shape alone, and the parts in order. */
#include "elem.cuh"

template <class T> static __global__ void forward_kernel(LayerNormRun run)
{
    int lane = threadIdx.x % WARP;
    int64_t row = warp_row(), width = run.width;
    if (row >= run.rows) return;
    const T *x = (const T *)run.x + row * width;
    T *y = (T *)run.y + row * width;
    float mean = 0, inverse = 0;
    if (row < run.real) {
        float sum = 0, squares = 0;
        for (int64_t c = lane; c < width; c += WARP) sum += value_of(x[c]);
        mean = warp_sum(sum) / width;
        for (int64_t c = lane; c < width; c += WARP) {
            float d = value_of(x[c]) - mean;
            squares += d * d;
        }
        inverse = 1 / sqrtf(warp_sum(squares) / width + run.eps);
    }
    for (int64_t c = lane; c < width; c += WARP) {
        float value = (value_of(x[c]) - mean) * inverse * run.scale[c] + run.shift[c];
        set(y + c, row < run.real ? value : 0);
    }
    if (lane == 0) {
        run.saved[2 * row] = mean;
        run.saved[2 * row + 1] = inverse;
    }
}

/* dx = inverse (g - mean(g) - n mean(g n)), g = dy scale, n = (x - mean) inverse */
template <class T> static __global__ void grad_kernel(LayerNormRun run)
{
    int lane = threadIdx.x % WARP;
    int64_t row = warp_row(), width = run.width;
    if (row >= run.rows) return;
    const T *x = (const T *)run.x + row * width, *dy = (const T *)run.dy + row * width;
    T *dx = (T *)run.dx + row * width;
    float mean = run.saved[2 * row], inverse = run.saved[2 * row + 1], sum = 0, dot = 0;
    bool real = row < run.real;
    for (int64_t c = lane; real && c < width; c += WARP) {
        float g = value_of(dy[c]) * run.scale[c];
        sum += g;
        dot += g * (value_of(x[c]) - mean) * inverse;
    }
    sum = warp_sum(sum) / width;
    dot = warp_sum(dot) / width;
    for (int64_t c = lane; c < width; c += WARP) {
        float g = value_of(dy[c]) * run.scale[c], n = (value_of(x[c]) - mean) * inverse;
        set(dx + c, real ? inverse * (g - sum - n * dot) : 0);
    }
}

/* Grid: columns / THREADS, parts. */
template <class T> static __global__ void parts_kernel(LayerNormRun run)
{
    int64_t c = element(), width = run.width, part = blockIdx.y;
    if (c >= width) return;
    int64_t last = run.real * (part + 1) / run.parts;
    float scale = 0, shift = 0;
    for (int64_t row = run.real * part / run.parts; row < last; ++row) {
        float g = value_of(((const T *)run.dy)[row * width + c]);
        float x = value_of(((const T *)run.x)[row * width + c]);
        scale += g * (x - run.saved[2 * row]) * run.saved[2 * row + 1];
        shift += g;
    }
    run.partial[(2 * part) * width + c] = scale;
    run.partial[(2 * part + 1) * width + c] = shift;
}

static __global__ void join_kernel(LayerNormRun run)
{
    int64_t c = element();
    if (c >= run.width) return;
    float scale = 0, shift = 0;
    for (int64_t part = 0; part < run.parts; ++part) {
        scale += run.partial[(2 * part) * run.width + c];
        shift += run.partial[(2 * part + 1) * run.width + c];
    }
    run.dscale[c] = scale;
    run.dshift[c] = shift;
}

cudaError_t cuda_layer_norm(cudaStream_t stream, LayerNormRun run)
{
#define LAUNCH(T) forward_kernel<T><<<blocks_for(run.rows, WARPS), THREADS, 0, stream>>>(run)
    if (run.rows > 0) TYPE_SWITCH(run.type, LAUNCH);
#undef LAUNCH
    return cudaGetLastError();
}

cudaError_t cuda_layer_norm_data(cudaStream_t stream, LayerNormRun run)
{
#define LAUNCH(T) grad_kernel<T><<<blocks_for(run.rows, WARPS), THREADS, 0, stream>>>(run)
    if (run.rows > 0) TYPE_SWITCH(run.type, LAUNCH);
#undef LAUNCH
    return cudaGetLastError();
}

cudaError_t cuda_layer_norm_weight(cudaStream_t stream, LayerNormRun run)
{
    dim3 grid(blocks_for(run.width, THREADS), (unsigned)run.parts);
#define LAUNCH(T) parts_kernel<T><<<grid, THREADS, 0, stream>>>(run)
    TYPE_SWITCH(run.type, LAUNCH);
#undef LAUNCH
    join_kernel<<<blocks_for(run.width, THREADS), THREADS, 0, stream>>>(run);
    return cudaGetLastError();
}
