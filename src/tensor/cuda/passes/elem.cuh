/* Access to activations in fp32, bf16 or fp16. They are converted to floats when they are read, and
 * rounded when they are stored. Elements are accessed in packs of 16 bytes if addresses are
 * aligned. Also contains warp_sum, which adds in a fixed order. */
#ifndef WEFT_ELEM_CUH
#define WEFT_ELEM_CUH

#include "../cuda_kernels.h"
#include "launch.cuh"

#include <cstring>
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#define EVERY_LANE 0xffffffffu

static __device__ __forceinline__ float as_float(float x)
{
    return x;
}
static __device__ __forceinline__ float as_float(__nv_bfloat16 x)
{
    return __bfloat162float(x);
}
static __device__ __forceinline__ float as_float(__half x)
{
    return __half2float(x);
}
static __device__ __forceinline__ void store_float(float *to, float value)
{
    *to = value;
}
static __device__ __forceinline__ void store_float(__nv_bfloat16 *to, float value)
{
    *to = __float2bfloat16_rn(value);
}
static __device__ __forceinline__ void store_float(__half *to, float value)
{
    *to = __float2half_rn(value);
}

/* PACK_BYTES: bytes of one access. BATCH_BYTES: bytes that a thread has in flight. */
enum { PACK_BYTES = 16, BATCH_BYTES = 64 };

/* A Pack has E elements of type T; with E = PACK(T) it has the size of one access. The elements
 * stay packed in words until they are used, because unpacking would wait for the load. */
#define PACK(T) (PACK_BYTES / (int)sizeof(T))
constexpr int pack_alignment(int bytes)
{
    return bytes < 4 ? 4 : bytes < PACK_BYTES ? bytes : PACK_BYTES;
}
template <class T, int E> struct alignas(pack_alignment(E *(int)sizeof(T))) Pack {
    /* IN_WORD: number of elements in a word. BITS: bits of an element. */
    enum { IN_WORD = 4 / (int)sizeof(T), BITS = 8 * (int)sizeof(T) };
    uint32_t word[(E + IN_WORD - 1) / IN_WORD];
    __device__ __forceinline__ T at(int k) const
    {
        uint32_t bits = word[k / IN_WORD] >> k % IN_WORD * BITS;
        T element;
        memcpy((void *)&element, &bits, sizeof element);
        return element;
    }
    __device__ __forceinline__ float operator[](int k) const { return as_float(at(k)); }
    __device__ __forceinline__ void put(int k, T element)
    {
        uint32_t bits = 0;
        memcpy(&bits, &element, sizeof element);
        if (k % IN_WORD == 0)
            word[k / IN_WORD] = bits;
        else
            word[k / IN_WORD] |= bits << k % IN_WORD * BITS;
    }
};
template <class T, int E> struct TwoPacks {
    Pack<T, E> a, b;
};

/* Returns whether all addresses are multiples of 16 bytes. NULL counts as a multiple. Launchers
 * check this, because a range may begin anywhere. */
static inline bool aligned_to_packs(const void *a, const void *b = nullptr, const void *c = nullptr,
                                    const void *d = nullptr)
{
    return ((uintptr_t)a | (uintptr_t)b | (uintptr_t)c | (uintptr_t)d) % PACK_BYTES == 0;
}

/* Prefetches a complete row into the L2 cache. This helps a block that first has to wait for
 * another load. */
template <class T> static __device__ __forceinline__ void prefetch_row(const T *row, int64_t width)
{
#ifdef __CUDA_ARCH__
    enum { LINE = 128 / (int)sizeof(T) };
    for (int64_t i = (int64_t)threadIdx.x * LINE; i < width; i += (int64_t)blockDim.x * LINE)
        asm volatile("prefetch.global.L2 [%0];" ::"l"(__cvta_generic_to_global(row + i)));
#else
    (void)row, (void)width;
#endif
}

/* Reads E elements. ALIGNED: true if `from` is aligned to packs; false: the elements are read one
 * by one. */
template <int E, bool ALIGNED, class T>
static __device__ __forceinline__ Pack<T, E> read_pack(const T *from)
{
    Pack<T, E> pack;
    if (ALIGNED && E > 1) {
        pack = *(const Pack<T, E> *)from;
    } else {
#pragma unroll
        for (int k = 0; k < E; ++k) pack.put(k, from[k]);
    }
    return pack;
}

/* Stores a pack with accesses of 16 bytes. An assignment would do the same, but nvcc splits it into
 * four stores in some kernels. */
template <class P> static __device__ __forceinline__ void store(P *to, const P &pack)
{
#ifdef __CUDA_ARCH__
    if constexpr (sizeof pack % PACK_BYTES == 0) {
#pragma unroll
        for (int i = 0; i < (int)sizeof pack / PACK_BYTES; ++i)
            asm volatile("st.global.v4.b32 [%0], {%1, %2, %3, %4};" ::"l"(
                             __cvta_generic_to_global((char *)to + i * PACK_BYTES)),
                         "r"(pack.word[4 * i]), "r"(pack.word[4 * i + 1]),
                         "r"(pack.word[4 * i + 2]), "r"(pack.word[4 * i + 3])
                         : "memory");
        return;
    }
#endif
    *to = pack;
}

/* Writes the E elements of a pack. ALIGNED: as in read_pack. */
template <int E, bool ALIGNED, class T>
static __device__ __forceinline__ void write_pack(T *to, const Pack<T, E> &pack)
{
    if (ALIGNED && E > 1) {
        store((Pack<T, E> *)to, pack);
    } else {
#pragma unroll
        for (int k = 0; k < E; ++k) to[k] = pack.at(k);
    }
}

/* Rounds E floats to T and writes them. */
template <int E, bool ALIGNED, class T>
static __device__ __forceinline__ void write_floats(T *to, const float *from)
{
    Pack<T, E> pack;
#pragma unroll
    for (int k = 0; k < E; ++k) {
        T element;
        store_float(&element, from[k]);
        pack.put(k, element);
    }
    write_pack<E, ALIGNED>(to, pack);
}

template <int E, bool ALIGNED>
static __device__ __forceinline__ void read_floats(float *to, const float *from)
{
    Pack<float, E> pack = read_pack<E, ALIGNED>(from);
#pragma unroll
    for (int k = 0; k < E; ++k) to[k] = pack[k];
}

template <int E, bool ALIGNED, class T> static __device__ __forceinline__ void write_zeros(T *to)
{
    const float zeros[E] = {};
    write_floats<E, ALIGNED>(to, zeros);
}

/* Returns the sum of v over the lanes of the warp, on every lane. */
static __device__ __forceinline__ float warp_sum(float v)
{
#pragma unroll
    for (int step = WARP / 2; step > 0; step /= 2) v += __shfl_xor_sync(EVERY_LANE, v, step);
    return v;
}

/* Runs LAUNCH(T), where T is the C++ type for the DType `type`. */
#define TYPE_SWITCH(type, LAUNCH)                                                                  \
    do {                                                                                           \
        if ((type) == DTYPE_BF16) {                                                                \
            LAUNCH(__nv_bfloat16);                                                                 \
        } else if ((type) == DTYPE_F16) {                                                          \
            LAUNCH(__half);                                                                        \
        } else {                                                                                   \
            LAUNCH(float);                                                                         \
        }                                                                                          \
    } while (0)

/* Runs KERNEL(T, elements per thread, ALIGNED). Reads the launcher's variables pack_size, from
 * cuda_pack_size, and aligned, from aligned_to_packs. */
#define PACK_SIZE_SWITCH(KERNEL, T)                                                                \
    if (pack_size > 1 && aligned)                                                                  \
        KERNEL(T, PACK(T), true);                                                                  \
    else if (pack_size > 1)                                                                        \
        KERNEL(T, PACK(T), false);                                                                 \
    else                                                                                           \
        KERNEL(T, 1, false)

#endif
