/* Functions that modes geo and async share. In both each rank makes its steps alone, on its share
 * of each batch, over a communicator of one rank. */
#ifndef WEFT_TRAIN_LOCAL_STEPS_H
#define WEFT_TRAIN_LOCAL_STEPS_H

#include "step_mode.h"

/* Returns ERR_CONFIG if a rank would have no micro-batch of a full batch. Not collective. */
Status local_steps_check(const Trainer *t);
/* Returns the number of state slots that the rule has for a row of a table. elementwise: counts
 * only slots with one value for each element of the row. -1: the rule cannot update rows. */
int local_row_slots(const OptimRule *rule, bool elementwise);
/* Returns " with momentum" for a rule that has state for parameters but not for rows (sgd); else
 * "". For messages. */
const char *local_momentum_words(const OptimRule *rule);
/* StepMode.forward_backward on this rank's share of the batch. */
StepBatch local_forward_backward(Trainer *t);

#endif
