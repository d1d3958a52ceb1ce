/* Dropout. The mask is the same as on the CPU. It is a function of the seed, the step, the node,
 * the sample's id, and the index of the element in plain order or, if complete channels are
 * dropped, of the channel. The random numbers are those of Philox4x32-10 (Salmon et al. 2011).
 * Philox's key for a sample is itself drawn by Philox, for the purpose RNG_DROPOUT, from the seed,
 * the step and a hash (XXH64) of node and sample id. */
#include "passes/elem.cuh"

/* BATCH: packs of elements that a thread loads before it stores the first. SAMPLES: largest second
 * dimension of a grid, which is for the samples. */
enum { BATCH = 4, SAMPLES = 65535 };

static __device__ __forceinline__ void philox(uint32_t k0, uint32_t k1, uint32_t c[4])
{
#pragma unroll
    for (int round = 0; round < 10; ++round) {
        uint64_t p0 = (uint64_t)0xD2511F53u * c[0], p1 = (uint64_t)0xCD9E8D57u * c[2];
        c[0] = (uint32_t)(p1 >> 32) ^ c[1] ^ k0;
        c[2] = (uint32_t)(p0 >> 32) ^ c[3] ^ k1;
        c[1] = (uint32_t)p1;
        c[3] = (uint32_t)p0;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
}

static __device__ __forceinline__ uint64_t rotate_left(uint64_t x, int by)
{
    return x << by | x >> (64 - by);
}

/* Returns the hash XXH64 of two words, with seed 0. */
static __device__ uint64_t hash_words(uint64_t a, uint64_t b)
{
    const uint64_t p1 = 0x9E3779B185EBCA87u, p2 = 0xC2B2AE3D27D4EB4Fu, p3 = 0x165667B19E3779F9u,
                   p4 = 0x85EBCA77C2B2AE63u, p5 = 0x27D4EB2F165667C5u;
    uint64_t hash = p5 + 16;
    for (int i = 0; i < 2; ++i) {
        hash ^= rotate_left((i ? b : a) * p2, 31) * p1;
        hash = rotate_left(hash, 27) * p1 + p4;
    }
    hash = (hash ^ hash >> 33) * p2;
    hash = (hash ^ hash >> 29) * p3;
    return hash ^ hash >> 32;
}

/* Computes Philox's key for a sample. The first thread of the block computes it for all threads of
 * the block, which all call this function. */
static __device__ __forceinline__ void sample_key(const DropoutRun &run, int64_t sample,
                                                  uint32_t key[2])
{
    __shared__ uint32_t shared[2];
    __syncthreads();
    if (threadIdx.x == 0) {
        uint64_t name = hash_words(run.name, (uint64_t)run.sample[sample]);
        uint32_t first[4] = {run.purpose, 0, 0, 0};
        philox((uint32_t)run.seed, (uint32_t)(run.seed >> 32), first);
        uint64_t step = run.numbers ? run.numbers->step : run.step;
        uint32_t counter[4] = {(uint32_t)name, (uint32_t)(name >> 32), (uint32_t)step,
                               (uint32_t)(step >> 32)};
        philox(first[0], first[1], counter);
        shared[0] = counter[0];
        shared[1] = counter[1];
    }
    __syncthreads();
    key[0] = shared[0];
    key[1] = shared[1];
}

/* Returns element k of `four`. Selects it without an address, so that the array stays in
 * registers. */
static __device__ __forceinline__ float element_of(const float four[4], int64_t k)
{
    float low = k % 2 ? four[1] : four[0], high = k % 2 ? four[3] : four[2];
    return k < 2 ? low : high;
}

/* Draws the factors of elements (or of channels) 4 quad .. 4 quad + 3 of a complete sample. */
static __device__ __forceinline__ void draw(const DropoutRun &run, const uint32_t key[2],
                                            int64_t quad, float scale[4])
{
    uint32_t drawn[4] = {(uint32_t)quad, (uint32_t)((uint64_t)quad >> 32), 0, 0};
    philox(key[0], key[1], drawn);
#pragma unroll
    for (int k = 0; k < 4; ++k) scale[k] = (drawn[k] >> 8) >= run.threshold ? run.scale : 0;
}

/* Returns the index in the complete sample of element i of this rank's slice. SLICED: the slice
 * consists of several contiguous ranges; otherwise it is one range, and no division is needed. */
template <bool SLICED>
static __device__ __forceinline__ int64_t sample_index(const DropoutRun &run, int64_t i)
{
    if (!SLICED) return run.first + i;
    return i / run.run_elements * run.stride + run.first + i % run.run_elements;
}

/* Handles samples in plain order whose packs begin at multiples of 4 in the complete sample, so
 * that four elements need one draw. Grid: packs, samples. */
template <class T, bool SLICED>
static __global__ void __launch_bounds__(THREADS, 4) pack_kernel(DropoutRun run)
{
    enum { E = PACK(T) };
    for (int64_t sample = blockIdx.y; sample < run.samples; sample += gridDim.y) {
        const T *from = (const T *)run.from + sample * run.sample_elements;
        T *to = (T *)run.to + sample * run.sample_elements;
        uint32_t key[2];
        sample_key(run, sample, key);
        in_batches<BATCH>(
            element(), run.sample_elements / E, (int64_t)gridDim.x * THREADS,
            [&](int64_t i) { return read_pack<E, true>(from + i * E); },
            [&](int64_t i, const Pack<T, E> &v) {
                float out[E];
                int64_t index = sample_index<SLICED>(run, i * E);
#pragma unroll
                for (int q = 0; q < E; q += 4) {
                    draw(run, key, (index + q) / 4, out + q);
                    for (int k = q; k < q + 4; ++k) out[k] *= v[k];
                }
                write_floats<E, true>(to + i * E, out);
            });
    }
}

/* Handles the samples that pack_kernel cannot handle. Each thread has four elements at a time,
 * which may need two draws or more. Grid: groups of four elements, samples. */
template <class T, bool SLICED> static __global__ void quad_kernel(DropoutRun run)
{
    int64_t step = (int64_t)gridDim.x * THREADS;
    for (int64_t sample = blockIdx.y; sample < run.samples; sample += gridDim.y) {
        const T *from = (const T *)run.from + sample * run.sample_elements;
        T *to = (T *)run.to + sample * run.sample_elements;
        uint32_t key[2];
        sample_key(run, sample, key);
        for (int64_t quad = element(); quad * 4 < run.sample_elements; quad += step) {
            float scale[4];
            /* c: channel, and p: pixel, of element 4 quad in plain order */
            int64_t c = quad * 4 / run.pixels, p = quad * 4 % run.pixels;
            /* number of the draw whose four factors are in `scale`; -1: none */
            int64_t drawn = -1;
            for (int k = 0; k < 4 && quad * 4 + k < run.sample_elements; ++k) {
                int64_t at = p * run.channels + c;
                int64_t index = run.by_channel ? c : sample_index<SLICED>(run, quad * 4 + k);
                if (index / 4 != drawn) draw(run, key, drawn = index / 4, scale);
                store_float(to + at, as_float(from[at]) * element_of(scale, index % 4));
                if (++p == run.pixels) p = 0, ++c;
            }
        }
    }
}

cudaError_t launch_dropout(cudaStream_t stream, DropoutRun run)
{
    bool in_order = run.channels == 1 || run.pixels == 1,
         sliced = run.run_elements < run.sample_elements;
    bool uses_packs = in_order && !run.by_channel && aligned_to_packs(run.from, run.to) &&
                      cuda_pack_size(run.type, run.run_elements) > 1 && run.first % 4 == 0 &&
                      run.stride % 4 == 0;
    unsigned samples = run.samples < SAMPLES ? (unsigned)run.samples : (unsigned)SAMPLES;
    dim3 quads(blocks_for(run.sample_elements, 4 * THREADS), samples);
#define LAUNCH(T)                                                                                  \
    dim3 packs(blocks_for(run.sample_elements, (int64_t)PACK(T) * BATCH * THREADS), samples);      \
    if (uses_packs && sliced)                                                                      \
        pack_kernel<T, true><<<packs, THREADS, 0, stream>>>(run);                                  \
    else if (uses_packs)                                                                           \
        pack_kernel<T, false><<<packs, THREADS, 0, stream>>>(run);                                 \
    else if (sliced)                                                                               \
        quad_kernel<T, true><<<quads, THREADS, 0, stream>>>(run);                                  \
    else                                                                                           \
        quad_kernel<T, false><<<quads, THREADS, 0, stream>>>(run)
    if (run.samples * run.sample_elements > 0) TYPE_SWITCH(run.type, LAUNCH);
#undef LAUNCH
    return cudaGetLastError();
}
