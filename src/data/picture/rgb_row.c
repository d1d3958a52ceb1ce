/* Converts a row of RGB bytes to three rows of floats. With AVX2 it converts eight pixels at a
 * time; the results have the same bits with and without AVX2. */
#include "../data_private.h"

/* Converts pixels `first` to n - 1. step: 1, or -1 to mirror the row. */
static void convert_pixels(float *const to[3], const uint8_t *from, int first, int n,
                           const float a[3], const float b[3], int step)
{
    for (int c = 0; c < 3; ++c)
        for (int i = first; i < n; ++i) to[c][step * i] = (float)from[3 * i + c] * a[c] + b[c];
}

#if defined(__x86_64__)
#include <immintrin.h>
#define AVX2 __attribute__((target("avx2")))

/* Eight pixels are 24 bytes. They are loaded twice: the first 16 bytes (half 0) and the last 16
 * bytes (half 1). Channel k of pixel i is byte k + 3 i of the 24 bytes. position[k][half][i]: index
 * of this byte in the half; -1: it is taken from the other half, or i is above 7. */
static const int8_t position[3][2][16] = {
    {{0, 3, 6, 9, 12, 15, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1},
     {-1, -1, -1, -1, -1, -1, 10, 13, -1, -1, -1, -1, -1, -1, -1, -1}},
    {{1, 4, 7, 10, 13, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1},
     {-1, -1, -1, -1, -1, 8, 11, 14, -1, -1, -1, -1, -1, -1, -1, -1}},
    {{2, 5, 8, 11, 14, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1},
     {-1, -1, -1, -1, -1, 9, 12, 15, -1, -1, -1, -1, -1, -1, -1, -1}}};

/* Returns channel k of eight pixels. */
AVX2 static inline __m256i channel(__m128i low, __m128i high, int k)
{
    __m128i in_low = _mm_loadu_si128((const __m128i *)position[k][0]);
    __m128i in_high = _mm_loadu_si128((const __m128i *)position[k][1]);
    return _mm256_cvtepu8_epi32(
        _mm_or_si128(_mm_shuffle_epi8(low, in_low), _mm_shuffle_epi8(high, in_high)));
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
    convert_pixels(to, from, i, n, a, b, mirrored ? -1 : 1);
}
#else
#define row_avx2(to, from, n, a, b, mirrored)                                                      \
    convert_pixels(to, from, 0, n, a, b, (mirrored) ? -1 : 1)
#endif

void rgb_row(float *const to[3], const uint8_t *from, int n, const float a[3], const float b[3],
             bool mirrored)
{
    if (cpu_used() >= CPU_AVX2)
        row_avx2(to, from, n, a, b, mirrored);
    else
        convert_pixels(to, from, 0, n, a, b, mirrored ? -1 : 1);
}
