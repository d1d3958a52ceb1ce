/* What the kernels of first convolutions (first_conv.c) are given: a few rows of one image. */
#ifndef WEFT_TENSOR_CPU_SIMD_FIRST_CONV_H
#define WEFT_TENSOR_CPU_SIMD_FIRST_CONV_H

#include <stdbool.h>
#include <stdint.h>

enum {
    FIRST_BLOCK = 8,
    /* taps that one product of dw takes */
    FIRST_TAPS = 3,
    /* pixels that one product of y takes: y has no narrower rows */
    FIRST_PIXELS = 3,
    /* blocks of channels that one product takes, at most */
    FIRST_BLOCKS = 4,
};

/* y[row][q] = sum over taps of x[row * x_row + q * stride + tap] w[tap]. The weight's blocks are
 * [taps][8 of O], y's are `y_block` floats apart, [rows][columns][8 of O] each. */
typedef struct FirstConv {
    /* padded */
    const float *x;
    /* where each tap lies in x; of `taps`, filled up to a multiple of FIRST_TAPS by any */
    const int32_t *tap;
    int64_t taps, rows, columns, x_row, stride, y_block;
    /* of O */
    int64_t blocks;
} FirstConv;

#endif
