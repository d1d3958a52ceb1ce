/* Arguments of the kernels for depthwise 3x3 convolutions (depthwise.c). A plane is one block of
 * channels of one sample: [h][w][lanes] for x, [p][q][lanes] for y. Kernels are [3][3][lanes]. x is
 * padded by 1 on each side. `lanes` is the number of floats in a vector. */
#ifndef WEFT_TENSOR_CPU_SIMD_DEPTHWISE_H
#define WEFT_TENSOR_CPU_SIMD_DEPTHWISE_H

#include <stdbool.h>
#include <stdint.h>

enum { DEPTHWISE_KERNEL = 3, DEPTHWISE_TAPS = 9 };

typedef struct DepthwisePlane {
    /* rows and columns of x */
    int64_t h, w;
    /* rows and columns of y */
    int64_t p, q;
    /* 1 or 2 */
    int stride;
    /* a row of w pixels of zeros, which is read in place of rows outside the plane */
    const float *zeros;
} DepthwisePlane;

#endif
