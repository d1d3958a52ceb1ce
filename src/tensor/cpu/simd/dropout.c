/* The multipliers of dropout, floats whatever the type of activations. */
#include "vector.h"

/* Philox4x32-10 on BATCH counters at once, each in the low half of 64 bits; the same numbers as
 * rng_u32 (tests compare them). The high halves hold what is left of products, and no product reads
 * them. */
typedef uint64_t Vl __attribute__((vector_size(VECTOR * 4)));
/* blocks are a multiple of BATCH */
enum { BATCH = VECTOR, BLOCKS = 32 };

SIMD_INLINE Vl low_product(Vl a, Vl b)
{
#if defined(__AVX512F__)
    return (Vl)_mm512_mul_epu32((__m512i)a, (__m512i)b);
#elif defined(__AVX2__)
    return (Vl)_mm256_mul_epu32((__m256i)a, (__m256i)b);
#elif defined(__SSE2__)
    return (Vl)_mm_mul_epu32((__m128i)a, (__m128i)b);
#else
    return (a & 0xffffffffu) * (b & 0xffffffffu);
#endif
}

static const uint64_t places[SIMD_LANES] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};

/* The four words of each block, one after the other. */
SIMD_INLINE void philox(RngKey key, uint64_t counter, uint32_t words[4 * BATCH])
{
    const Vl none = {0}, by0 = none + 0xD2511F53u, by1 = none + 0xCD9E8D57u;
    Vl c[4][2];
    uint64_t word[4][BATCH];
    memcpy(c[0], places, sizeof c[0]);
#pragma GCC unroll 2
    for (int h = 0; h < 2; ++h) {
        c[0][h] += counter;
        c[1][h] = c[0][h] >> 32;
        c[2][h] = c[3][h] = none;
    }
    Vl k0 = none + key.k[0], k1 = none + key.k[1];
    for (int round = 0; round < 10; ++round) {
#pragma GCC unroll 2
        for (int h = 0; h < 2; ++h) {
            Vl p0 = low_product(c[0][h], by0), p1 = low_product(c[2][h], by1);
            c[0][h] = (p1 >> 32) ^ c[1][h] ^ k0;
            c[2][h] = (p0 >> 32) ^ c[3][h] ^ k1;
            c[1][h] = p1;
            c[3][h] = p0;
        }
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    memcpy(word, c, sizeof c);
#pragma omp simd
    for (int i = 0; i < BATCH; ++i)
        for (int w = 0; w < 4; ++w) words[4 * i + w] = (uint32_t)word[w][i];
}

void SIMD_FLOAT_NAME(dropout)(RngKey key, uint64_t first, int count, uint32_t cut, float scale,
                              float *out, int stride)
{
    uint32_t words[4 * BLOCKS];
    float drawn[4 * BLOCKS];
    int skip = (int)(first % 4);
    for (int done = 0; done < count;) {
        int left = count - done + skip, n = left < 4 * BLOCKS ? left : 4 * BLOCKS;
        for (int b = 0; 4 * b < n; b += BATCH)
            philox(key, (first + (uint64_t)done) / 4 + (uint64_t)b, words + 4 * b);
#pragma omp simd
        for (int i = 0; i < n; ++i) drawn[i] = (words[i] >> 8) >= cut ? scale : 0.0f;
        if (stride == 1)
            memcpy(out + done, drawn + skip, (size_t)(n - skip) * sizeof *out);
        else
            for (int i = skip; i < n; ++i) out[(int64_t)(done + i - skip) * stride] = drawn[i];
        done += n - skip;
        skip = 0;
    }
}
