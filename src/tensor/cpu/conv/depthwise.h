/* Depthwise 3x3 convolutions of stride 1 or 2, padded by 1. Images are in channel blocks of L
 * floats, the floats of a vector (`lanes`: 8 or 16), and the weight is [C/L][3][3][L]. All tensors
 * are fp32. The result does not depend on the number of threads. */
#ifndef WEFT_TENSOR_CPU_DEPTHWISE_H
#define WEFT_TENSOR_CPU_DEPTHWISE_H

#include "../dnnl/dnnl.h"

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
    /* true: forward applies relu to y */
    bool relu;
    int threads;
} DepthwiseSpec;

/* Owner: the caller. */
Depthwise *depthwise_new(const DepthwiseSpec *spec);
void depthwise_free(Depthwise **depthwise);
size_t depthwise_scratch_bytes(const Depthwise *depthwise);
/* Runs the direction of the spec. data[role]: pointers as in kernel_run. KERNEL_CONV_FORWARD writes
 * Y. KERNEL_CONV_DATA writes X (dx) from Y (dy) and W. KERNEL_CONV_WEIGHT writes W (dw), and B (db)
 * if B is not NULL. scratch: depthwise_scratch_bytes. */
void depthwise_run(const Depthwise *depthwise, void *const data[ROLES], void *scratch);

#endif
