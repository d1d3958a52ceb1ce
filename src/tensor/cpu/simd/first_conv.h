/* Arguments of the kernels for a model's first convolution (first_conv.c). One call computes some
 * rows of one image. */
#ifndef WEFT_TENSOR_CPU_SIMD_FIRST_CONV_H
#define WEFT_TENSOR_CPU_SIMD_FIRST_CONV_H

#include <stdbool.h>
#include <stdint.h>

enum {
    /* output channels of a block */
    FIRST_BLOCK = 8,
    /* number of taps of dw that are computed at a time */
    FIRST_TAPS = 3,
    /* number of pixels of y that are computed at a time; rows of y have at least this number of
     * pixels */
    FIRST_PIXELS = 3,
    /* maximum number of blocks of channels that are computed at a time */
    FIRST_BLOCKS = 4,
};

/* y[row][q][o] = sum over k of x[row * x_row + q * stride + tap[k]] w[k][o], for `rows` rows and
 * `columns` columns of y. k counts the taps: the elements of x that a pixel of y reads. A block of
 * the weight is [taps][8 of O]. A block of y is [rows][columns][8 of O]. */
typedef struct FirstConv {
    /* the input, which contains the zeros of its padding */
    const float *x;
    /* offset of each tap in x, int32[taps rounded up to a multiple of FIRST_TAPS]; the extra
     * entries may have any valid offset; borrowed */
    const int32_t *tap;
    /* number of taps */
    int64_t taps;
    int64_t rows, columns;
    /* floats in x between the pixels for two neighbouring rows of y */
    int64_t x_row;
    /* floats in x between the pixels for two neighbouring columns of y */
    int64_t stride;
    /* floats from one block of y to the next */
    int64_t y_block;
    /* number of blocks of output channels */
    int64_t blocks;
} FirstConv;

#endif
