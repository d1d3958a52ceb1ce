/* Products of dense layers with few rows, as in small micro-batches and in generating text. The
 * weight is read once, in place, or its gradient is written once, in place, while the operands of
 * the few rows stay in registers. Packing a panel, as dense.c does, would cost more than the
 * products. This file also has dense_columns, which sums columns for the gradient of a bias, for
 * any number of rows. */
#include "vector.h"

/* maximum number of vectors in a row of a register block */
enum { WIDE = VECTOR == 16 ? 3 : 2 };

/* Number of rows by which b is prefetched ahead in a loop that reads one cache line of each row;
 * processors do not prefetch such rows by themselves. Prefetching makes the loop 1.25 times as fast
 * on AVX2. With AVX-512, where a block has several lines of each row, prefetching was not measured
 * and is not used. */
enum { AHEAD = 16 };

/* Returns the width, in vectors, of a register block whose sums stay in registers; AVX2 has half as
 * many registers as AVX-512. */
static inline int block_width(int rows)
{
    return VECTOR == 16 || rows <= 5 ? WIDE : 1;
}

/* Calls f with `rows`, 1 to DENSE_FEW, as a compile-time constant. */
#define CALL_WITH_ROWS(rows, f, ...)                                                               \
    switch (rows) {                                                                                \
    case 1:                                                                                        \
        f(__VA_ARGS__, 1);                                                                         \
        break;                                                                                     \
    case 2:                                                                                        \
        f(__VA_ARGS__, 2);                                                                         \
        break;                                                                                     \
    case 3:                                                                                        \
        f(__VA_ARGS__, 3);                                                                         \
        break;                                                                                     \
    case 4:                                                                                        \
        f(__VA_ARGS__, 4);                                                                         \
        break;                                                                                     \
    case 5:                                                                                        \
        f(__VA_ARGS__, 5);                                                                         \
        break;                                                                                     \
    case 6:                                                                                        \
        f(__VA_ARGS__, 6);                                                                         \
        break;                                                                                     \
    case 7:                                                                                        \
        f(__VA_ARGS__, 7);                                                                         \
        break;                                                                                     \
    default:                                                                                       \
        f(__VA_ARGS__, DENSE_FEW);                                                                 \
    }

/* Computes a part whose rows, or whose dot products, are shorter than a vector. */
static void scalars(const DenseProduct *p, const DensePart *part)
{
    for (int64_t r = part->row; r < part->row_end; ++r)
        for (int64_t c = part->column; c < part->column_end; ++c) {
            float sum = 0;
            for (int64_t k = 0; k < p->k; ++k)
                sum = fused(p->a[r * p->a_row + k * p->a_col], p->b[k * p->b_row + c * p->b_col],
                            sum);
            p->out[r * p->out_row + c] = sum;
        }
}

/* ---- out has few rows, and rows of b are contiguous: the gradient of the input ---- */

/* Computes `vectors` vectors, from column `column` on, of `rows` rows of out, from row `row` on. */
SIMD_INLINE void rows_block(const DenseProduct *p, int64_t row, int64_t column, const int vectors,
                            const int rows)
{
    Vf sum[DENSE_FEW][WIDE] = {{{0}}};
    const int64_t a_row = p->a_row, a_col = p->a_col, b_row = p->b_row, depth = p->k;
    const float *a = p->a + row * a_row, *b = p->b + column;
    for (int64_t k = 0; k < depth; ++k, a += a_col, b += b_row) {
        Vf right[WIDE];
#pragma GCC unroll 3
        for (int v = 0; v < vectors; ++v) VECTOR_LOAD(right[v], b + v * VECTOR);
        if (VECTOR < 16) __builtin_prefetch(b + AHEAD * b_row);
#pragma GCC unroll 8
        for (int r = 0; r < rows; ++r) {
            const float left = a[r * a_row];
#pragma GCC unroll 3
            for (int v = 0; v < vectors; ++v) sum[r][v] += left * right[v];
        }
    }
#pragma GCC unroll 8
    for (int r = 0; r < rows; ++r)
#pragma GCC unroll 3
        for (int v = 0; v < vectors; ++v)
            VECTOR_STORE(p->out + (row + r) * p->out_row + column + v * VECTOR, sum[r][v]);
}

/* Returns the column at which the vector for `column` begins. The last vector overlaps the one
 * before it, and gives the common columns the same bits. */
SIMD_INLINE int64_t vector_at(int64_t column, int64_t end)
{
    return column + VECTOR <= end ? column : end - VECTOR;
}

SIMD_INLINE void rows_part(const DenseProduct *p, const DensePart *part, const int rows)
{
    const int64_t end = part->column_end;
    int64_t c = part->column;
    for (const int wide = block_width(rows); wide > 1 && c + wide * VECTOR <= end;
         c += wide * VECTOR)
        rows_block(p, part->row, c, wide, rows);
    for (; c < end; c += VECTOR) rows_block(p, part->row, vector_at(c, end), 1, rows);
}

/* ---- out has few rows, and columns of b are contiguous: forward ---- */

/* Returns the sum of a vector's elements. */
static float lanes_sum(Vf v)
{
#ifdef __AVX512F__
    return _mm512_reduce_add_ps((__m512)v);
#else
    float lane[VECTOR];
    VECTOR_STORE(lane, v);
    for (int half = VECTOR / 2; half > 0; half /= 2)
        for (int i = 0; i < half; ++i) lane[i] += lane[i + half];
    return lane[0];
#endif
}

/* Returns v with all but its last `count` lanes set to 0. */
SIMD_INLINE Vf keep_last(Vf v, int64_t count)
{
    Vi lane;
    for (int l = 0; l < VECTOR; ++l) lane[l] = l;
    return VECTOR_KEEP(v, lane >= (int32_t)(VECTOR - count));
}

/* Adds to sum[r][c] the products of VECTOR terms of row r of a and column c of b. left_over: only
 * the last left_over terms count; 0: all count. */
SIMD_INLINE void dots_add(const DenseProduct *p, const float *a, const float *b, int64_t left_over,
                          Vf sum[DENSE_FEW][WIDE], const int columns, const int rows)
{
    Vf right[WIDE];
#pragma GCC unroll 3
    for (int c = 0; c < columns; ++c) {
        VECTOR_LOAD(right[c], b + c * p->b_col);
        if (left_over) right[c] = keep_last(right[c], left_over);
    }
#pragma GCC unroll 8
    for (int r = 0; r < rows; ++r) {
        Vf left;
        VECTOR_LOAD(left, a + r * p->a_row);
        if (left_over) left = keep_last(left, left_over);
#pragma GCC unroll 3
        for (int c = 0; c < columns; ++c) sum[r][c] += left * right[c];
    }
}

/* Computes dot products of at least VECTOR terms. Terms that do not fill a vector are the last
 * lanes of one more vector, which overlaps the one before it. */
SIMD_INLINE void dots_block(const DenseProduct *p, int64_t row, int64_t column, const int columns,
                            const int rows)
{
    Vf sum[DENSE_FEW][WIDE] = {{{0}}};
    const float *a = p->a + row * p->a_row, *b = p->b + column * p->b_col;
    int64_t k = 0;
    for (; k + VECTOR <= p->k; k += VECTOR) dots_add(p, a + k, b + k, 0, sum, columns, rows);
    if (k < p->k) dots_add(p, a + p->k - VECTOR, b + p->k - VECTOR, p->k - k, sum, columns, rows);
#pragma GCC unroll 8
    for (int r = 0; r < rows; ++r)
#pragma GCC unroll 3
        for (int c = 0; c < columns; ++c)
            p->out[(row + r) * p->out_row + column + c] = lanes_sum(sum[r][c]);
}

SIMD_INLINE void dots_part(const DenseProduct *p, const DensePart *part, const int rows)
{
    int64_t c = part->column;
    for (const int wide = block_width(rows); wide > 1 && c + wide <= part->column_end; c += wide)
        dots_block(p, part->row, c, wide, rows);
    for (; c < part->column_end; ++c) dots_block(p, part->row, c, 1, rows);
}

/* ---- sums have few terms: the gradient of the weight ---- */

/* Computes a vector of each of up to two rows of out. Uses vector_fused because the sums begin with
 * 0: the compiler might compute the first two terms as a sum of two products and round either
 * product first, which would give other bits than `scalars`. */
SIMD_INLINE void terms_add(const DenseProduct *p, int64_t row, int64_t column,
                           float left[2][DENSE_FEW], const int rows, const int terms)
{
    Vf sum[2] = {{0}};
#pragma GCC unroll 8
    for (int k = 0; k < terms; ++k) {
        Vf right;
        VECTOR_LOAD(right, p->b + k * p->b_row + column);
#pragma GCC unroll 2
        for (int r = 0; r < rows; ++r) sum[r] = vector_fused(left[r][k] + (Vf){0}, right, sum[r]);
    }
#pragma GCC unroll 2
    for (int r = 0; r < rows; ++r) VECTOR_STORE(p->out + (row + r) * p->out_row + column, sum[r]);
}

/* Computes one or two rows of out; b is read once for both. */
SIMD_INLINE void terms_rows(const DenseProduct *p, int64_t row, const DensePart *part,
                            const int rows, const int terms)
{
    float left[2][DENSE_FEW];
#pragma GCC unroll 2
    for (int r = 0; r < rows; ++r)
#pragma GCC unroll 8
        for (int k = 0; k < terms; ++k) left[r][k] = p->a[(row + r) * p->a_row + k * p->a_col];
    const int64_t end = part->column_end;
    for (int64_t c = part->column; c < end; c += VECTOR)
        terms_add(p, row, vector_at(c, end), left, rows, terms);
}

SIMD_INLINE void terms_part(const DenseProduct *p, const DensePart *part, const int terms)
{
    int64_t row = part->row;
    for (; row + 2 <= part->row_end; row += 2) terms_rows(p, row, part, 2, terms);
    if (row < part->row_end) terms_rows(p, row, part, 1, terms);
}

/* Adds the bias to a part, if there is one, then applies relu if p->relu is set. */
static void add_bias(const DenseProduct *p, const DensePart *part)
{
    for (int64_t r = part->row; r < part->row_end; ++r) {
        float *out = p->out + r * p->out_row;
        for (int64_t c = part->column; p->bias && c < part->column_end; ++c) out[c] += p->bias[c];
        for (int64_t c = part->column; p->relu && c < part->column_end; ++c)
            out[c] = out[c] <= 0 ? 0 : out[c]; /* NaN stays NaN */
    }
}

/* Works on local copies of the arguments, which stay in registers because no store can change
 * them. */
void SIMD_FLOAT_NAME(dense_few)(const DenseProduct *product, const DensePart *given)
{
    const DenseProduct copy = *product, *p = &copy;
    const DensePart part_copy = *given, *part = &part_copy;
    const int64_t rows = part->row_end - part->row;
    const bool few_terms = p->m > DENSE_FEW, dots = !few_terms && p->b_row == 1 && p->a_col == 1;
    if (rows == 0) return;
    if ((dots ? p->k : part->column_end - part->column) < VECTOR) {
        scalars(product, given);
    } else if (few_terms) {
        CALL_WITH_ROWS(p->k, terms_part, p, part)
    } else if (dots) {
        CALL_WITH_ROWS(rows, dots_part, p, part)
    } else {
        CALL_WITH_ROWS(rows, rows_part, p, part)
    }
    add_bias(product, given);
}

/* Sums DENSE_DEPTH rows at a time, then adds each such sum to the sum of the earlier rows. */
void SIMD_FLOAT_NAME(dense_columns)(const float *x, int64_t rows, int64_t row, int64_t column,
                                    int64_t end, float *sum)
{
    memset(sum + column, 0, (size_t)(end - column) * sizeof *sum);
    for (int64_t first = 0; first < rows; first += DENSE_DEPTH) {
        const int64_t last = first + DENSE_DEPTH < rows ? first + DENSE_DEPTH : rows;
        int64_t c = column;
        for (; c + VECTOR <= end; c += VECTOR) {
            Vf some = {0}, one, all;
            for (int64_t r = first; r < last; ++r) {
                VECTOR_LOAD(one, x + r * row + c);
                some += one;
            }
            VECTOR_LOAD(all, sum + c);
            all += some;
            VECTOR_STORE(sum + c, all);
        }
        for (; c < end; ++c) {
            float some = 0;
            for (int64_t r = first; r < last; ++r) some += x[r * row + c];
            sum[c] += some;
        }
    }
}
