/* Arguments of the kernels for dense layers' products (dense_product.c). */
#ifndef WEFT_TENSOR_CPU_SIMD_DENSE_H
#define WEFT_TENSOR_CPU_SIMD_DENSE_H

#include <stdbool.h>
#include <stdint.h>

/* rows of out that registers hold at once, with vectors of this number of floats */
#define DENSE_TILE_ROWS(lanes) ((lanes) == 16 ? 14 : 6)
enum {
    /* columns of out that registers hold at once, at most */
    DENSE_COLUMNS = 32,
    /* maximum number of rows of out, or of terms of a sum, for which dense_few.c is used */
    DENSE_FEW = 8,
    /* sizes of the blocks of a and b that a core's caches hold: terms of the sums, rows of a,
     * columns of b (without AVX-512 half of them); rows and columns are multiples of those that
     * registers hold */
    DENSE_DEPTH = 256,
    DENSE_BLOCK_ROWS = 84,
    DENSE_BLOCK_COLUMNS = 384,
    /* floats for the copy of a block of rows of a */
    DENSE_ROWS_ROOM = (DENSE_DEPTH + 16) * DENSE_BLOCK_ROWS,
    /* floats of scratch of a product without slices: copies of a block of b and a block of a */
    DENSE_SCRATCH = DENSE_DEPTH * DENSE_BLOCK_COLUMNS + DENSE_ROWS_ROOM,
    /* floats for the partial sums of one level of the tree of slices */
    DENSE_LEVEL = DENSE_BLOCK_ROWS * DENSE_BLOCK_COLUMNS,
    /* maximum number of floats of b that a product with slices copies at once; DENSE_COLUMNS
     * columns are copied even if they have more floats */
    DENSE_PANELS = 1 << 20,
};

/* Returns the maximum number of columns of b, with k terms each, that a product with slices copies
 * at once. */
static inline int64_t dense_slice_columns(int64_t k)
{
    const int64_t fit = DENSE_PANELS / k / DENSE_COLUMNS * DENSE_COLUMNS;
    if (fit < DENSE_COLUMNS) return DENSE_COLUMNS;
    return fit < DENSE_BLOCK_COLUMNS ? fit : DENSE_BLOCK_COLUMNS;
}

/* terms first .. end - 1 of a sum */
typedef struct DenseRange {
    int64_t first, end;
} DenseRange;

/* out[m][n] = sum over k of a(m,k) b(k,n), then + bias[n] and relu. a(m,k) is a[m * a_row + k *
 * a_col], b(k,n) is b[k * b_row + n * b_col], and rows of out are out_row floats apart. Each
 * element is a chain of fused multiply-adds along k, which is cut at multiples of DENSE_DEPTH: each
 * piece begins at 0, and its result is added to that of the earlier pieces. So the bits do not
 * depend on how out is cut into parts. In dense_few.c, an element is one chain that is not cut, or
 * one chain per lane of a vector. */
typedef struct DenseProduct {
    float *out;
    const float *a, *b, *bias;
    int64_t a_row, a_col, b_row, b_col, out_row, m, n, k;
    bool relu;
    /* used by dense_product if slices is 0: the bias is added after all terms; false: it is added
     * after the first DENSE_DEPTH terms. dense_few adds it after all terms. */
    bool bias_last;
    /* slices: number of slices of each sum, a power of two; 0 if the sum is one chain. ranges:
     * number of ranges of terms in each slice; range[i * ranges] is slice i's first range. A slice
     * is a chain over its ranges, cut at multiples of DENSE_DEPTH within each. The slices are
     * joined by the binary tree of neighbours, then bias and relu follow. */
    int slices, ranges;
    const DenseRange *range;
} DenseProduct;

/* The part of out that one call computes. For weft's kernels its bounds are multiples of
 * DENSE_TILE_ROWS and DENSE_COLUMNS, or the bounds of out. */
typedef struct DensePart {
    int64_t row, row_end, column, column_end;
} DensePart;

#endif
