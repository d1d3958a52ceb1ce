/* The factors of dropout, 0 or 1 / (1 - p). They are floats for activations of any type. */
#include "vector.h"

/* The random numbers are those of rng_u32, Philox4x32-10 (a test compares the two), computed for
 * VECTOR counters at once. A 32-bit word of Philox is the low half of a 64-bit lane. The high half
 * contains the rest of a product, which later products do not read. */
typedef uint64_t Vl __attribute__((vector_size(VECTOR * 4)));
typedef int64_t Vm __attribute__((vector_size(VECTOR * 4)));
/* random numbers that one call of `draw` makes: four for each of VECTOR counters */
enum { BATCH = 4 * VECTOR };

/* Numbers of 64-bit lanes for VECTOR_SHUFFLE. FIRST, SECOND: the first or the second half of a0,
 * b0, a1, b1 and so on. */
#if defined(__AVX512F__)
#define HALVES_FIRST  0, 8, 1, 9, 2, 10, 3, 11
#define HALVES_SECOND 4, 12, 5, 13, 6, 14, 7, 15
#elif defined(__AVX__)
#define HALVES_FIRST  0, 4, 1, 5
#define HALVES_SECOND 2, 6, 3, 7
#else
#define HALVES_FIRST  0, 2
#define HALVES_SECOND 1, 3
#endif

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

/* numbers of the counters within one call */
static const uint64_t places[SIMD_LANES] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};

/* Computes the random numbers of VECTOR consecutive counters, four for each, in the order of
 * counters. */
SIMD_INLINE void philox(RngKey key, uint64_t counter, Vi words[4])
{
    const Vl none = {0}, low = none + 0xffffffffu, by0 = none + 0xD2511F53u,
             by1 = none + 0xCD9E8D57u;
    Vl c[4][2];
    memcpy(c[0], places, sizeof c[0]);
#pragma GCC unroll 2
    for (int h = 0; h < 2; ++h) {
        c[0][h] += counter;
        c[1][h] = c[0][h] >> 32;
        c[2][h] = c[3][h] = none;
    }
    Vl k0 = none + key.k[0], k1 = none + key.k[1];
#pragma GCC unroll 10
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
#pragma GCC unroll 2
    for (int h = 0; h < 2; ++h) {
        Vl front = (c[0][h] & low) | (c[1][h] << 32), back = (c[2][h] & low) | (c[3][h] << 32);
        words[2 * h] = (Vi)VECTOR_SHUFFLE(Vm, front, back, HALVES_FIRST);
        words[2 * h + 1] = (Vi)VECTOR_SHUFFLE(Vm, front, back, HALVES_SECOND);
    }
}

/* Writes the factors of BATCH elements, from element 4 * counter on. */
SIMD_INLINE void draw(RngKey key, uint64_t counter, uint32_t threshold, float scale, float *out)
{
    Vi words[4];
    const Vf none = {0}, kept = none + scale;
    philox(key, counter, words);
#pragma GCC unroll 4
    for (int k = 0; k < 4; ++k) {
        /* 24 bits, which fit a signed integer */
        Vi number = words[k] >> 8 & 0xffffff;
        Vf drawn = VECTOR_KEEP(kept, number >= (int32_t)threshold);
        VECTOR_STORE(out + k * VECTOR, drawn);
    }
}

void SIMD_FLOAT_NAME(dropout)(RngKey key, uint64_t first, int count, uint32_t threshold,
                              float scale, float *out, int stride)
{
    float drawn[BATCH];
    int done = 0;
    while (done < count) {
        uint64_t at = first + (uint64_t)done;
        int skip = (int)(at % 4), left = count - done;
        if (skip == 0 && stride == 1 && left >= BATCH) {
            draw(key, at / 4, threshold, scale, out + done);
            done += BATCH;
            continue;
        }
        draw(key, at / 4, threshold, scale, drawn);
        int n = left < BATCH - skip ? left : BATCH - skip;
        for (int i = 0; i < n; ++i) out[(int64_t)(done + i) * stride] = drawn[skip + i];
        done += n;
    }
}
