/* What the kernel of dense layers' products (dense_product.c) is given. */
#ifndef WEFT_TENSOR_CPU_SIMD_DENSE_H
#define WEFT_TENSOR_CPU_SIMD_DENSE_H

#include <stdbool.h>
#include <stdint.h>

enum {
    /* of out: what registers hold at once */
    DENSE_ROWS = 6,
    DENSE_COLUMNS = 16,
    /* rows that are few: dense_few.c */
    DENSE_FEW = 8,
    /* of the sum's terms, of rows of a and of columns of b: what a core's caches hold. Multiples of
     * what registers hold */
    DENSE_DEPTH = 256,
    DENSE_BLOCK_ROWS = 72,
    DENSE_BLOCK_COLUMNS = 192,
    /* floats of scratch of a call */
    DENSE_SCRATCH = DENSE_DEPTH * (DENSE_BLOCK_ROWS + DENSE_BLOCK_COLUMNS),
};

/* out[m][n] = sum over k of a(m,k) b(k,n), then + bias[n] and relu, where a(m,k) is a[m * a_row + k
 * * a_col] and b the like; rows of out are n apart. Every element is a chain of fused multiply-adds
 * along k, cut at multiples of DENSE_DEPTH: the same bits wherever out is cut. Of few rows it is
 * one chain, or one for each lane of a vector. */
typedef struct DenseProduct {
    float *out;
    const float *a, *b, *bias;
    int64_t a_row, a_col, b_row, b_col, m, n, k;
    bool relu;
} DenseProduct;

/* The part of out that one call computes; its borders are multiples of DENSE_ROWS and
 * DENSE_COLUMNS, or out's own. */
typedef struct DensePart {
    int64_t row, row_end, column, column_end;
} DensePart;

#endif
