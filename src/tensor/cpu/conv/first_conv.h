/* Direct kernels for a model's first convolution, whose images have too few channels to fill a
 * block: forward and the weight's gradient, on AVX2 (vectors of 8 floats). x is plain, y is in
 * channel blocks of 8, and the weight is [O/8][R][S][C][8 of O] (R, S: rows and columns of the
 * kernel). All tensors are fp32. The result does not depend on the number of threads. */
#ifndef WEFT_TENSOR_CPU_FIRST_CONV_H
#define WEFT_TENSOR_CPU_FIRST_CONV_H

#include "../dnnl/dnnl.h"

typedef struct FirstConvRun FirstConvRun;

typedef struct FirstConvSpec {
    /* KERNEL_CONV_FORWARD or KERNEL_CONV_WEIGHT */
    KernelKind kind;
    /* x is (N,C,H,W); y has O channels, a multiple of 8, and at least FIRST_PIXELS columns */
    int64_t n, c, h, w, o;
    int64_t kernel[2], stride[2], pad[2];
    /* true: forward applies relu to y */
    bool relu;
    int threads;
} FirstConvSpec;

/* Owner: the caller. */
FirstConvRun *first_conv_new(const FirstConvSpec *spec);
void first_conv_free(FirstConvRun **conv);
size_t first_conv_scratch_bytes(const FirstConvRun *conv);
/* Runs the direction of the spec. data[role]: pointers as in kernel_run. KERNEL_CONV_FORWARD writes
 * Y. KERNEL_CONV_WEIGHT writes W (dw), and B (db) if B is not NULL. scratch:
 * first_conv_scratch_bytes. */
void first_conv_run(const FirstConvRun *conv, void *const data[ROLES], void *scratch);

#endif
