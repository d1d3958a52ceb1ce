/* Converts images between channels last and plain order, and between number types. Each sample is a
 * matrix that is transposed through tiles in shared memory, so that memory is read and written in
 * ascending order. fp32 images of 2 to 4 channels in plain order, as data sets have them, are
 * transposed in registers if they can be read in packs. */
#include "passes/elem.cuh"

enum {
    /* TILE: elements of a tile; TILE_FLOATS: floats of its shared memory, with gaps between rows;
     * THREAD_ELEMENTS: elements of a tile that a thread has */
    TILE = 2048,
    TILE_FLOATS = 3072,
    THREAD_ELEMENTS = TILE / THREADS,
    /* largest second dimension of a grid, which is for the samples */
    SAMPLES = 65535
};

/* Arguments of the transposition of every sample from `from` (rows, columns) to `to` (columns,
 * rows). A tile has 1 << row_bits rows and 1 << column_bits columns. */
typedef struct TransposeRun {
    const void *from;
    void *to;
    int64_t samples, rows, columns;
    int row_bits, column_bits;
    /* floats from one row of a tile to the next in shared memory, chosen so that no two lanes of a
     * warp use the same bank */
    int stride;
    /* number of tiles next to each other */
    unsigned across;
} TransposeRun;

template <class TO, class FROM>
static __global__ void __launch_bounds__(THREADS, 3) transpose_kernel(TransposeRun run)
{
    __shared__ float tile[TILE_FLOATS];
    int64_t row = (int64_t)(blockIdx.x / run.across) << run.row_bits,
            column = (int64_t)(blockIdx.x % run.across) << run.column_bits;
    for (int64_t sample = blockIdx.y; sample < run.samples; sample += gridDim.y) {
        const FROM *from = (const FROM *)run.from + sample * run.rows * run.columns;
        TO *to = (TO *)run.to + sample * run.rows * run.columns;
        FROM loaded[THREAD_ELEMENTS] = {};
#pragma unroll
        for (int u = 0; u < THREAD_ELEMENTS; ++u) {
            int i = threadIdx.x + u * THREADS;
            int64_t r = row + (i >> run.column_bits),
                    c = column + (i & ((1 << run.column_bits) - 1));
            if (r < run.rows && c < run.columns) loaded[u] = from[r * run.columns + c];
        }
        __syncthreads();
#pragma unroll
        for (int u = 0; u < THREAD_ELEMENTS; ++u) {
            int i = threadIdx.x + u * THREADS;
            tile[(i >> run.column_bits) * run.stride + (i & ((1 << run.column_bits) - 1))] =
                as_float(loaded[u]);
        }
        __syncthreads();
#pragma unroll
        for (int u = 0; u < THREAD_ELEMENTS; ++u) {
            int i = threadIdx.x + u * THREADS, c = i >> run.row_bits,
                r = i & ((1 << run.row_bits) - 1);
            if (row + r < run.rows && column + c < run.columns)
                store_float(to + (column + c) * run.rows + row + r, tile[r * run.stride + c]);
        }
    }
}

/* Returns the smallest number of bits with 1 << bits >= n, but at most bits_max. */
static int bits_for(int64_t n, int bits_max)
{
    int bits = 0;
    while (bits < bits_max && (INT64_C(1) << bits) < n) ++bits;
    return bits;
}

static TransposeRun plan_transpose(const ReorderRun &run)
{
    enum { TILE_BITS = 11, WARP_BITS = 5 };
    TransposeRun t = {};
    t.from = run.from;
    t.to = run.to;
    t.samples = run.samples;
    t.rows = run.from_last ? run.pixels : run.channels;
    t.columns = run.from_last ? run.channels : run.pixels;
    t.row_bits = bits_for(t.rows, WARP_BITS);
    t.column_bits = bits_for(t.columns, TILE_BITS - t.row_bits);
    /* the tile may have more rows than the matrix, and is not full then */
    t.row_bits = TILE_BITS - t.column_bits;
    t.stride = (1 << t.column_bits) + (t.row_bits < WARP_BITS ? WARP >> t.row_bits : 1);
    t.across = blocks_for(t.columns, 1 << t.column_bits);
    return t;
}

/* Converts fp32 images from plain order to channels last. A thread converts E pixels of a sample at
 * a time, which become E * CHANNELS contiguous elements. */
template <int CHANNELS, int E, class TO>
static __global__ void __launch_bounds__(THREADS, 4)
    planes_kernel(TO *to, const float *from, int64_t samples, int64_t pixels)
{
    int64_t pixel = element() * E;
    if (pixel >= pixels) return;
    for (int64_t sample = blockIdx.y; sample < samples; sample += gridDim.y) {
        const float *plane = from + sample * CHANNELS * pixels + pixel;
        TO *out = to + (sample * pixels + pixel) * CHANNELS;
        Pack<float, E> loaded[CHANNELS];
        float transposed[CHANNELS * E];
#pragma unroll
        for (int c = 0; c < CHANNELS; ++c) loaded[c] = read_pack<E, true>(plane + c * pixels);
#pragma unroll
        for (int i = 0; i < CHANNELS * E; ++i) transposed[i] = loaded[i % CHANNELS][i / CHANNELS];
#pragma unroll
        for (int i = 0; i < CHANNELS * E; i += E) write_floats<E, true>(out + i, transposed + i);
    }
}

template <class TO> static bool can_use_planes(const ReorderRun &run)
{
    return !run.from_last && run.from_type == DTYPE_F32 && run.pixels % PACK(TO) == 0 &&
           aligned_to_packs(run.from, run.to);
}

template <int CHANNELS, class TO>
static void queue_planes(cudaStream_t stream, const ReorderRun &run, unsigned samples)
{
    enum { E = PACK(TO) };
    dim3 grid(blocks_for(run.pixels / E, THREADS), samples);
    planes_kernel<CHANNELS, E, TO><<<grid, THREADS, 0, stream>>>(
        (TO *)run.to, (const float *)run.from, run.samples, run.pixels);
}

template <class TO, class FROM>
static void queue_transpose(cudaStream_t stream, const ReorderRun &run, unsigned samples)
{
    TransposeRun t = plan_transpose(run);
    dim3 grid(t.across * blocks_for(t.rows, 1 << t.row_bits), samples);
    transpose_kernel<TO, FROM><<<grid, THREADS, 0, stream>>>(t);
}

template <class TO> static void queue_reorder(cudaStream_t stream, const ReorderRun &run)
{
    unsigned samples = run.samples < SAMPLES ? (unsigned)run.samples : (unsigned)SAMPLES;
#define LAUNCH(FROM) queue_transpose<TO, FROM>(stream, run, samples)
    if (can_use_planes<TO>(run) && run.channels == 2)
        queue_planes<2, TO>(stream, run, samples);
    else if (can_use_planes<TO>(run) && run.channels == 3)
        queue_planes<3, TO>(stream, run, samples);
    else if (can_use_planes<TO>(run) && run.channels == 4)
        queue_planes<4, TO>(stream, run, samples);
    else
        TYPE_SWITCH(run.from_type, LAUNCH);
#undef LAUNCH
}

cudaError_t launch_reorder(cudaStream_t stream, ReorderRun run)
{
    if (run.from_last == run.to_last || run.channels == 1 || run.pixels == 1)
        return launch_convert(stream, run.to_type, run.to, run.from_type, run.from,
                              run.samples * run.channels * run.pixels);
#define LAUNCH(TO) queue_reorder<TO>(stream, run)
    if (run.samples > 0) TYPE_SWITCH(run.to_type, LAUNCH);
#undef LAUNCH
    return cudaGetLastError();
}
