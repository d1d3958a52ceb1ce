/* Access to activations in fp32, bf16 or fp16: they are read as floats and rounded when they are
 * stored, in packs of 16 bytes where addresses allow it. Also warp_sum, which adds in a fixed
 * order. */
#ifndef WEFT_ELEM_CUH
#define WEFT_ELEM_CUH

#include "cuda_kernels.h"
#include "launch.cuh"

#include <cstring>
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#define EVERY_LANE 0xffffffffu

static __device__ __forceinline__ float value_of(float x)
{
    return x;
}
static __device__ __forceinline__ float value_of(__nv_bfloat16 x)
{
    return __bfloat162float(x);
}
static __device__ __forceinline__ float value_of(__half x)
{
    return __half2float(x);
}
static __device__ __forceinline__ void set(float *to, float value)
{
    *to = value;
}
static __device__ __forceinline__ void set(__nv_bfloat16 *to, float value)
{
    *to = __float2bfloat16_rn(value);
}
static __device__ __forceinline__ void set(__half *to, float value)
{
    *to = __float2half_rn(value);
}

/* bytes of one access; bytes that a thread has in flight */
enum { PACK_BYTES = 16, BATCH_BYTES = 64 };

/* E elements as they are in memory; E = PACK(T) if one access is to move them. They stay packed in
 * words until they are read, because unpacking would wait for the load. */
#define PACK(T) (PACK_BYTES / (int)sizeof(T))
constexpr int pack_alignment(int bytes)
{
    return bytes < 4 ? 4 : bytes < PACK_BYTES ? bytes : PACK_BYTES;
}
template <class T, int E> struct alignas(pack_alignment(E *(int)sizeof(T))) Pack {
    enum { IN_WORD = 4 / (int)sizeof(T), BITS = 8 * (int)sizeof(T) };
    uint32_t word[(E + IN_WORD - 1) / IN_WORD];
    __device__ __forceinline__ T at(int k) const
    {
        uint32_t bits = word[k / IN_WORD] >> k % IN_WORD * BITS;
        T element;
        memcpy((void *)&element, &bits, sizeof element);
        return element;
    }
    __device__ __forceinline__ float operator[](int k) const { return value_of(at(k)); }
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

/* Are all these addresses aligned to packs? Checked at launch, since a range may begin anywhere. */
static inline bool in_packs(const void *a, const void *b = nullptr, const void *c = nullptr,
                            const void *d = nullptr)
{
    return ((uintptr_t)a | (uintptr_t)b | (uintptr_t)c | (uintptr_t)d) % PACK_BYTES == 0;
}

/* Prefetches a whole row into the L2 cache, for a block that must first wait for another number. */
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

/* Reads E elements. PACKS: `from` is aligned, and one access moves them; false: one by one. */
template <int E, bool PACKS, class T>
static __device__ __forceinline__ Pack<T, E> read(const T *from)
{
    Pack<T, E> pack;
    if (PACKS && E > 1) {
        pack = *(const Pack<T, E> *)from;
    } else {
#pragma unroll
        for (int k = 0; k < E; ++k) pack.put(k, from[k]);
    }
    return pack;
}

/* Stores 16 bytes at once. From words that it has put together itself, nvcc makes four stores in
 * some kernels. */
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

template <int E, bool PACKS, class T>
static __device__ __forceinline__ void put(T *to, const Pack<T, E> &pack)
{
    if (PACKS && E > 1) {
        store((Pack<T, E> *)to, pack);
    } else {
#pragma unroll
        for (int k = 0; k < E; ++k) to[k] = pack.at(k);
    }
}

template <int E, bool PACKS, class T>
static __device__ __forceinline__ void write(T *to, const float *from)
{
    Pack<T, E> pack;
#pragma unroll
    for (int k = 0; k < E; ++k) {
        T element;
        set(&element, from[k]);
        pack.put(k, element);
    }
    put<E, PACKS>(to, pack);
}

template <int E, bool PACKS>
static __device__ __forceinline__ void read_floats(float *to, const float *from)
{
    Pack<float, E> pack = read<E, PACKS>(from);
#pragma unroll
    for (int k = 0; k < E; ++k) to[k] = pack[k];
}

template <int E, bool PACKS, class T> static __device__ __forceinline__ void write_zeros(T *to)
{
    const float zeros[E] = {};
    write<E, PACKS>(to, zeros);
}

static __device__ __forceinline__ float warp_sum(float v)
{
#pragma unroll
    for (int step = WARP / 2; step > 0; step /= 2) v += __shfl_xor_sync(EVERY_LANE, v, step);
    return v;
}

/* Runs LAUNCH(T) with the C++ type of the elements. */
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

/* Runs KERNEL(T, elements a thread, PACKS) for the launcher's variables `wide` (see cuda_pack) and
 * `packs`. */
#define WIDE_OR_ONE(KERNEL, T)                                                                     \
    if (wide > 1 && packs)                                                                         \
        KERNEL(T, PACK(T), true);                                                                  \
    else if (wide > 1)                                                                             \
        KERNEL(T, PACK(T), false);                                                                 \
    else                                                                                           \
        KERNEL(T, 1, false)

#endif
