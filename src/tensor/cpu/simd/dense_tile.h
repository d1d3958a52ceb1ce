/* One register block of a product of dense layers (dense.c): multiplies rows of a by a panel of b
 * with sums in registers, joins the sums with the sums of earlier slices, and stores them. A panel
 * is TILE_COLUMNS columns of b, with the elements of one term side by side. */
#ifndef WEFT_TENSOR_CPU_SIMD_DENSE_TILE_H
#define WEFT_TENSOR_CPU_SIMD_DENSE_TILE_H

#include "vector.h"

enum {
    /* number of vectors in a row of a register block */
    WIDE = 2,
    TILE_COLUMNS = WIDE * VECTOR,
    TILE_ROWS = DENSE_TILE_ROWS(VECTOR),
    /* number of terms by which b is prefetched ahead into the first-level cache, which is smaller
     * than a panel */
    AHEAD = 12,
};

/* One register block: up to TILE_ROWS rows of a, and one panel of b. */
typedef struct Tile {
    const float *a, *b;
    /* number of terms */
    int64_t depth;
    /* number of columns of the panel that are used, at most TILE_COLUMNS */
    int64_t columns;
    /* true: the rows of a are side by side, and a_step is the distance in floats from one term to
     * the next; false: terms are side by side, and a_step is the distance from one row to the
     * next */
    bool panels;
    int64_t a_step;
    /* floats from the a of one tile to that of the next tile, divided by TILE_ROWS */
    int64_t a_row;
    /* floats from one term of b to the next */
    int64_t b_step;
    float *out;
    /* floats from one row of out to the next */
    int64_t out_row;
    /* true: each row of out has room for TILE_COLUMNS floats; false: only for `columns` floats */
    bool out_whole;
    /* sums of earlier slices, one block for each level; blocks begin DENSE_LEVEL floats apart */
    const float *level;
    /* number of levels, from level 0 on, whose sums are added to this sum */
    int joins;
    /* biases that are added to the sum of the first terms; NULL: none */
    const float *bias_first;
    /* biases that are added to the complete sum; NULL: none */
    const float *bias_last;
    /* true: out already has the sum of earlier terms, to which this sum is added */
    bool adds;
    /* true: negative sums, and NaN, become 0 */
    bool relu;
} Tile;

static int64_t min_of(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Load and store the first `count` floats of a vector; the other elements are loaded as 0. */
#if defined(__AVX512F__)
SIMD_INLINE Vf some_load(const float *from, int64_t count)
{
    return (Vf)_mm512_maskz_loadu_ps((__mmask16)((1U << count) - 1), from);
}

SIMD_INLINE void some_store(float *to, Vf v, int64_t count)
{
    _mm512_mask_storeu_ps(to, (__mmask16)((1U << count) - 1), (__m512)v);
}
#elif defined(__AVX__)
static const int32_t lanes_used[2 * VECTOR] = {-1, -1, -1, -1, -1, -1, -1, -1};

SIMD_INLINE __m256i first_lanes(int64_t count)
{
    return _mm256_loadu_si256((const __m256i *)(lanes_used + VECTOR - count));
}

SIMD_INLINE Vf some_load(const float *from, int64_t count)
{
    return (Vf)_mm256_maskload_ps(from, first_lanes(count));
}

SIMD_INLINE void some_store(float *to, Vf v, int64_t count)
{
    _mm256_maskstore_ps(to, first_lanes(count), (__m256)v);
}
#else
SIMD_INLINE Vf some_load(const float *from, int64_t count)
{
    Vf v = {0};
    memcpy(&v, from, (size_t)count * sizeof *from);
    return v;
}

SIMD_INLINE void some_store(float *to, Vf v, int64_t count)
{
    memcpy(to, &v, (size_t)count * sizeof *to);
}
#endif

/* Completes and stores the vector of sums at row r and column c of a tile at the right edge of out.
 * Only `count` elements of the vector are used. */
SIMD_INLINE void finish_some(const Tile *t, Vf sum, int r, int64_t c, int64_t count)
{
    float *out = t->out + r * t->out_row + c;
    const float *level = t->level + r * DENSE_BLOCK_COLUMNS + c;
    if (t->adds)
        sum = some_load(out, count) + sum;
    else if (t->bias_first)
        sum = some_load(t->bias_first + c, count) + sum;
    for (int l = 0; l < t->joins; ++l) sum = some_load(level + l * DENSE_LEVEL, count) + sum;
    if (t->bias_last) sum += some_load(t->bias_last + c, count);
    if (t->relu) sum = VECTOR_KEEP(sum, ~(sum <= 0)); /* NaN stays NaN */
    some_store(out, sum, count);
}

/* Adds to each vector of sums the vector of `from` at the same row and column. row: floats from one
 * row of `from` to the next; 0: one row is added to all rows. */
SIMD_INLINE void add_rows(Vf sum[TILE_ROWS][WIDE], const float *from, int64_t row, const int rows,
                          const int wide)
{
#pragma GCC unroll 14
    for (int r = 0; r < rows; ++r)
#pragma GCC unroll 2
        for (int v = 0; v < wide; ++v) {
            Vf more;
            VECTOR_LOAD(more, from + r * row + v * VECTOR);
            sum[r][v] += more;
        }
}

/* Completes and stores all sums of `rows` rows of a tile. Each condition is tested only once for
 * all sums: a slice may have so few terms that more tests would take a large part of the time. */
SIMD_INLINE void finish(const Tile *t, Vf sum[TILE_ROWS][WIDE], int row, const int rows,
                        const int wide)
{
    float *out = t->out + row * t->out_row;
    const float *level = t->level + row * DENSE_BLOCK_COLUMNS;
    if (t->adds)
        add_rows(sum, out, t->out_row, rows, wide);
    else if (t->bias_first)
        add_rows(sum, t->bias_first, 0, rows, wide);
    for (int l = 0; l < t->joins; ++l)
        add_rows(sum, level + l * DENSE_LEVEL, DENSE_BLOCK_COLUMNS, rows, wide);
    if (t->bias_last) add_rows(sum, t->bias_last, 0, rows, wide);
    if (t->relu)
#pragma GCC unroll 14
        for (int r = 0; r < rows; ++r)
#pragma GCC unroll 2
            for (int v = 0; v < wide; ++v) sum[r][v] = VECTOR_KEEP(sum[r][v], ~(sum[r][v] <= 0));
#pragma GCC unroll 14
    for (int r = 0; r < rows; ++r)
#pragma GCC unroll 2
        for (int v = 0; v < wide; ++v) VECTOR_STORE(out + r * t->out_row + v * VECTOR, sum[r][v]);
}

/* Multiplies `rows` rows of a by the first `wide` vectors of each term of b. */
SIMD_INLINE void multiply_rows(const Tile *t, int row, const int rows, const int wide,
                               const bool panels)
{
    /* every third row has a pointer of its own; the address of another row is such a pointer plus
     * one or two distances */
    const int thirds = panels ? 1 : (rows + 2) / 3;
    Vf sum[TILE_ROWS][WIDE] = {{{0}}};
    const int64_t depth = t->depth, b_step = t->b_step;
    const int64_t distance = panels ? 1 : t->a_step, next = panels ? t->a_step : 1;
    const float *b = t->b, *a[(TILE_ROWS + 2) / 3];
#pragma GCC unroll 5
    for (int i = 0; i < thirds; ++i) a[i] = t->a + (row + 3 * i) * distance;
    for (int64_t k = 0; k < depth; ++k, b += b_step) {
        Vf right[WIDE];
#pragma GCC unroll 2
        for (int v = 0; v < wide; ++v) VECTOR_LOAD(right[v], b + v * VECTOR);
#pragma GCC unroll 2
        for (int v = 0; v < wide; ++v) __builtin_prefetch(b + AHEAD * b_step + v * VECTOR);
#pragma GCC unroll 14
        for (int r = 0; r < rows; ++r) {
            const float left = panels ? a[0][r] : a[r / 3][r % 3 * distance];
#pragma GCC unroll 2
            for (int v = 0; v < wide; ++v) sum[r][v] += left * right[v];
        }
#pragma GCC unroll 5
        for (int i = 0; i < thirds; ++i) a[i] += next;
    }
    if (t->out_whole || t->columns >= TILE_COLUMNS) {
        finish(t, sum, row, rows, wide);
        return;
    }
    /* a copy in memory, so that `sum` itself stays in registers */
    Vf some[TILE_ROWS][WIDE];
#pragma GCC unroll 14
    for (int r = 0; r < rows; ++r)
#pragma GCC unroll 2
        for (int v = 0; v < wide; ++v) VECTOR_STORE(&some[r][v], sum[r][v]);
#pragma GCC unroll 0
    for (int r = 0; r < rows; ++r)
#pragma GCC unroll 0
        for (int64_t c = 0; c < t->columns; c += VECTOR)
            finish_some(t, some[r][c / VECTOR], row + r, c, min_of(t->columns - c, VECTOR));
}

/* Defines a function that calls multiply_rows with compile-time constants; it uses one vector per
 * row if a vector is wide enough for the columns of the tile. */
#define MULTIPLY(name, rows)                                                                       \
    static __attribute__((noinline)) void name(const Tile *t, int row)                             \
    {                                                                                              \
        const bool narrow = t->columns <= VECTOR;                                                  \
        if (t->panels && narrow)                                                                   \
            multiply_rows(t, row, rows, 1, true);                                                  \
        else if (t->panels)                                                                        \
            multiply_rows(t, row, rows, WIDE, true);                                               \
        else if (narrow)                                                                           \
            multiply_rows(t, row, rows, 1, false);                                                 \
        else                                                                                       \
            multiply_rows(t, row, rows, WIDE, false);                                              \
    }
MULTIPLY(multiply_all, TILE_ROWS)
MULTIPLY(multiply_four, 4)
MULTIPLY(multiply_two, 2)
MULTIPLY(multiply_one, 1)

/* Computes one tile. rows: number of rows of a from the tile's first row on; at most TILE_ROWS of
 * them are used. */
static void multiply_tile(const Tile *t, int64_t rows)
{
    int row = 0;
    if (rows >= TILE_ROWS) {
        multiply_all(t, 0);
        return;
    }
    for (; row + 4 <= rows; row += 4) multiply_four(t, row);
    if (row + 2 <= rows) {
        multiply_two(t, row);
        row += 2;
    }
    if (row < rows) multiply_one(t, row);
}

#endif
