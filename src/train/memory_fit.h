/* Checks that the plan fits into memory (memory_fit.c). */
#ifndef WEFT_TRAIN_MEMORY_FIT_H
#define WEFT_TRAIN_MEMORY_FIT_H

#include "trainer.h"

/* Sets trainer->recompute if the configuration requires recomputation or, with grid.recompute=auto,
 * if the plan does not fit without it. Also sets trainer->table_limit and
 * trainer->saves_in_background. Returns ERR_CONFIG if the plan of any stage does not fit into this
 * rank's memory, on its device or on the host. Not collective. */
Status memory_fit(Trainer *trainer);

#endif
