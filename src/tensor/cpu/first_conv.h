/* A model's first convolution, whose images have too few channels for a block, directly: forward
 * and the weight's gradient, for processors whose vectors have 8 floats. x is plain, y in channel
 * blocks of 8, the weight as [O/8][R][S][C][8 of O], fp32 all. The result of a run depends neither
 * on the number of threads nor on who computes what. */
#ifndef WEFT_TENSOR_CPU_FIRST_CONV_H
#define WEFT_TENSOR_CPU_FIRST_CONV_H

#include "dnnl.h"

typedef struct FirstConvRun FirstConvRun;

typedef struct FirstConvSpec {
    /* KERNEL_CONV_FORWARD or KERNEL_CONV_WEIGHT */
    KernelKind kind;
    /* N C H W; O a multiple of 8, rows of y no narrower than FIRST_PIXELS */
    int64_t n, c, h, w, o;
    int64_t kernel[2], stride[2], pad[2];
    /* forward: y = max(y, 0) */
    bool relu;
    int threads;
} FirstConvSpec;

/* Owner: the caller. */
FirstConvRun *first_conv_new(const FirstConvSpec *spec);
void first_conv_free(FirstConvRun **conv);
size_t first_conv_scratch_bytes(const FirstConvRun *conv);
/* data[role] as kernel_run has it; ROLE_B may be NULL. */
void first_conv_run(const FirstConvRun *conv, void *const data[ROLES], void *scratch);

#endif
