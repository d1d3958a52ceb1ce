/* Depthwise 3x3 convolutions of stride 1 or 2, padded by 1, in channel blocks of a vector: 8 or 16.
 * The weight is in blocks as the images, [C/8][3][3][8], fp32 all. The result of a run depends
 * neither on the number of threads nor on who computes what. */
#ifndef WEFT_TENSOR_CPU_DEPTHWISE_H
#define WEFT_TENSOR_CPU_DEPTHWISE_H

#include "dnnl.h"

typedef struct Depthwise Depthwise;

typedef struct DepthwiseSpec {
    /* of a convolution */
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
/* data[role] as kernel_run has it; ROLE_B may be NULL. */
void depthwise_run(const Depthwise *depthwise, void *const data[ROLES], void *scratch);

#endif
