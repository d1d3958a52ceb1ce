/* Depthwise 3x3 convolutions of stride 1 or 2, padded by 1, in channel blocks of one vector: 8 or
 * 16. The weight is in the same blocks, [C/8][3][3][8]; all is fp32. The result depends neither on
 * the number of threads nor on which thread computes which part. */
#ifndef WEFT_TENSOR_CPU_DEPTHWISE_H
#define WEFT_TENSOR_CPU_DEPTHWISE_H

#include "dnnl.h"

typedef struct Depthwise Depthwise;

typedef struct DepthwiseSpec {
    /* KERNEL_CONV_FORWARD, KERNEL_CONV_DATA or KERNEL_CONV_WEIGHT */
    KernelKind kind;
    /* N C H W; C a multiple of lanes, stride 1 or 2 */
    int64_t n, c, h, w;
    int lanes, stride;
    /* forward: y = max(y, 0) */
    bool relu;
    int threads;
} DepthwiseSpec;

/* Owner: the caller. */
Depthwise *depthwise_new(const DepthwiseSpec *spec);
void depthwise_free(Depthwise **depthwise);
size_t depthwise_scratch_bytes(const Depthwise *depthwise);
/* data[role]: pointers as in kernel_run; ROLE_B may be NULL. */
void depthwise_run(const Depthwise *depthwise, void *const data[ROLES], void *scratch);

#endif
