/* The CPU backend's private header: its operations (one file each) and the vector kernels they call. Operations on oneDNN:
 * dense, conv2d, reorder; everything else is own code under simd/, compiled once per instruction set. */
#ifndef WEFT_TENSOR_CPU_H
#define WEFT_TENSOR_CPU_H

#include "tensor.h"

extern const OpTable cpu_dense, cpu_conv2d, cpu_reorder; /* dnnl.c and its users */
extern const OpTable cpu_batch_norm, cpu_layer_norm, cpu_activation, cpu_pool, cpu_add, cpu_concat,
    cpu_flatten, cpu_dropout, cpu_embedding, cpu_positions, cpu_attention, cpu_softmax_loss,
    cpu_mse_loss, cpu_exchange, cpu_rms_norm, cpu_group_norm, cpu_swiglu;
extern const FlatTable cpu_flat;

#endif
