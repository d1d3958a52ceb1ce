/* The gradient of a fused activation. */
#ifndef WEFT_TENSOR_CPU_MASK_H
#define WEFT_TENSOR_CPU_MASK_H

#include "cpu.h"

/* Sets dy to 0 where act cut its input, judged by the output y; both have the layout `like`. Used
 * in backward_begin of fused relu and relu6. */
void mask_gradient(Act act, void *dy, const void *y, Desc like);

#endif
