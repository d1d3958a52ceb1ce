/* The gradient of a fused activation. */
#ifndef WEFT_TENSOR_CPU_MASK_H
#define WEFT_TENSOR_CPU_MASK_H

#include "cpu.h"

/* Multiplies dy by the derivative of `act`, relu or relu6, computed from the output y: dy becomes 0
 * where y is 0 or, with relu6, 6. layout: that of dy and of y. Operations with a fused activation
 * call it in backward_begin, except norms and max pooling, which save where the activation clipped
 * its input. */
void mask_gradient(Act act, void *dy, const void *y, Desc layout);

#endif
