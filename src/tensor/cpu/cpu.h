/* The CPU backend's private header. Each operation is one file here; dense, conv2d and reorder use
 * oneDNN, the others call vector kernels under simd/, which are compiled once per instruction
 * set. */
#ifndef WEFT_TENSOR_CPU_H
#define WEFT_TENSOR_CPU_H

#include "tensor.h"

extern const FlatTable cpu_flat;

#endif
