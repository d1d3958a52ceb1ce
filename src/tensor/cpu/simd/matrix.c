/* One tile of a product of fp32 matrices. Each element is a chain of multiply-adds along k, which
 * are fused if there is FMA. The chain is cut at multiples of DEPTH, as in dense.h, so that the
 * element's bits do not depend on the tile. */
#include "product.h"

enum { DEPTH = 256 };

/* Copies rows `first` to `first` + `depth` - 1 of b, in the tile's columns, to panel[k][column]. */
static void pack(const MatrixProduct *p, const MatrixTile *t, int64_t first, int64_t depth,
                 float *panel)
{
    if (!p->b_transposed) {
        for (int64_t k = 0; k < depth; ++k)
            memcpy(panel + k * t->columns, p->b + (first + k) * p->b_row + t->column,
                   (size_t)t->columns * sizeof *panel);
        return;
    }
    for (int64_t j = 0; j < t->columns; ++j)
        for (int64_t k = 0; k < depth; ++k)
            panel[k * t->columns + j] = p->b[(t->column + j) * p->b_row + first + k];
}

void SIMD_FLOAT_NAME(matrix_tile)(const MatrixProduct *p, const MatrixTile *t)
{
    _Alignas(64) float panel[DEPTH * MATRIX_TILE_COLUMNS];
    for (int64_t first = 0; first < p->k; first += DEPTH) {
        int64_t depth = p->k - first < DEPTH ? p->k - first : DEPTH;
        pack(p, t, first, depth, panel);
        Product part = {.out = p->out + t->row * p->out_row + t->column,
                        .a = p->a + t->row * p->a_row + first,
                        .b = panel,
                        .out_row = p->out_row,
                        .a_row = p->a_row,
                        .a_col = 1,
                        .b_row = t->columns,
                        .m = t->rows,
                        .n = t->columns,
                        .k = depth,
                        .add = first > 0};
        multiply(&part);
    }
}
