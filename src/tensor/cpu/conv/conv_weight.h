/* The gradient of the weight of a convolution without groups, on AVX2 and AVX-512. With L floats in
 * a vector, x and y are in channel blocks of L, and the weight is [O/L][C/L][R][S][L of C][L of O]
 * (R, S: rows and columns of the kernel). All tensors are fp32. The result does not depend on the
 * number of threads. */
#ifndef WEFT_TENSOR_CPU_CONV_WEIGHT_H
#define WEFT_TENSOR_CPU_CONV_WEIGHT_H

#include "../dnnl/dnnl.h"

typedef struct ConvWeightRun ConvWeightRun;

typedef struct ConvWeightSpec {
    /* x is (N,C,H,W), y has O channels */
    int64_t n, c, h, w, o;
    int64_t kernel[2], stride[2], pad[2];
} ConvWeightSpec;

/* Owner: the caller. */
ConvWeightRun *conv_weight_new(const ConvWeightSpec *spec);
void conv_weight_free(ConvWeightRun **run);
/* Returns the bytes of scratch for one call of conv_weight_run. */
size_t conv_weight_scratch_bytes(const ConvWeightRun *run);
/* Computes the gradient. data[role]: pointers as in kernel_run. Writes W (dw), and B (db) if B is
 * not NULL. */
void conv_weight_run(const ConvWeightRun *run, void *const data[ROLES], void *scratch);

/* Writes the bias's gradient db[lanes] of block `block` of channels: the sums of the block's planes
 * of dy, added in double. dy is [n][blocks][pixels][lanes]. */
void conv_bias_gradient(const float *dy, int64_t n, int64_t blocks, int64_t pixels, int lanes,
                        int64_t block, float *db);
/* Writes the bias's gradient db[o] of all channels, which are in blocks of `lanes`. */
void conv_bias_gradients(const float *dy, int64_t n, int64_t o, int64_t pixels, int lanes,
                         float *db);

#endif
