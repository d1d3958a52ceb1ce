/* Depthwise 3x3 convolutions of stride 1 or 2, padded by 1. Images are in channel blocks of L
 * floats, one vector (`lanes`: 8 or 16), and the weight is [C/L][3][3][L]; all tensors are fp32.
 * The result does not depend on the number of threads. */
#ifndef WEFT_TENSOR_CPU_DEPTHWISE_H
#define WEFT_TENSOR_CPU_DEPTHWISE_H

#include "dnnl.h"

typedef struct Depthwise Depthwise;

typedef struct DepthwiseSpec {
    /* KERNEL_CONV_FORWARD, KERNEL_CONV_DATA or KERNEL_CONV_WEIGHT */
    KernelKind kind;
    /* shape (N,C,H,W) of x; C is a multiple of lanes */
    int64_t n, c, h, w;
    /* channels of a block, L: 8 or 16 */
    int lanes;
    /* 1 or 2 */
    int stride;
    /* forward: y = max(y, 0) */
    bool relu;
    int threads;
} DepthwiseSpec;

/* Owner: the caller. */
Depthwise *depthwise_new(const DepthwiseSpec *spec);
void depthwise_free(Depthwise **depthwise);
size_t depthwise_scratch_bytes(const Depthwise *depthwise);
/* data[role]: pointers as in kernel_run. Forward writes Y. The gradient of x is written to X, from
 * Y (dy). The gradient of the weight is written to W, and that of the bias to B if B is not
 * NULL. */
void depthwise_run(const Depthwise *depthwise, void *const data[ROLES], void *scratch);

#endif
