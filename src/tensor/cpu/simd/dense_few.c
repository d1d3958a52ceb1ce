/* Products of dense layers of a few rows, as of small micro-batches and of texts that are
 * generated: the weight is read, or its gradient written, once and as it lies, beside what the few
 * rows need in registers. A panel, as dense.c packs, would cost more than the products. */
#include "vector.h"

/* vectors of a register block */
enum { WIDE = VECTOR == 16 ? 3 : 1 };

static float finish(const DenseProduct *p, float sum, int64_t column)
{
    float y = p->bias ? sum + p->bias[column] : sum;
    return p->relu && !(y > 0) ? 0 : y;
}

/* A call of f with `rows` as a constant. */
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

/* ---- out has few rows, and a row of b is one of out's: the gradient of the input ---- */

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
            VECTOR_STORE(p->out + (row + r) * p->n + column + v * VECTOR, sum[r][v]);
}

static void row_scalar(const DenseProduct *p, int64_t row, int64_t column)
{
    float sum = 0;
    for (int64_t k = 0; k < p->k; ++k)
        sum = fused(p->a[row * p->a_row + k * p->a_col], p->b[k * p->b_row + column], sum);
    p->out[row * p->n + column] = sum;
}

/* The last columns, fewer than a vector has, are computed with some of those before them once more:
 * to the same bits. */
SIMD_INLINE void rows_part(const DenseProduct *p, const DensePart *part, const int rows)
{
    int64_t c = part->column;
    for (; c + WIDE * VECTOR <= part->column_end; c += WIDE * VECTOR)
        rows_block(p, part->row, c, WIDE, rows);
    for (; c + VECTOR <= part->column_end; c += VECTOR) rows_block(p, part->row, c, 1, rows);
    if (c == part->column_end) return;
    if (part->column_end - part->column >= VECTOR) {
        rows_block(p, part->row, part->column_end - VECTOR, 1, rows);
        return;
    }
    for (; c < part->column_end; ++c)
        for (int r = 0; r < rows; ++r) row_scalar(p, part->row + r, c);
}

/* ---- out has few rows, and a column of b lies in a row: forward ---- */

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

SIMD_INLINE void dots_block(const DenseProduct *p, int64_t row, int64_t column, const int columns,
                            const int rows)
{
    Vf sum[DENSE_FEW][WIDE] = {{{0}}};
    const int64_t a_row = p->a_row, b_col = p->b_col, depth = p->k;
    const float *a = p->a + row * a_row, *b = p->b + column * b_col;
    int64_t k = 0;
    for (; k + VECTOR <= depth; k += VECTOR) {
        Vf right[WIDE];
#pragma GCC unroll 3
        for (int c = 0; c < columns; ++c) VECTOR_LOAD(right[c], b + c * b_col + k);
#pragma GCC unroll 8
        for (int r = 0; r < rows; ++r) {
            Vf left;
            VECTOR_LOAD(left, a + r * a_row + k);
#pragma GCC unroll 3
            for (int c = 0; c < columns; ++c) sum[r][c] += left * right[c];
        }
    }
#pragma GCC unroll 8
    for (int r = 0; r < rows; ++r)
#pragma GCC unroll 3
        for (int c = 0; c < columns; ++c) {
            float all = lanes_sum(sum[r][c]);
            for (int64_t t = k; t < depth; ++t)
                all = fused(a[r * a_row + t], b[c * b_col + t], all);
            p->out[(row + r) * p->n + column + c] = finish(p, all, column + c);
        }
}

SIMD_INLINE void dots_part(const DenseProduct *p, const DensePart *part, const int rows)
{
    int64_t c = part->column;
    for (; c + WIDE <= part->column_end; c += WIDE) dots_block(p, part->row, c, WIDE, rows);
    for (; c < part->column_end; ++c) dots_block(p, part->row, c, 1, rows);
}

/* ---- sums have few terms: the gradient of the weight ---- */

/* Two rows of out at a time read b once. */
SIMD_INLINE void terms_rows(const DenseProduct *p, int64_t row, const DensePart *part,
                            const int rows, const int terms)
{
    const float *b = p->b;
    const int64_t b_row = p->b_row;
    float left[2][DENSE_FEW], *out = p->out + row * p->n;
    for (int r = 0; r < rows; ++r)
        for (int k = 0; k < terms; ++k) left[r][k] = p->a[(row + r) * p->a_row + k * p->a_col];
    int64_t c = part->column;
    for (; c + VECTOR <= part->column_end; c += VECTOR) {
        Vf sum[2] = {{0}};
#pragma GCC unroll 8
        for (int k = 0; k < terms; ++k) {
            Vf right;
            VECTOR_LOAD(right, b + k * b_row + c);
#pragma GCC unroll 2
            for (int r = 0; r < rows; ++r) sum[r] += left[r][k] * right;
        }
#pragma GCC unroll 2
        for (int r = 0; r < rows; ++r) VECTOR_STORE(out + r * p->n + c, sum[r]);
    }
    for (; c < part->column_end; ++c)
        for (int r = 0; r < rows; ++r) {
            float sum = 0;
            for (int k = 0; k < terms; ++k) sum = fused(left[r][k], b[k * b_row + c], sum);
            out[r * p->n + c] = sum;
        }
}

SIMD_INLINE void terms_part(const DenseProduct *p, const DensePart *part, const int terms)
{
    int64_t row = part->row;
    for (; row + 2 <= part->row_end; row += 2) terms_rows(p, row, part, 2, terms);
    if (row < part->row_end) terms_rows(p, row, part, 1, terms);
}

void SIMD_FLOAT_NAME(dense_few)(const DenseProduct *p, const DensePart *part)
{
    const int64_t rows = part->row_end - part->row;
    if (p->m > DENSE_FEW) {
        CALL_WITH_ROWS(p->k, terms_part, p, part)
    } else if (p->b_row == 1 && p->a_col == 1) {
        CALL_WITH_ROWS(rows, dots_part, p, part)
    } else {
        CALL_WITH_ROWS(rows, rows_part, p, part)
    }
}

/* Adds up DENSE_DEPTH rows at a time. */
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
