/* The gradient of a fused activation. */
#ifndef WEFT_TENSOR_CPU_MASK_H
#define WEFT_TENSOR_CPU_MASK_H

#include "cpu.h"

/* Multiplies dy by the derivative of act, relu or relu6, which follows from the output y: dy
 * becomes 0 where y is a bound. dy and y have the layout `like`. For backward_begin of fused
 * activations. */
void mask_gradient(Act act, void *dy, const void *y, Desc like);

#endif
