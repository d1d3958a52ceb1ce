/* Interface of fit.c. */
#ifndef WEFT_TRAIN_FIT_H
#define WEFT_TRAIN_FIT_H

#include "trainer.h"

/* Sets trainer->recompute if the configuration requires recomputation, or if the plan does not fit
 * without. Returns ERR_CONFIG if the plan does not fit in this rank's memory, on its device or on
 * the host. Not collective. */
Status memory_fit(Trainer *trainer);

#endif
