/* Rows of RGB bytes to three rows of floats: with AVX2 eight pixels at a time, and the same bits
 * without. */
#include "data_private.h"

static void pixels(float *const to[3], const uint8_t *from, int first, int n, const float a[3],
                   const float b[3], int step)
{
    for (int c = 0; c < 3; ++c)
        for (int i = first; i < n; ++i) to[c][step * i] = (float)from[3 * i + c] * a[c] + b[c];
}

#if defined(__x86_64__)
#include <immintrin.h>
#define AVX2 __attribute__((target("avx2")))

/* Bytes k, k + 3, ... of 24, which lie in two halves. */
AVX2 static inline __m256i channel(__m128i low, __m128i high, int k)
{
    int8_t pick_low[16], pick_high[16];
    for (int i = 0; i < 16; ++i) {
        int at = 3 * i + k;
        pick_low[i] = (int8_t)(i < 8 && at < 16 ? at : -1);
        pick_high[i] = (int8_t)(i < 8 && at >= 16 ? at - 8 : -1);
    }
    __m128i bytes =
        _mm_or_si128(_mm_shuffle_epi8(low, _mm_loadu_si128((const __m128i *)pick_low)),
                     _mm_shuffle_epi8(high, _mm_loadu_si128((const __m128i *)pick_high)));
    return _mm256_cvtepu8_epi32(bytes);
}

AVX2 static void row_avx2(float *const to[3], const uint8_t *from, int n, const float a[3],
                          const float b[3], bool mirrored)
{
    const __m256i reverse = _mm256_setr_epi32(7, 6, 5, 4, 3, 2, 1, 0);
    int i = 0;
    for (; i + 8 <= n; i += 8) {
        __m128i low = _mm_loadu_si128((const __m128i *)(from + 3 * i));
        __m128i high = _mm_loadu_si128((const __m128i *)(from + 3 * i + 8));
#pragma GCC unroll 3
        for (int c = 0; c < 3; ++c) {
            __m256 v = _mm256_cvtepi32_ps(channel(low, high, c));
            v = _mm256_add_ps(_mm256_mul_ps(v, _mm256_set1_ps(a[c])), _mm256_set1_ps(b[c]));
            if (mirrored)
                _mm256_storeu_ps(to[c] - i - 7, _mm256_permutevar8x32_ps(v, reverse));
            else
                _mm256_storeu_ps(to[c] + i, v);
        }
    }
    pixels(to, from, i, n, a, b, mirrored ? -1 : 1);
}
#else
#define row_avx2(to, from, n, a, b, mirrored) pixels(to, from, 0, n, a, b, (mirrored) ? -1 : 1)
#endif

void rgb_row(float *const to[3], const uint8_t *from, int n, const float a[3], const float b[3],
             bool mirrored)
{
    if (cpu_used() >= CPU_AVX2)
        row_avx2(to, from, n, a, b, mirrored);
    else
        pixels(to, from, 0, n, a, b, mirrored ? -1 : 1);
}
