/* Losses of numbers: the sum of the losses over one piece of a sample, and their gradients. For an
 * error of 0, each loss has the value 0 and the slope 0. A missing target gets the error 0, so it
 * adds nothing. */
#include "vector.h"

/* Returns x - target; 0 if the target is NaN, which means that it is missing. */
SIMD_INLINE float error_of(float x, float target)
{
    return target == target ? x - target : 0.0f;
}

/* Returns the loss at the error d. parameter: PointArgs.parameter. */
SIMD_INLINE float value_at(PointLoss loss, float parameter, float d)
{
    const float a = fabsf(d);
    switch (loss) {
    case POINT_ABSOLUTE:
        return a;
    case POINT_HUBER:
        return a <= parameter ? 0.5f * d * d : parameter * (a - 0.5f * parameter);
    case POINT_CHARBONNIER:
        /* sqrt(d^2 + parameter^2) - parameter, without the difference of two nearly equal
         * numbers */
        return d * d / (sqrtf(d * d + parameter * parameter) + parameter);
    case POINT_SQUARE:
        break;
    }
    return d * d;
}

SIMD_INLINE float slope_at(PointLoss loss, float parameter, float d)
{
    switch (loss) {
    case POINT_ABSOLUTE:
        return (d > 0.0f ? 1.0f : 0.0f) - (d < 0.0f ? 1.0f : 0.0f);
    case POINT_HUBER:
        return d > parameter ? parameter : d < -parameter ? -parameter : d;
    case POINT_CHARBONNIER:
        return d / sqrtf(d * d + parameter * parameter);
    case POINT_SQUARE:
        break;
    }
    return 2.0f * d;
}

SIMD_INLINE PointSum sums(const PointArgs *a, PointLoss loss)
{
    const Elem *x = a->x;
    const float *target = a->target, *weight = a->weight, parameter = a->parameter;
    const int64_t n = a->n;
    float sum = 0.0f, all = 0.0f;
    if (!weight) {
#pragma omp simd reduction(+ : sum)
        for (int64_t i = 0; i < n; ++i)
            sum += value_at(loss, parameter, value_of(x[i]) - target[i]);
        /* if a target were missing, the sum would be NaN */
        if (sum == sum) return (PointSum){sum, (float)n};
        sum = 0.0f;
#pragma omp simd reduction(+ : sum, all)
        for (int64_t i = 0; i < n; ++i) {
            sum += value_at(loss, parameter, error_of(value_of(x[i]), target[i]));
            all += target[i] == target[i] ? 1.0f : 0.0f;
        }
    } else {
#pragma omp simd reduction(+ : sum, all)
        for (int64_t i = 0; i < n; ++i) {
            const float w = target[i] == target[i] ? weight[i] : 0.0f;
            sum += w * value_at(loss, parameter, error_of(value_of(x[i]), target[i]));
            all += w;
        }
    }
    return (PointSum){sum, all};
}

SIMD_INLINE void gradient(const PointArgs *a, PointLoss loss, float scale, Elem *dx)
{
    const Elem *x = a->x;
    const float *target = a->target, *weight = a->weight, parameter = a->parameter;
    const int64_t n = a->n;
    if (weight) {
        EACH(dx, scale * weight[i] * slope_at(loss, parameter, error_of(value_of(x[i]), target[i])))
    } else {
        EACH(dx, scale * slope_at(loss, parameter, error_of(value_of(x[i]), target[i])))
    }
}

PointSum SIMD_NAME(point_loss)(const PointArgs *a)
{
    switch (a->loss) {
    case POINT_ABSOLUTE:
        return sums(a, POINT_ABSOLUTE);
    case POINT_HUBER:
        return sums(a, POINT_HUBER);
    case POINT_CHARBONNIER:
        return sums(a, POINT_CHARBONNIER);
    case POINT_SQUARE:
        break;
    }
    return sums(a, POINT_SQUARE);
}

void SIMD_NAME(point_grad)(const PointArgs *a, float scale, void *dx)
{
    switch (a->loss) {
    case POINT_ABSOLUTE:
        gradient(a, POINT_ABSOLUTE, scale, dx);
        break;
    case POINT_HUBER:
        gradient(a, POINT_HUBER, scale, dx);
        break;
    case POINT_CHARBONNIER:
        gradient(a, POINT_CHARBONNIER, scale, dx);
        break;
    case POINT_SQUARE:
        gradient(a, POINT_SQUARE, scale, dx);
    }
}
