/* Modes geo and async (grid.mode): each worker makes steps alone, on its share of each batch, and
 * all workers get the same state at sync points. */
#ifndef WEFT_TRAIN_LOCAL_STEPS_H
#define WEFT_TRAIN_LOCAL_STEPS_H

#include "trainer.h"

/* Checks the batch and the optimizer rules for these modes: ERR_CONFIG. Not collective. */
Status local_check(const Trainer *t);
/* Creates t->local in these modes, after the executor. Collective; all ranks return the same
 * Status. */
Status local_make(Trainer *t);
void local_free(Trainer *t);
/* Starts from the current parameters. Call before the first step and after a load. */
void local_begin(Trainer *t);
/* Call before a step: in mode async, copies the servers' current values. */
void local_begin_step(Trainer *t);
/* In mode async, sends the gradients to the servers, which update, and returns true; in other modes
 * returns false. */
bool local_update(Trainer *t, const StepBatch *batch, double lr, double scale);
/* Returns this rank's number of samples of the step. *micros: its micro-batches that contain a
 * sample. */
int64_t local_samples(const Trainer *t, int64_t batch_samples, int *micros);
/* Gives all ranks the same state at a sync point. Collective. */
void local_join(Trainer *t);

#endif
