/* Root mean square normalisation of one row (Zhang & Sennrich 2019): y = x / sqrt(mean(x^2) + eps)
 * * scale. The row stays in the L1 cache between the passes. */
#include "vector.h"

void SIMD_NAME(rms_norm_forward)(LayerNormRow *a)
{
    const Elem *restrict x = a->x;
    const float *restrict scale = a->scale;
    Elem *restrict y = a->y;
    int64_t n = a->width;
    float square = 0.0f;
#pragma omp simd reduction(+ : square)
    for (int64_t i = 0; i < n; ++i) {
        float v = value_of(x[i]);
        square += v * v;
    }
    const float inverse = 1.0f / sqrtf(square / (float)n + a->eps);
    EACH(y, value_of(x[i]) * inverse * scale[i])
    a->mean = 0.0f;
    a->inverse = inverse;
}

/* Computes dx = inverse * (g - xhat * mean(g * xhat)) with g = dy * scale and xhat = x *
 * inverse. */
void SIMD_NAME(rms_norm_grad)(const LayerNormRow *a)
{
    const Elem *x = a->x, *dy = a->dy;
    const float *scale = a->scale;
    /* may be dy */
    Elem *dx = a->dx;
    int64_t n = a->width;
    const float inverse = a->inverse;
    float sum = 0.0f;
#pragma omp simd reduction(+ : sum)
    for (int64_t i = 0; i < n; ++i) sum += value_of(dy[i]) * scale[i] * value_of(x[i]);
    const float by_x = sum / (float)n * inverse * inverse;
    EACH(dx, inverse * fused(value_of(dy[i]), scale[i], -(value_of(x[i]) * by_x)))
}

void SIMD_NAME(rms_norm_sums)(const LayerNormRow *a, float *restrict dscale,
                              float *restrict ignored)
{
    const Elem *restrict x = a->x, *restrict dy = a->dy;
    const float inverse = a->inverse;
    int64_t n = a->width;
    (void)ignored;
#pragma omp simd
    for (int64_t i = 0; i < n; ++i)
        dscale[i] = fused(value_of(dy[i]), value_of(x[i]) * inverse, dscale[i]);
}
