/* Rows of activations as floats, for operations on vectors that are side by side in a row of (N,C).
 * An fp32 row is used in place. A row of another type is converted in `scratch`, which has one
 * float for each element of the activation. */
#ifndef WEFT_TENSOR_VECTORS_H
#define WEFT_TENSOR_VECTORS_H

#include "view.h"

/* Returns row r, which has n numbers, for reading. */
static inline const float *row_floats(const void *p, int64_t r, int64_t n, DType type,
                                      float *scratch)
{
    const void *row = element_at(p, r * n, type);
    if (type == DTYPE_F32) return row;
    simd_table(type)->to_floats(scratch + r * n, row, n);
    return scratch + r * n;
}

/* Returns memory for writing row r, which has n numbers. Afterwards, row_close stores it in p. */
static inline float *row_open(void *p, int64_t r, int64_t n, DType type, float *scratch)
{
    return type == DTYPE_F32 ? (float *)p + r * n : scratch + r * n;
}

static inline void row_close(void *p, int64_t r, int64_t n, DType type, const float *row)
{
    if (type != DTYPE_F32) simd_table(type)->from_floats(element_out(p, r * n, type), row, n);
}

/* Returns the dot product, computed with eight partial sums so that the compiler can use vector
 * instructions. */
static inline float vectors_dot(const float *a, const float *b, int64_t n)
{
    enum { SUMS = 8 };
    float sum[SUMS] = {0}, all = 0;
    int64_t i = 0;
    for (; i + SUMS <= n; i += SUMS)
        for (int k = 0; k < SUMS; ++k) sum[k] += a[i + k] * b[i + k];
    for (; i < n; ++i) all += a[i] * b[i];
    for (int k = 0; k < SUMS; ++k) all += sum[k];
    return all;
}

/* Adds factor * x to `to`. x and `to` do not overlap. */
static inline void vectors_add(float *to, float factor, const float *x, int64_t n)
{
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) to[i] += factor * x[i];
}

#endif
