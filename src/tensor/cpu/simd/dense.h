/* Arguments of the kernels for the products of dense layers (cpu/dense/dense_product.c). */
#ifndef WEFT_TENSOR_CPU_SIMD_DENSE_H
#define WEFT_TENSOR_CPU_SIMD_DENSE_H

#include <stdbool.h>
#include <stdint.h>

/* number of rows of out whose sums registers hold at once; lanes: floats of a vector */
#define DENSE_TILE_ROWS(lanes) ((lanes) == 16 ? 14 : 6)
enum {
    /* maximum number of columns of out whose sums registers hold at once */
    DENSE_COLUMNS = 32,
    /* dense_few is used for products with at most this number of rows of out or of terms */
    DENSE_FEW = 8,
    /* number of terms in a block of a and in a block of b; a core's caches hold both blocks */
    DENSE_DEPTH = 256,
    /* number of rows of a block of a, a multiple of DENSE_TILE_ROWS */
    DENSE_BLOCK_ROWS = 84,
    /* number of columns of a block of b, a multiple of DENSE_COLUMNS; without AVX-512, blocks have
     * half of this number */
    DENSE_BLOCK_COLUMNS = 384,
    /* floats for the copy of a block of rows of a */
    DENSE_ROWS_ROOM = (DENSE_DEPTH + 16) * DENSE_BLOCK_ROWS,
    /* floats of scratch of a product without slices: copies of a block of b and of a block of a */
    DENSE_SCRATCH = DENSE_DEPTH * DENSE_BLOCK_COLUMNS + DENSE_ROWS_ROOM,
    /* floats of the partial sums of one level of the tree that joins slices */
    DENSE_LEVEL = DENSE_BLOCK_ROWS * DENSE_BLOCK_COLUMNS,
    /* Maximum number of floats of b that a product with slices copies at once. DENSE_COLUMNS
     * columns are copied even if they have more floats. */
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

/* the terms `first` to `end` - 1 of a sum */
typedef struct DenseRange {
    int64_t first, end;
} DenseRange;

/* A product: out[i][j] = sum over terms t of a(i,t) b(t,j), then + bias[j], then relu. a(i,t) is
 * a[i * a_row + t * a_col], and b(t,j) is b[t * b_row + j * b_col]. out has m rows, out_row floats
 * apart, and n columns; each sum has k terms. An element is a chain of multiply-adds along the
 * terms, which are fused if there is FMA. The chain is cut at multiples of DENSE_DEPTH: each piece
 * begins at 0, and its result is added to that of the earlier pieces. So the bits do not depend on
 * how out is cut into parts. In dense_few.c, an element is one chain that is not cut, or one chain
 * for each element of a vector. */
typedef struct DenseProduct {
    float *out;
    const float *a, *b;
    /* NULL: no bias */
    const float *bias;
    int64_t a_row, a_col, b_row, b_col, out_row, m, n, k;
    /* true: relu is applied to out */
    bool relu;
    /* true: the bias is added after all terms; false: after the first DENSE_DEPTH terms. Read by
     * dense_product if slices is 0. In all other cases the bias is added after all terms. */
    bool bias_last;
    /* Number of slices of each sum, a power of two. Each slice is summed on its own, the slices are
     * joined by the binary tree of neighbours, then bias and relu follow. 0: the sum is one
     * chain. */
    int slices;
    /* Number of ranges of terms in each slice. The slice is a chain over its ranges, cut at
     * multiples of DENSE_DEPTH within each range. */
    int ranges;
    /* ranges of slice i: range[i * ranges] and following; borrowed */
    const DenseRange *range;
} DenseProduct;

/* The part of out that one call computes: rows `row` to row_end - 1 and columns `column` to
 * column_end - 1. For weft's kernels the bounds are multiples of DENSE_TILE_ROWS and DENSE_COLUMNS,
 * or the bounds of out. */
typedef struct DensePart {
    int64_t row, row_end, column, column_end;
} DensePart;

#endif
