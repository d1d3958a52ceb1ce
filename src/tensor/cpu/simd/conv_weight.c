/* The gradient of a convolution's weight, for channel blocks that are a vector wide: sums over
 * pixels of products of x and dy. The sums of half a block of input channels stay in registers. */
#include "vector.h"

#ifdef __AVX2__
/* ROWS: rows of a register block, which are input channels. With 3 vectors, the sums take 12 of 16
 * registers, or with AVX-512 24 of 32, which leaves registers for a pixel of dy. */
enum { LANES = VECTOR, ROWS = LANES / 2 };

SIMD_INLINE void half_block(const ConvWeight *p, int half, const int vectors)
{
    Vf sum[ROWS][CONV_WEIGHT_PANEL] = {{{0}}};
    for (int64_t row = 0; row < p->rows; ++row) {
        const float *x = p->x + row * p->x_row + half * ROWS, *dy = p->dy + row * p->dy_row;
        const int64_t step = p->x_column, block = p->dy_block;
        for (int64_t q = 0; q < p->columns; ++q, x += step, dy += LANES) {
            Vf right[CONV_WEIGHT_PANEL];
#pragma GCC unroll 3
            for (int v = 0; v < vectors; ++v) VECTOR_LOAD(right[v], dy + v * block);
#pragma GCC unroll 8
            for (int r = 0; r < ROWS; ++r) {
                const float left = x[r];
#pragma GCC unroll 3
                for (int v = 0; v < vectors; ++v) sum[r][v] += left * right[v];
            }
        }
    }
    float *dw = p->dw + half * ROWS * LANES;
#pragma GCC unroll 8
    for (int r = 0; r < ROWS; ++r)
#pragma GCC unroll 3
        for (int v = 0; v < vectors; ++v) {
            float *to = dw + r * LANES + v * p->dw_block;
            Vf old = {0};
            if (p->add) VECTOR_LOAD(old, to);
            old += sum[r][v];
            VECTOR_STORE(to, old);
        }
}

void SIMD_FLOAT_NAME(conv_weight)(const ConvWeight *p)
{
    for (int half = 0; half < LANES / ROWS; ++half)
        if (p->vectors == 3)
            half_block(p, half, 3);
        else if (p->vectors == 2)
            half_block(p, half, 2);
        else
            half_block(p, half, 1);
}
#endif
