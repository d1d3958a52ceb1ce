/* The CPU backend's private header. Each operation is one file of this folder or of its parts.
 * dense, conv2d, conv_transpose2d and reorder use oneDNN or weft's own kernels; the other
 * operations use plain loops and weft's vector kernels under simd/. */
#ifndef WEFT_TENSOR_CPU_H
#define WEFT_TENSOR_CPU_H

#include "tensor.h"

extern const FlatTable cpu_flat;

#endif
