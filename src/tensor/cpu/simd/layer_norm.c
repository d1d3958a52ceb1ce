/* Layer normalisation of one row. The row stays in the L1 cache between three passes: for the mean,
 * for the squares of differences from the mean, and for the result. */
#include "vector.h"

void SIMD_NAME(layer_norm_forward)(LayerNormRow *a)
{
    const Elem *restrict x = a->x;
    const float *restrict scale = a->scale, *restrict shift = a->shift;
    Elem *restrict y = a->y;
    int64_t n = a->width;
    float sum = 0.0f, square = 0.0f, rest = 0.0f;
#pragma omp simd reduction(+ : sum)
    for (int64_t i = 0; i < n; ++i) sum += value_of(x[i]);
    const float mean = sum / (float)n;
#pragma omp simd reduction(+ : square, rest)
    for (int64_t i = 0; i < n; ++i) {
        float d = value_of(x[i]) - mean;
        /* sum of the differences, which corrects the rounding error of the mean */
        rest += d;
        square += d * d;
    }
    const float more = rest / (float)n;
    const float inverse = 1.0f / sqrtf(square / (float)n - more * more + a->eps);
    EACH(y, fused((value_of(x[i]) - mean - more) * inverse, scale[i], shift[i]))
    a->mean = mean + more;
    a->inverse = inverse;
}

void SIMD_NAME(layer_norm_grad)(const LayerNormRow *a)
{
    const Elem *x = a->x, *dy = a->dy;
    const float *scale = a->scale;
    /* may be dy */
    Elem *dx = a->dx;
    int64_t n = a->width;
    const float mean = a->mean, inverse = a->inverse;
    float s1 = 0.0f, s2 = 0.0f;
#pragma omp simd reduction(+ : s1, s2)
    for (int64_t i = 0; i < n; ++i) {
        float g = value_of(dy[i]) * scale[i];
        s1 += g;
        s2 += g * ((value_of(x[i]) - mean) * inverse);
    }
    s1 /= (float)n;
    s2 /= (float)n;
    EACH(dx,
         inverse * (fused(value_of(dy[i]), scale[i], -s1) - (value_of(x[i]) - mean) * inverse * s2))
}

void SIMD_NAME(layer_norm_sums)(const LayerNormRow *a, float *restrict dscale,
                                float *restrict dshift)
{
    const Elem *restrict x = a->x, *restrict dy = a->dy;
    const float mean = a->mean, inverse = a->inverse;
    int64_t n = a->width;
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) {
        float g = value_of(dy[i]);
        dscale[i] = fused(g, (value_of(x[i]) - mean) * inverse, dscale[i]);
        dshift[i] += g;
    }
}
