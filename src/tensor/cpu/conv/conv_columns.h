/* Convolutions of any shape and any number of groups, forward and both gradients, by weft's matrix
 * product for AVX2. With train.cpu: portable they are used where weft has no faster kernel. All
 * tensors are fp32. x and y are plain, or in channel blocks of 8 if there is one group. The weight
 * is plain, or [O][C/8][R][S][8 of C] if x is in blocks (R, S: rows and columns of the kernel). The
 * result does not depend on the number of threads. */
#ifndef WEFT_TENSOR_CPU_CONV_COLUMNS_H
#define WEFT_TENSOR_CPU_CONV_COLUMNS_H

#include "../dnnl/dnnl.h"

typedef struct ConvColumnsRun ConvColumnsRun;

typedef struct ConvColumnsSpec {
    /* KERNEL_CONV_FORWARD, KERNEL_CONV_DATA or KERNEL_CONV_WEIGHT */
    KernelKind kind;
    /* x is (N,C,H,W), y is (N,O,P,Q) */
    int64_t n, c, h, w, o, p, q, groups;
    int64_t kernel[2], stride[2], pad[2];
    /* channels in a block of x, and in a block of y: 1 or 8 */
    int x_block, y_block;
    /* true: forward applies relu to y */
    bool relu;
    int threads;
} ConvColumnsSpec;

/* Owner: the caller. */
ConvColumnsRun *conv_columns_new(const ConvColumnsSpec *spec);
void conv_columns_free(ConvColumnsRun **run);
size_t conv_columns_scratch_bytes(const ConvColumnsRun *run);
/* Runs the direction of the spec. data[role]: pointers as in kernel_run. KERNEL_CONV_FORWARD writes
 * Y. KERNEL_CONV_DATA writes X (dx) from Y (dy) and W. KERNEL_CONV_WEIGHT writes W (dw), and B (db)
 * if B is not NULL. scratch: conv_columns_scratch_bytes, aligned to 64 bytes. */
void conv_columns_run(const ConvColumnsRun *run, void *const data[ROLES], void *scratch);

#endif
