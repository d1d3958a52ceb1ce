/* The exponential moving average of parameters and running statistics (train.ema). */
#ifndef WEFT_TRAIN_AVERAGE_H
#define WEFT_TRAIN_AVERAGE_H

#include "trainer.h"

/* Returns ERR_CONFIG if train.ema is set and the model cannot have an average. */
Status average_check(const Trainer *t);
/* Exchanges the parameters and running statistics with their averages, in place. A second call
 * restores all of them, bit by bit. Does nothing without train.ema. Collective. */
void average_swap(Trainer *t);

#endif
