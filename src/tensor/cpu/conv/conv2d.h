/* The kernels of a convolution, for operations that are made of them: conv2d, and conv_transpose2d,
 * which runs the same kernels with x and y exchanged. */
#ifndef WEFT_TENSOR_CPU_CONV2D_H
#define WEFT_TENSOR_CPU_CONV2D_H

#include "../cpu.h"

/* Desc.block of a convolution's x and y. */
typedef struct ConvBlocks {
    int x, y;
} ConvBlocks;

/* Plans the kernels of the convolution `conv` as op->impl (dnnl/linear.h) and sets the sizes in op.
 * `conv` has the shapes, kernel, stride, pad and groups. Its need_dx[0] is true if the kernel for
 * the gradient of x is needed; its w_count is 2 if the kernels apply the bias. The weight is that
 * of op. Sets *blocks to the chosen layouts of x and y. */
Status conv_plan_linear(Op *op, const OpSpec *conv, ConvBlocks *blocks);

#endif
