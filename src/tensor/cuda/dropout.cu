/* Dropout. The mask is a function of (seed, step, node, sample id, element in the plain order), by the numbers that the CPU
 * draws: Philox4x32-10 (Salmon et al. 2011) with a key that is itself drawn, and XXH64 of the node's and the sample's name. */
#include "elem.cuh"

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

static __device__ __forceinline__ uint64_t turned(uint64_t x, int by)
{
    return x << by | x >> (64 - by);
}

/* XXH64 of two words, seed 0. */
static __device__ uint64_t hash_words(uint64_t a, uint64_t b)
{
    const uint64_t p1 = 0x9E3779B185EBCA87u, p2 = 0xC2B2AE3D27D4EB4Fu, p3 = 0x165667B19E3779F9u,
                   p4 = 0x85EBCA77C2B2AE63u, p5 = 0x27D4EB2F165667C5u;
    uint64_t hash = p5 + 16;
    for (int i = 0; i < 2; ++i) {
        hash ^= turned((i ? b : a) * p2, 31) * p1;
        hash = turned(hash, 27) * p1 + p4;
    }
    hash = (hash ^ hash >> 33) * p2;
    hash = (hash ^ hash >> 29) * p3;
    return hash ^ hash >> 32;
}

/* A thread four elements of a sample. */
template <class T> static __global__ void dropout_kernel(DropoutRun run)
{
    int64_t quads = (run.sample_elements + 3) / 4, i = element();
    if (i >= quads * run.samples) return;
    int64_t sample = i / quads, quad = i % quads;
    uint64_t name = hash_words(run.name, (uint64_t)run.sample[sample]);
    uint32_t key[4] = {run.purpose, 0, 0, 0};
    philox((uint32_t)run.seed, (uint32_t)(run.seed >> 32), key);
    uint32_t place[4] = {(uint32_t)name, (uint32_t)(name >> 32), (uint32_t)run.step,
                         (uint32_t)(run.step >> 32)};
    philox(key[0], key[1], place);
    uint32_t drawn[4] = {(uint32_t)quad, (uint32_t)((uint64_t)quad >> 32), 0, 0};
    philox(place[0], place[1], drawn);
    for (int k = 0; k < 4 && quad * 4 + k < run.sample_elements; ++k) {
        int64_t e = quad * 4 + k; /* of the plain order, channels first */
        int64_t at = sample * run.sample_elements + e % run.pixels * run.channels + e / run.pixels;
        float scale = (drawn[k] >> 8) >= run.cut ? run.scale : 0;
        set((T *)run.to + at, value_of(((const T *)run.from)[at]) * scale);
    }
}

cudaError_t cuda_dropout(cudaStream_t stream, DropoutRun run)
{
    int64_t n = (run.sample_elements + 3) / 4 * run.samples;
#define LAUNCH(T) dropout_kernel<T><<<blocks_for(n, THREADS), THREADS, 0, stream>>>(run)
    if (n > 0) TYPE_SWITCH(run.type, LAUNCH);
#undef LAUNCH
    return cudaGetLastError();
}
