/* Arguments of the weight's gradient of a convolution (simd/conv_weight.c). All tensors are fp32 in
 * blocks of L channels, the floats of a vector: 8 or 16. */
#ifndef WEFT_TENSOR_CPU_SIMD_CONV_WEIGHT_H
#define WEFT_TENSOR_CPU_SIMD_CONV_WEIGHT_H

#include <stdbool.h>
#include <stdint.h>

/* maximum number of blocks of output channels in one product */
enum { CONV_WEIGHT_PANEL = 3 };

/* One tap between a block of input channels and a panel of blocks of output channels: dw[c][o] =
 * sum of x[pixel][c] dy[pixel][o] over `rows` x `columns` pixels of dy. */
typedef struct ConvWeight {
    /* the first pixel that the tap reads, and the pixel of dy by which it is multiplied */
    const float *x, *dy;
    /* [L of c][L of o] */
    float *dw;
    int64_t rows, columns;
    /* floats from one row of pixels to the next in x and dy, and from one pixel of a row to the
     * next in x */
    int64_t x_row, x_column, dy_row;
    /* floats from one block of output channels to the next */
    int64_t dy_block, dw_block;
    /* blocks of output channels, 1 to CONV_WEIGHT_PANEL */
    int vectors;
    /* add to dw instead of overwriting it */
    bool add;
} ConvWeight;

#endif
