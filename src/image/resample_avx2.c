/* Computes the two passes of resampling with AVX2. A weight has up to 24 bits with its sign, so its
 * product with a byte would need a multiplication of 32 bits. Instead each weight is split into a
 * low part of 11 bits and a high part (resample.h). Both fit 16 bits, and one instruction
 * multiplies two neighbouring inputs by their weights of 16 bits and adds the products. The sum
 * with the high parts, shifted by SPLIT_BITS, plus the sum with the low parts is exact. */
#include "resample.h"

#if defined(__x86_64__)

#include <immintrin.h>
#include <string.h>

#define AVX2 __attribute__((target("avx2")))

/* Returns the sums as whole numbers, in the unit of the bytes of a picture. low, high: sums in
 * fixed point with the low and with the high parts of the weights. The caller clamps the result to
 * bytes. */
AVX2 static inline __m256i sum_bytes(__m256i low, __m256i high)
{
    return _mm256_srai_epi32(_mm256_add_epi32(_mm256_slli_epi32(high, SPLIT_BITS), low),
                             WEIGHT_BITS);
}

/* Clamps the first three of four sums of 32 bits to bytes, and stores them as a pixel. */
AVX2 static inline void pixel_store(uint8_t *to, __m128i sum)
{
    __m128i words = _mm_packs_epi32(sum, sum);
    uint32_t bytes = (uint32_t)_mm_cvtsi128_si32(_mm_packus_epi16(words, words));
    to[0] = (uint8_t)bytes;
    to[1] = (uint8_t)(bytes >> 8);
    to[2] = (uint8_t)(bytes >> 16);
}

/* Resamples two rows, one in each half of a 256-bit register. The bytes of two neighbouring pixels
 * become the 16-bit numbers r0 r1 g0 g1 b0 b1 0 0. */
AVX2 static void two_rows(const Weights *w, const uint8_t *from, const uint8_t *other, uint8_t *to,
                          uint8_t *to_other)
{
    const __m256i pair = _mm256_setr_epi8(0, -1, 3, -1, 1, -1, 4, -1, 2, -1, 5, -1, -1, -1, -1, -1,
                                          0, -1, 3, -1, 1, -1, 4, -1, 2, -1, 5, -1, -1, -1, -1, -1);
    const __m256i next =
        _mm256_setr_epi8(6, -1, 9, -1, 7, -1, 10, -1, 8, -1, 11, -1, -1, -1, -1, -1, 6, -1, 9, -1,
                         7, -1, 10, -1, 8, -1, 11, -1, -1, -1, -1, -1);
    const __m256i half = _mm256_set1_epi32(1 << (WEIGHT_BITS - 1));
    const int32_t *low = (const int32_t *)w->low, *high = (const int32_t *)w->high;
    int pairs = w->stride / 2;
    for (int x = 0; x < w->outputs; ++x, low += pairs, high += pairs) {
        size_t at = (size_t)w->first[x] * 3;
        __m256i sum_low = half, sum_high = _mm256_setzero_si256();
        for (int t = 0; t < w->taps[x]; t += TAP_GROUP, at += TAP_GROUP * 3) {
            __m256i v = _mm256_inserti128_si256(
                _mm256_castsi128_si256(_mm_loadu_si128((const __m128i *)(from + at))),
                _mm_loadu_si128((const __m128i *)(other + at)), 1);
            __m256i a = _mm256_shuffle_epi8(v, pair), b = _mm256_shuffle_epi8(v, next);
            __m256i low_a = _mm256_madd_epi16(a, _mm256_set1_epi32(low[t / 2]));
            __m256i low_b = _mm256_madd_epi16(b, _mm256_set1_epi32(low[t / 2 + 1]));
            __m256i high_a = _mm256_madd_epi16(a, _mm256_set1_epi32(high[t / 2]));
            __m256i high_b = _mm256_madd_epi16(b, _mm256_set1_epi32(high[t / 2 + 1]));
            sum_low = _mm256_add_epi32(sum_low, _mm256_add_epi32(low_a, low_b));
            sum_high = _mm256_add_epi32(sum_high, _mm256_add_epi32(high_a, high_b));
        }
        __m256i sum = sum_bytes(sum_low, sum_high);
        pixel_store(to + 3 * (size_t)x, _mm256_castsi256_si128(sum));
        pixel_store(to_other + 3 * (size_t)x, _mm256_extracti128_si256(sum, 1));
    }
}

AVX2 void rows_resample_avx2(const Weights *w, const RowPass *pass)
{
    for (int y = 0; y < pass->rows; y += 2) {
        /* if the number of rows is odd, the last row is computed twice */
        size_t other = (size_t)(y + 1 < pass->rows ? y + 1 : y);
        two_rows(w, pass->from + (size_t)y * pass->from_step, pass->from + other * pass->from_step,
                 pass->to + (size_t)y * pass->to_step, pass->to + other * pass->to_step);
    }
}

/* Computes 16 bytes of output row `output`. The bytes of two input rows are interleaved, so that
 * one instruction multiplies both rows by their weights and adds the products. from: address of the
 * 16 bytes in the first input row that the output needs. */
AVX2 static inline __m128i sixteen_bytes(const Weights *w, int output, const uint8_t *from,
                                         size_t step)
{
    const int32_t *low = (const int32_t *)w->low + (int64_t)output * w->stride / 2;
    const int32_t *high = (const int32_t *)w->high + (int64_t)output * w->stride / 2;
    const __m256i half = _mm256_set1_epi32(1 << (WEIGHT_BITS - 1));
    __m256i low_a = half, low_b = half;
    __m256i high_a = _mm256_setzero_si256(), high_b = high_a;
    int taps = w->taps[output];
    for (int t = 0; t < taps; t += 2, from += 2 * step) {
        /* the last of an odd number of rows is paired with itself, with weight zero */
        const uint8_t *next = t + 1 < taps ? from + step : from;
        __m128i p = _mm_loadu_si128((const __m128i *)from);
        __m128i q = _mm_loadu_si128((const __m128i *)next);
        __m256i a = _mm256_cvtepu8_epi16(_mm_unpacklo_epi8(p, q));
        __m256i b = _mm256_cvtepu8_epi16(_mm_unpackhi_epi8(p, q));
        __m256i wl = _mm256_set1_epi32(low[t / 2]), wh = _mm256_set1_epi32(high[t / 2]);
        low_a = _mm256_add_epi32(low_a, _mm256_madd_epi16(a, wl));
        low_b = _mm256_add_epi32(low_b, _mm256_madd_epi16(b, wl));
        high_a = _mm256_add_epi32(high_a, _mm256_madd_epi16(a, wh));
        high_b = _mm256_add_epi32(high_b, _mm256_madd_epi16(b, wh));
    }
    __m256i words = _mm256_packs_epi32(sum_bytes(low_a, high_a), sum_bytes(low_b, high_b));
    words = _mm256_permute4x64_epi64(words, 0xd8);
    __m256i bytes = _mm256_permute4x64_epi64(_mm256_packus_epi16(words, words), 0x08);
    return _mm256_castsi256_si128(bytes);
}

AVX2 void column_resample_avx2(const Weights *w, int output, const uint8_t *from, size_t from_step,
                               uint8_t *to, int bytes)
{
    from += (size_t)w->first[output] * from_step;
    int at = 0;
    for (; at + 16 <= bytes; at += 16)
        _mm_storeu_si128((__m128i *)(to + at), sixteen_bytes(w, output, from + at, from_step));
    if (at < bytes) {
        uint8_t last[16];
        _mm_storeu_si128((__m128i *)last, sixteen_bytes(w, output, from + at, from_step));
        memcpy(to + at, last, (size_t)(bytes - at));
    }
}

#endif
