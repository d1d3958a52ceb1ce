/* Products of dense layers, for AVX2: blocks of a and b are copied to panels that are read
 * sequentially (Goto and van de Geijn 2008, section 4) and multiplied with 6 x 2 vectors of sums in
 * registers. If a's rows are contiguous, they are read in place. */
#include "vector.h"

#if defined(__AVX2__) && !defined(__AVX512F__)

enum { WIDE = DENSE_COLUMNS / VECTOR };

/* Operands of one register block: up to DENSE_ROWS rows of a, and one panel of b. */
typedef struct Tile {
    const float *a, *b;
    int64_t a_row, a_col, depth, row, column, columns;
    bool first, last;
} Tile;

SIMD_INLINE Vf finish(const DenseProduct *p, const Tile *t, Vf sum, const float *out,
                      int64_t column)
{
    Vf old = {0};
    if (!t->first)
        VECTOR_LOAD(old, out);
    else if (p->bias)
        VECTOR_LOAD(old, p->bias + column);
    old += sum;
    return t->last && p->relu ? VECTOR_KEEP(old, old > 0) : old;
}

/* Stores the last columns, fewer than a panel has. */
static void store_some(const DenseProduct *p, const Tile *t, const float *sum, float *out)
{
    for (int64_t c = 0; c < t->columns; ++c) {
        float old = !t->first ? out[c] : p->bias ? p->bias[t->column + c] : 0;
        old += sum[c];
        out[c] = t->last && p->relu && !(old > 0) ? 0 : old;
    }
}

SIMD_INLINE void multiply_rows(const DenseProduct *p, const Tile *t, const int rows)
{
    Vf sum[DENSE_ROWS][WIDE] = {{{0}}};
    const float *a = t->a, *b = t->b;
    const int64_t a_row = t->a_row, a_col = t->a_col, depth = t->depth;
    for (int64_t k = 0; k < depth; ++k, a += a_col, b += DENSE_COLUMNS) {
        Vf right[WIDE];
#pragma GCC unroll 2
        for (int v = 0; v < WIDE; ++v) VECTOR_LOAD(right[v], b + v * VECTOR);
#pragma GCC unroll 6
        for (int r = 0; r < rows; ++r) {
            const float left = a[r * a_row];
#pragma GCC unroll 2
            for (int v = 0; v < WIDE; ++v) sum[r][v] += left * right[v];
        }
    }
    float *out = p->out + t->row * p->n + t->column;
#pragma GCC unroll 6
    for (int r = 0; r < rows; ++r, out += p->n) {
        if (t->columns < DENSE_COLUMNS) {
            float some[DENSE_COLUMNS];
#pragma GCC unroll 2
            for (int v = 0; v < WIDE; ++v) VECTOR_STORE(some + v * VECTOR, sum[r][v]);
            store_some(p, t, some, out);
            continue;
        }
#pragma GCC unroll 2
        for (int v = 0; v < WIDE; ++v) {
            Vf y = finish(p, t, sum[r][v], out + v * VECTOR, t->column + v * VECTOR);
            VECTOR_STORE(out + v * VECTOR, y);
        }
    }
}

static void multiply_tile(const DenseProduct *p, const Tile *t, int64_t rows)
{
    switch (rows) {
    case 1:
        multiply_rows(p, t, 1);
        break;
    case 2:
        multiply_rows(p, t, 2);
        break;
    case 3:
        multiply_rows(p, t, 3);
        break;
    case 4:
        multiply_rows(p, t, 4);
        break;
    case 5:
        multiply_rows(p, t, 5);
        break;
    default:
        multiply_rows(p, t, DENSE_ROWS);
    }
}

/* Transposes 8 x 8 floats: to[k][j] = from[j][k]. */
SIMD_INLINE void transpose(const float *from, int64_t from_row, float *to, int64_t to_row)
{
    Vf row[VECTOR], two[VECTOR], four[VECTOR];
    for (int i = 0; i < VECTOR; ++i) VECTOR_LOAD(row[i], from + i * from_row);
    for (int i = 0; i < VECTOR; i += 2) {
        two[i] = VECTOR_LANES(row[i], row[i + 1], 0, 8, 1, 9, 4, 12, 5, 13);
        two[i + 1] = VECTOR_LANES(row[i], row[i + 1], 2, 10, 3, 11, 6, 14, 7, 15);
    }
    for (int i = 0; i < VECTOR; i += 4)
        for (int h = 0; h < 2; ++h) {
            four[i + 2 * h] = VECTOR_LANES(two[i + h], two[i + h + 2], 0, 1, 8, 9, 4, 5, 12, 13);
            four[i + 2 * h + 1] =
                VECTOR_LANES(two[i + h], two[i + h + 2], 2, 3, 10, 11, 6, 7, 14, 15);
        }
    for (int i = 0; i < VECTOR / 2; ++i) {
        Vf low = VECTOR_LANES(four[i], four[i + 4], 0, 1, 2, 3, 8, 9, 10, 11);
        Vf high = VECTOR_LANES(four[i], four[i + 4], 4, 5, 6, 7, 12, 13, 14, 15);
        VECTOR_STORE(to + i * to_row, low);
        VECTOR_STORE(to + (i + VECTOR / 2) * to_row, high);
    }
}

/* panel[k][j] = from[k * row + j * column], with zeros from column `count` on. */
SIMD_INLINE void pack(const float *from, int64_t row, int64_t column, int64_t depth, int64_t count,
                      const int width, float *panel)
{
    int64_t k = 0;
    if (count >= width && column == 1)
        for (; k < depth; ++k)
            memcpy(panel + k * width, from + k * row, (size_t)width * sizeof *panel);
    else if (count >= width && row == 1 && width % VECTOR == 0)
        for (; k + VECTOR <= depth; k += VECTOR)
            for (int j = 0; j < width; j += VECTOR)
                transpose(from + j * column + k, column, panel + k * width + j, width);
    for (; k < depth; ++k)
        for (int j = 0; j < width; ++j)
            panel[k * width + j] = j < count ? from[k * row + j * column] : 0;
}

static void pack_a(const DenseProduct *p, int64_t row, int64_t end, int64_t first, int64_t depth,
                   float *panels)
{
    for (; row < end; row += DENSE_ROWS, panels += DENSE_ROWS * depth)
        pack(p->a + row * p->a_row + first * p->a_col, p->a_col, p->a_row, depth, end - row,
             DENSE_ROWS, panels);
}

static void pack_b(const DenseProduct *p, int64_t column, int64_t end, int64_t first, int64_t depth,
                   float *panels)
{
    for (; column < end; column += DENSE_COLUMNS, panels += DENSE_COLUMNS * depth)
        pack(p->b + first * p->b_row + column * p->b_col, p->b_row, p->b_col, depth, end - column,
             DENSE_COLUMNS, panels);
}

static int64_t min_of(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Multiplies a block of rows by a block of columns, whose panels are packed. */
static void multiply_block(const DenseProduct *p, const DensePart *block, int64_t first,
                           int64_t depth, const float *a_panels, const float *b_panels)
{
    for (int64_t c = block->column; c < block->column_end; c += DENSE_COLUMNS)
        for (int64_t r = block->row; r < block->row_end; r += DENSE_ROWS) {
            const Tile t = {.a = a_panels ? a_panels + (r - block->row) * depth
                                          : p->a + r * p->a_row + first,
                            .b = b_panels + (c - block->column) * depth,
                            .a_row = a_panels ? 1 : p->a_row,
                            .a_col = a_panels ? DENSE_ROWS : 1,
                            .depth = depth,
                            .row = r,
                            .column = c,
                            .columns = min_of(block->column_end - c, DENSE_COLUMNS),
                            .first = first == 0,
                            .last = first + depth == p->k};
            multiply_tile(p, &t, block->row_end - r);
        }
}

void SIMD_FLOAT_NAME(dense_product)(const DenseProduct *p, const DensePart *part, float *scratch)
{
    float *const b_panels = scratch, *const a_room = scratch + DENSE_DEPTH * DENSE_BLOCK_COLUMNS;
    float *const a_panels = p->a_col == 1 ? NULL : a_room;
    DensePart block;
    for (block.column = part->column; block.column < part->column_end;
         block.column = block.column_end) {
        block.column_end = min_of(block.column + DENSE_BLOCK_COLUMNS, part->column_end);
        for (int64_t first = 0; first < p->k; first += DENSE_DEPTH) {
            const int64_t depth = min_of(p->k - first, DENSE_DEPTH);
            pack_b(p, block.column, block.column_end, first, depth, b_panels);
            for (block.row = part->row; block.row < part->row_end; block.row = block.row_end) {
                block.row_end = min_of(block.row + DENSE_BLOCK_ROWS, part->row_end);
                if (a_panels) pack_a(p, block.row, block.row_end, first, depth, a_panels);
                multiply_block(p, &block, first, depth, a_panels, b_panels);
            }
        }
    }
}
#endif
