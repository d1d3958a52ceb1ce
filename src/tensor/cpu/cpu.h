/* The CPU backend's private header: its operations (one file each) and the vector kernels they
 * call. Operations on oneDNN: dense, conv2d, reorder; everything else is own code under simd/,
 * compiled once per instruction set. */
#ifndef WEFT_TENSOR_CPU_H
#define WEFT_TENSOR_CPU_H

#include "tensor.h"

extern const FlatTable cpu_flat;

#endif
