/* Loss scale of fp16 (see LossScale). */
#ifndef WEFT_TRAIN_LOSS_SCALE_H
#define WEFT_TRAIN_LOSS_SCALE_H

#include "../trainer.h"

void loss_scale_init(LossScale *scale, const Config *config);
/* Call after step number `step`: adapts the factor for the next step and logs changes. Returns
 * ERR_DATA if it would fall below 2^-24, because then the gradients themselves are too large. Not
 * collective: every rank computes the same factor. */
Status loss_scale_update(LossScale *scale, const Config *config, int64_t step, bool overflow);

#endif
