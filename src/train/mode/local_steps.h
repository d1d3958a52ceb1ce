/* The common part of modes geo and async: each rank makes its steps alone, on its share of each
 * batch, over a communicator of one rank. */
#ifndef WEFT_TRAIN_LOCAL_STEPS_H
#define WEFT_TRAIN_LOCAL_STEPS_H

#include "step_mode.h"

/* Checks that each rank has a share of each batch: ERR_CONFIG. Not collective. */
Status local_steps_check(const Trainer *t);
/* Returns the number of state slots of a row, or (each) only of those with one value for each
 * number of the row; -1: the rule cannot update rows. */
int local_row_slots(const OptimRule *rule, bool each);
/* Returns words for a message about a rule by which a row has no state but a parameter has; else
 * "". */
const char *local_momentum_words(const OptimRule *rule);
/* StepMode.forward_backward on this rank's share of the batch. */
StepBatch local_forward_backward(Trainer *t);

#endif
