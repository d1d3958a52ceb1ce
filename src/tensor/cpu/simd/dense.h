/* Arguments of the kernels for dense layers' products (dense_product.c). */
#ifndef WEFT_TENSOR_CPU_SIMD_DENSE_H
#define WEFT_TENSOR_CPU_SIMD_DENSE_H

#include <stdbool.h>
#include <stdint.h>

enum {
    /* rows and columns of out that registers hold at once */
    DENSE_ROWS = 6,
    DENSE_COLUMNS = 16,
    /* the most rows that dense_few.c handles */
    DENSE_FEW = 8,
    /* terms of the sum, rows of a and columns of b that a core's caches hold; rows and columns are
     * multiples of those that registers hold */
    DENSE_DEPTH = 256,
    DENSE_BLOCK_ROWS = 72,
    DENSE_BLOCK_COLUMNS = 192,
    /* floats of scratch per call */
    DENSE_SCRATCH = DENSE_DEPTH * (DENSE_BLOCK_ROWS + DENSE_BLOCK_COLUMNS),
};

/* out[m][n] = sum over k of a(m,k) b(k,n), then + bias[n] and relu. a(m,k) is a[m * a_row + k *
 * a_col], b(k,n) is b[k * b_row + n * b_col], and rows of out are n floats apart. Each element is a
 * chain of fused multiply-adds along k, cut at multiples of DENSE_DEPTH, so that its bits do not
 * depend on how out is cut into parts. With few rows it is one chain, or one chain per lane of a
 * vector. */
typedef struct DenseProduct {
    float *out;
    const float *a, *b, *bias;
    int64_t a_row, a_col, b_row, b_col, m, n, k;
    bool relu;
} DenseProduct;

/* The part of out that one call computes; its bounds are multiples of DENSE_ROWS and DENSE_COLUMNS,
 * or the bounds of out. */
typedef struct DensePart {
    int64_t row, row_end, column, column_end;
} DensePart;

#endif
