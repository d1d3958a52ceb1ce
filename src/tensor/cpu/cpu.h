/* The CPU backend's private header. Most operations are one file each, in this folder or in a
 * subfolder. dense, conv2d, conv_transpose2d and reorder use oneDNN or weft's own kernels; the
 * other operations use plain loops and weft's vector kernels under simd/. */
#ifndef WEFT_TENSOR_CPU_H
#define WEFT_TENSOR_CPU_H

#include "tensor.h"

extern const FlatTable cpu_flat;

#endif
