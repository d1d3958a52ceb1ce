/* The dynamic loss scale of fp16 (LossScale in trainer.h). */
#ifndef WEFT_TRAIN_LOSS_SCALE_H
#define WEFT_TRAIN_LOSS_SCALE_H

#include "../trainer.h"

void loss_scale_init(LossScale *scale, const Config *config);
/* Sets LossScale.last, adapts the factor for the next step and logs changes. Call it after the
 * backward pass of step number `step`. overflow: true if a gradient overflowed. Returns ERR_DATA if
 * the factor would fall below 2^-24, because the gradients themselves are then too large. Not
 * collective: every rank computes the same factor. */
Status loss_scale_update(LossScale *scale, const Config *config, int64_t step, bool overflow);

#endif
