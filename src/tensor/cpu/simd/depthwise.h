/* Arguments of the kernels for depthwise convolutions (depthwise.c): planes of one block of
 * channels, [h][w][lanes] and [p][q][lanes], with 3x3 kernels [3][3][lanes], padded by 1. */
#ifndef WEFT_TENSOR_CPU_SIMD_DEPTHWISE_H
#define WEFT_TENSOR_CPU_SIMD_DEPTHWISE_H

#include <stdbool.h>
#include <stdint.h>

enum { DEPTHWISE_KERNEL = 3, DEPTHWISE_TAPS = 9 };

typedef struct DepthwisePlane {
    int64_t h, w, p, q;
    /* 1 or 2 */
    int stride;
    /* a row of w pixels of zeros, which is read in place of rows outside the plane */
    const float *zeros;
} DepthwisePlane;

#endif
