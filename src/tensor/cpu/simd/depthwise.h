/* What the kernels of depthwise convolutions (depthwise.c) take: planes of one block of channels,
 * [h][w][lanes] and [p][q][lanes], for 3x3 kernels, padded by 1, [3][3][lanes]. */
#ifndef WEFT_TENSOR_CPU_SIMD_DEPTHWISE_H
#define WEFT_TENSOR_CPU_SIMD_DEPTHWISE_H

#include <stdbool.h>
#include <stdint.h>

enum { DEPTHWISE_KERNEL = 3, DEPTHWISE_TAPS = 9 };

typedef struct DepthwisePlane {
    int64_t h, w, p, q;
    /* 1 or 2 */
    int stride;
    /* a row of w, of a forward pass's or dw's x, or of a data's dy */
    const float *zeros;
} DepthwisePlane;

#endif
