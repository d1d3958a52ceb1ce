/* fp16's loss scale (see LossScale). */
#ifndef WEFT_TRAIN_LOSS_SCALE_H
#define WEFT_TRAIN_LOSS_SCALE_H

#include "trainer.h"

void loss_scale_init(LossScale *scale, const Config *config);
/* After step number `step`: a factor for the next one, said where it changes. ERR_DATA where it
 * would fall below 2^-24: the gradients themselves are too large. Not collective: every rank comes
 * to the same. */
Status loss_scale_move(LossScale *scale, const Config *config, int64_t step, bool overflow);

#endif
