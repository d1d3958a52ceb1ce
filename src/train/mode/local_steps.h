/* Functions that modes geo and async share. In both modes each rank makes its steps without other
 * ranks, on its share of each batch, and sums gradients over a communicator of one rank. */
#ifndef WEFT_TRAIN_LOCAL_STEPS_H
#define WEFT_TRAIN_LOCAL_STEPS_H

#include "step_mode.h"

/* Returns ERR_CONFIG if a rank would have no micro-batch of a full batch. Not collective. */
Status local_steps_check(const Trainer *t);
/* Returns true if the rule can update rows of a table and has no state for them. */
bool local_rows_are_stateless(const OptimRule *rule);
/* Returns true if the rule can update a parameter in pieces, each with its own state, as it updates
 * rows of a table. A rule can do this if two numbers are equal: the slots of its state for a row
 * that have one value per element, and the slots of its state for a parameter. */
bool local_can_update_pieces(const OptimRule *rule);
/* Returns, for messages, " with momentum" if the rule has state for parameters but not for rows
 * (sgd); else "". */
const char *local_momentum_words(const OptimRule *rule);
/* Runs the forward and backward passes on this rank's share of the batch
 * (StepMode.forward_backward). */
StepBatch local_forward_backward(Trainer *t);

#endif
