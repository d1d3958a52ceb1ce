/* Functions of OpTable for cross-entropy: with a label for each pixel of (N,C,H,W), for
 * softmax_loss and focal_loss, and with a label for each row of (N,K), for focal_loss. */
#ifndef WEFT_CUDA_PIXEL_LOSS_H
#define WEFT_CUDA_PIXEL_LOSS_H

#include "../cuda.h"

/* Returns whether the operation is a softmax_loss with a label for each pixel. */
bool cuda_has_pixels(const OpSpec *spec);
Status cuda_pixel_plan(Op *op, Desc preferred[SPEC_INPUTS]);
void cuda_pixel_forward(Op *op, const OpRun *run);
void cuda_pixel_backward(Op *op, const OpRun *run);

#endif
