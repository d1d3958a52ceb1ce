/* Arguments of the kernel for the gradient of a convolution's weight (simd/conv_weight.c). All
 * tensors are fp32 in blocks of L channels; L is the number of floats in a vector, 8 or 16. */
#ifndef WEFT_TENSOR_CPU_SIMD_CONV_WEIGHT_H
#define WEFT_TENSOR_CPU_SIMD_CONV_WEIGHT_H

#include <stdbool.h>
#include <stdint.h>

/* maximum number of blocks of output channels in one product */
enum { CONV_WEIGHT_PANEL = 3 };

/* One tap (position in the convolution's kernel), between a block of input channels and a panel of
 * up to CONV_WEIGHT_PANEL blocks of output channels: dw[c][o] = sum of x[pixel][c] dy[pixel][o]
 * over `rows` x `columns` pixels of dy. */
typedef struct ConvWeight {
    /* the first pixel that the tap reads */
    const float *x;
    /* the pixel of dy by which that pixel is multiplied */
    const float *dy;
    /* [L of c][L of o] for each block of output channels */
    float *dw;
    int64_t rows, columns;
    /* floats in x from the pixel that belongs to a pixel of dy to the one that belongs to the pixel
     * of dy in the next row */
    int64_t x_row;
    /* the same for the next column of dy */
    int64_t x_column;
    /* floats from one row of dy to the next */
    int64_t dy_row;
    /* floats from one block of output channels to the next */
    int64_t dy_block, dw_block;
    /* number of blocks of output channels, 1 to CONV_WEIGHT_PANEL */
    int vectors;
    /* true: the sums are added to dw; false: dw is overwritten */
    bool add;
} ConvWeight;

#endif
