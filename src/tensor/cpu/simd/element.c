/* Elementwise kernels: activations and their gradients, sums, products and conversions. Every
 * activation maps zero to zero, so padded channels need no special care. */
#include "vector.h"

/* gelu's tanh form is x * sigmoid(2 u), u = sqrt(2/pi) (x + 0.044715 x^3) (Hendrycks & Gimpel
 * 2016). */
/* 2 sqrt(2/pi) */
static const float GELU_U = 1.5957691216057308f;
static const float GELU_CUBE = 0.044715f;

SIMD_INLINE float gelu_of(float x)
{
    return x * sigmoid_of(GELU_U * fused(GELU_CUBE * x, x * x, x));
}

SIMD_INLINE float gelu_slope(float x)
{
    float s = sigmoid_of(GELU_U * fused(GELU_CUBE * x, x * x, x));
    float slope = GELU_U * fused(3.0f * GELU_CUBE * x, x, 1.0f);
    return fused(x * s * (1.0f - s), slope, s);
}

void SIMD_NAME(act)(Act act, void *to, const void *from, int64_t n)
{
    Elem *y = to;
    const Elem *x = from;
    switch (act) {
    case ACT_RELU:
        EACH(y, relu_of(value_of(x[i]))) break;
    case ACT_RELU6:
        EACH(y, clip_of(ACT_RELU6, value_of(x[i]))) break;
    case ACT_GELU:
        EACH(y, gelu_of(value_of(x[i]))) break;
    case ACT_SILU:
        EACH(y, silu_of(value_of(x[i]))) break;
    case ACT_NONE:
        memmove(y, x, (size_t)n * sizeof *y);
        break;
    }
}

void SIMD_NAME(act_grad)(Act act, void *to, const void *from, const void *values, int64_t n)
{
    Elem *dx = to;
    const Elem *dy = from, *v = values;
    switch (act) {
    case ACT_RELU:
        EACH(dx, value_of(v[i]) > 0.0f ? value_of(dy[i]) : 0.0f) break;
    case ACT_RELU6:
        EACH(dx, value_of(v[i]) > 0.0f && value_of(v[i]) < 6.0f ? value_of(dy[i]) : 0.0f) break;
    case ACT_GELU:
        EACH(dx, value_of(dy[i]) * gelu_slope(value_of(v[i]))) break;
    case ACT_SILU:
        EACH(dx, value_of(dy[i]) * silu_slope(value_of(v[i]))) break;
    case ACT_NONE:
        memmove(dx, dy, (size_t)n * sizeof *dx);
        break;
    }
}

/* The input is n elements of the gate, then n of the value. */
void SIMD_NAME(swiglu)(void *restrict to, const void *restrict from, int64_t n)
{
    Elem *restrict y = to;
    const Elem *restrict gate = from, *restrict through = gate + n;
    EACH(y, silu_of(value_of(gate[i])) * value_of(through[i]))
}

/* Prefetches n elements AHEAD of `from`. A row of this kernel is in five places, more streams than
 * a processor prefetches by itself. */
SIMD_INLINE void fetch_ahead(const Elem *from, int64_t n, bool write)
{
    enum { AHEAD = 512 };
    for (int64_t i = 0; i < n; i += 64 / (int64_t)sizeof *from)
        if (write)
            __builtin_prefetch(from + AHEAD + i, 1);
        else
            __builtin_prefetch(from + AHEAD + i, 0);
}

void SIMD_NAME(swiglu_grad)(void *restrict to, const void *restrict from,
                            const void *restrict values, int64_t n)
{
    Elem *restrict dgate = to, *restrict dthrough = dgate + n;
    const Elem *restrict dy = from, *restrict gate = values, *restrict through = gate + n;
    for (int64_t part = 0; part < n; part += EACH_PART) {
        const int64_t count = n - part < EACH_PART ? n - part : EACH_PART;
        float a[EACH_PART], b[EACH_PART];
        fetch_ahead(dy + part, count, false);
        fetch_ahead(gate + part, count, false);
        fetch_ahead(through + part, count, false);
        fetch_ahead(dgate + part, count, true);
        fetch_ahead(dthrough + part, count, true);
#pragma omp simd
        for (int64_t i = 0; i < count; ++i) {
            float x = value_of(gate[part + i]), g = value_of(dy[part + i]), s = sigmoid_of(x);
            a[i] = g * value_of(through[part + i]) * (s * fused(x, 1.0f - s, 1.0f));
            b[i] = g * (x * s);
        }
        elems_from(dgate + part, a, count);
        elems_from(dthrough + part, b, count);
    }
}

void SIMD_NAME(add_act)(Act act, void *to, const void *left, const void *right, int64_t n)
{
    Elem *y = to;
    const Elem *a = left, *b = right;
    switch (act) {
    case ACT_RELU:
        EACH(y, relu_of(value_of(a[i]) + value_of(b[i]))) break;
    case ACT_RELU6:
        EACH(y, clip_of(ACT_RELU6, value_of(a[i]) + value_of(b[i]))) break;
    case ACT_GELU:
        EACH(y, gelu_of(value_of(a[i]) + value_of(b[i]))) break;
    case ACT_SILU:
        EACH(y, silu_of(value_of(a[i]) + value_of(b[i]))) break;
    case ACT_NONE:
        EACH(y, value_of(a[i]) + value_of(b[i])) break;
    }
}

void SIMD_NAME(mul)(void *to, const void *from, const float *by, int64_t n)
{
    Elem *y = to;
    const Elem *x = from;
    EACH(y, value_of(x[i]) * by[i])
}

void SIMD_NAME(add_floats)(void *to, const void *from, const float *more, int64_t n)
{
    Elem *y = to;
    const Elem *x = from;
    EACH(y, value_of(x[i]) + more[i])
}

void SIMD_NAME(add_into)(float *sum, const void *from, int64_t n)
{
    const Elem *x = from;
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) sum[i] += value_of(x[i]);
}

void SIMD_NAME(from_floats)(void *restrict to, const float *restrict x, int64_t n)
{
    Elem *restrict y = to;
    EACH(y, x[i])
}

void SIMD_NAME(to_floats)(float *restrict y, const void *restrict from, int64_t n)
{
    const Elem *restrict x = from;
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) y[i] = value_of(x[i]);
}
