/* The kernels of a convolution, for operations that are made of them: conv2d, and conv_transpose2d,
 * which runs the same kernels with x and y exchanged. */
#ifndef WEFT_TENSOR_CPU_CONV2D_H
#define WEFT_TENSOR_CPU_CONV2D_H

#include "cpu.h"

/* Desc.block of x and y of a convolution. */
typedef struct ConvBlocks {
    int x, y;
} ConvBlocks;

/* Plans the kernels of convolution `conv` as op->impl (linear.h) and sets the sizes of op. conv has
 * the shapes, kernel, stride, pad and groups, need_dx[0] if the data kernel is needed, and w_count
 * 2 if the kernels have the bias; its weight is that of op. Sets *blocks to the chosen layouts of x
 * and y. */
Status conv_plan_linear(Op *op, const OpSpec *conv, ConvBlocks *blocks);

#endif
