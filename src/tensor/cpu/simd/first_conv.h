/* Arguments of the kernels of first convolutions (first_conv.c): some rows of one image. */
#ifndef WEFT_TENSOR_CPU_SIMD_FIRST_CONV_H
#define WEFT_TENSOR_CPU_SIMD_FIRST_CONV_H

#include <stdbool.h>
#include <stdint.h>

enum {
    /* output channels of a block */
    FIRST_BLOCK = 8,
    /* taps in one product of dw */
    FIRST_TAPS = 3,
    /* pixels in one product of y; rows of y have at least this number of pixels */
    FIRST_PIXELS = 3,
    /* blocks of channels in one product, at most */
    FIRST_BLOCKS = 4,
};

/* y[row][q] = sum over k of x[row * x_row + q * stride + tap[k]] w[k], for `rows` rows and
 * `columns` columns of y. A block of the weight is [taps][8 of O]; a block of y is
 * [rows][columns][8 of O], and blocks of y are y_block floats apart. */
typedef struct FirstConv {
    /* the input with its padding */
    const float *x;
    /* offset of each tap in x, int32[taps rounded up to a multiple of FIRST_TAPS]; the extra
     * entries may have any valid offset */
    const int32_t *tap;
    int64_t taps, rows, columns, x_row, stride, y_block;
    /* blocks of output channels */
    int64_t blocks;
} FirstConv;

#endif
