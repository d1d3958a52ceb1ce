/* Converts images between channels last and plain. Each sample is a matrix that is transposed,
 * through tiles in shared memory, so that both sides are accessed in memory order; images of 2 to 4
 * channels, as data sets have them, are transposed in registers. */
#include "elem.cuh"

enum {
    TILE = 2048,
    TILE_ROOM = 3072,
    EACH = TILE / THREADS,
    /* most samples of a launch's grid: the limit of its second dimension */
    SAMPLES = 65535
};

/* Transposes every sample: to (columns, rows) = from (rows, columns). A tile has 1 << high rows and
 * 1 << wide columns. */
typedef struct TurnRun {
    const void *from;
    void *to;
    int64_t samples, rows, columns;
    /* floats between a tile's rows in shared memory, chosen so that no two lanes use one bank */
    int high, wide, stride;
    unsigned across;
} TurnRun;

template <class TO, class FROM>
static __global__ void __launch_bounds__(THREADS, 3) turn_kernel(TurnRun run)
{
    __shared__ float tile[TILE_ROOM];
    int64_t row = (int64_t)(blockIdx.x / run.across) << run.high,
            column = (int64_t)(blockIdx.x % run.across) << run.wide;
    for (int64_t sample = blockIdx.y; sample < run.samples; sample += gridDim.y) {
        const FROM *from = (const FROM *)run.from + sample * run.rows * run.columns;
        TO *to = (TO *)run.to + sample * run.rows * run.columns;
        FROM loaded[EACH] = {};
#pragma unroll
        for (int u = 0; u < EACH; ++u) {
            int i = threadIdx.x + u * THREADS;
            int64_t r = row + (i >> run.wide), c = column + (i & ((1 << run.wide) - 1));
            if (r < run.rows && c < run.columns) loaded[u] = from[r * run.columns + c];
        }
        __syncthreads();
#pragma unroll
        for (int u = 0; u < EACH; ++u) {
            int i = threadIdx.x + u * THREADS;
            tile[(i >> run.wide) * run.stride + (i & ((1 << run.wide) - 1))] = value_of(loaded[u]);
        }
        __syncthreads();
#pragma unroll
        for (int u = 0; u < EACH; ++u) {
            int i = threadIdx.x + u * THREADS, c = i >> run.high, r = i & ((1 << run.high) - 1);
            if (row + r < run.rows && column + c < run.columns)
                set(to + (column + c) * run.rows + row + r, tile[r * run.stride + c]);
        }
    }
}

static int bits_for(int64_t n, int most)
{
    int bits = 0;
    while (bits < most && (INT64_C(1) << bits) < n) ++bits;
    return bits;
}

static TurnRun turn_of(const ReorderRun &run)
{
    enum { TILE_BITS = 11, WARP_BITS = 5 };
    TurnRun t = {};
    t.from = run.from;
    t.to = run.to;
    t.samples = run.samples;
    t.rows = run.from_last ? run.pixels : run.channels;
    t.columns = run.from_last ? run.channels : run.pixels;
    t.high = bits_for(t.rows, WARP_BITS);
    t.wide = bits_for(t.columns, TILE_BITS - t.high);
    /* The tile may have more rows than the matrix; then it is not full. */
    t.high = TILE_BITS - t.wide;
    t.stride = (1 << t.wide) + (t.high < WARP_BITS ? WARP >> t.high : 1);
    t.across = blocks_for(t.columns, 1 << t.wide);
    return t;
}

/* fp32 planes to channels last: E pixels of all planes are E * CHANNELS contiguous elements. Each
 * thread has E pixels of every sample. */
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
        float turned[CHANNELS * E];
#pragma unroll
        for (int c = 0; c < CHANNELS; ++c) loaded[c] = read<E, true>(plane + c * pixels);
#pragma unroll
        for (int i = 0; i < CHANNELS * E; ++i) turned[i] = loaded[i % CHANNELS][i / CHANNELS];
#pragma unroll
        for (int i = 0; i < CHANNELS * E; i += E) write<E, true>(out + i, turned + i);
    }
}

template <class TO> static bool takes_planes(const ReorderRun &run)
{
    return !run.from_last && run.from_type == DTYPE_F32 && run.pixels % PACK(TO) == 0 &&
           in_packs(run.from, run.to);
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
static void queue_turn(cudaStream_t stream, const ReorderRun &run, unsigned samples)
{
    TurnRun turn = turn_of(run);
    dim3 grid(turn.across * blocks_for(turn.rows, 1 << turn.high), samples);
    turn_kernel<TO, FROM><<<grid, THREADS, 0, stream>>>(turn);
}

template <class TO> static void queue_reorder(cudaStream_t stream, const ReorderRun &run)
{
    unsigned samples = run.samples < SAMPLES ? (unsigned)run.samples : (unsigned)SAMPLES;
#define LAUNCH(FROM) queue_turn<TO, FROM>(stream, run, samples)
    if (takes_planes<TO>(run) && run.channels == 2)
        queue_planes<2, TO>(stream, run, samples);
    else if (takes_planes<TO>(run) && run.channels == 3)
        queue_planes<3, TO>(stream, run, samples);
    else if (takes_planes<TO>(run) && run.channels == 4)
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
