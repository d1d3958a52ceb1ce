/* What fit.c says to the rest of the module. */
#ifndef WEFT_TRAIN_FIT_H
#define WEFT_TRAIN_FIT_H

#include "trainer.h"

/* Recomputes (trainer->recompute) where config says so, or where the plan does not fit without. A
 * plan that does not fit in this rank's memory, on its device or on the host, is ERR_CONFIG. Not
 * collective. */
Status memory_fit(Trainer *trainer);

#endif
