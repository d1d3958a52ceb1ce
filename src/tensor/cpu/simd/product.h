/* Products of small matrices that fit a cache, by one register-blocked kernel: out[m][n] = sum over
 * k of a(m,k) b[k][n]. Factors are read in cells: a cell is one float, or two bf16 that are
 * neighbours along the sum. Sums are fp32. Like vector.h, this file is compiled once for each
 * instruction set and type. */
#ifndef WEFT_TENSOR_CPU_SIMD_PRODUCT_H
#define WEFT_TENSOR_CPU_SIMD_PRODUCT_H

#include "vector.h"

/* size of the register block: number of rows, and maximum number of vectors in a row */
enum { ROWS = 4, WIDE = VECTOR == 16 ? 4 : 2 };

#ifdef SIMD_BF16
typedef uint32_t Cell __attribute__((may_alias, aligned(2)));
typedef Vu Vcell;

/* Returns sum + the product of cell a with each of the cells b. */
SIMD_INLINE Vf add_product(Vf sum, Cell a, Vcell b)
{
    const Vcell left = (Vcell){0} + a;
#ifdef __AVX512BF16__
    return (Vf)_mm512_dpbf16_ps((__m512)sum, (__m512bh)left, (__m512bh)b);
#else
    sum += (Vf)(left << 16) * (Vf)(b << 16);
    return sum + (Vf)(left & 0xffff0000u) * (Vf)(b & 0xffff0000u);
#endif
}
#else
typedef float Cell;
typedef Vf Vcell;

SIMD_INLINE Vf add_product(Vf sum, Cell a, Vcell b)
{
    return sum + a * b;
}
#endif
enum { CELL = sizeof(Cell) / sizeof(Elem) };

/* Arguments of `multiply`: out[i][j] = sum over t of a(i,t) b[t][j], where a(i,t) = a[i * a_row + t
 * * a_col]. m is a multiple of ROWS, n of 16. */
typedef struct Product {
    float *out;
    const Cell *a, *b;
    /* floats from one row of out to the next */
    int64_t out_row;
    /* distances in cells */
    int64_t a_row, a_col, b_row;
    /* rows and columns of out */
    int64_t m, n;
    /* terms of each sum, in cells */
    int64_t k;
    /* true: the sums are added to out; false: out is overwritten */
    bool add;
} Product;

/* Computes one register block: ROWS rows by `vectors` vectors, from row `row` and column `col`
 * on. */
SIMD_INLINE void block(const Product *p, int64_t row, int64_t col, const int vectors)
{
    Vf sum[ROWS][WIDE] = {{{0}}};
    const Cell *a = p->a + row * p->a_row, *b = p->b + col;
    const int64_t a_row = p->a_row, a_col = p->a_col, b_row = p->b_row, depth = p->k;
    for (int64_t k = 0; k < depth; ++k, a += a_col, b += b_row) {
        Vcell right[WIDE];
#pragma GCC unroll 4
        for (int v = 0; v < vectors; ++v) VECTOR_LOAD(right[v], b + v * VECTOR);
#pragma GCC unroll 4
        for (int r = 0; r < ROWS; ++r) {
            const Cell left = a[r * a_row];
#pragma GCC unroll 4
            for (int v = 0; v < vectors; ++v) sum[r][v] = add_product(sum[r][v], left, right[v]);
        }
    }
    float *out = p->out + row * p->out_row + col;
#pragma GCC unroll 4
    for (int r = 0; r < ROWS; ++r)
#pragma GCC unroll 4
        for (int v = 0; v < vectors; ++v) {
            float *to = out + r * p->out_row + v * VECTOR;
            Vf old = {0};
            if (p->add) VECTOR_LOAD(old, to);
            old += sum[r][v];
            VECTOR_STORE(to, old);
        }
}

static void multiply(const Product *p)
{
    int64_t col = 0;
    for (; col + WIDE * VECTOR <= p->n; col += WIDE * VECTOR)
        for (int64_t row = 0; row < p->m; row += ROWS) block(p, row, col, WIDE);
    const int64_t left = (p->n - col) / VECTOR;
    for (int64_t row = 0; left && row < p->m; row += ROWS) switch (left) {
        case 1:
            block(p, row, col, 1);
            break;
        case 2:
            block(p, row, col, 2);
            break;
        default:
            block(p, row, col, WIDE == 4 ? 3 : 1);
        }
}

#endif
