/* Modes geo and async (grid.mode): each rank that computes makes steps of its own, on its share of
 * each batch, and at borders all meet. */
#ifndef WEFT_TRAIN_LOCAL_STEPS_H
#define WEFT_TRAIN_LOCAL_STEPS_H

#include "trainer.h"

/* Rules of updates that it cannot have: ERR_CONFIG. Not collective. */
Status local_check(const Trainer *t);
/* Of a run in this mode, once parameters are there. Collective; all ranks agree. */
Status local_make(Trainer *t);
void local_free(Trainer *t);
/* What parameters are now is what the next change counts from: before the first step, and where
 * they have been loaded. */
void local_begin(Trainer *t);
/* Before a step: mode async takes the servers' values of now. */
void local_begin_step(Trainer *t);
/* In place of an update: mode async sends the gradients. false: another mode's. */
bool local_update(Trainer *t, const StepOf *batch, double lr, double scale);
/* The step's samples of this rank, and how many of its micro-batches hold one. */
int64_t local_samples(const Trainer *t, int64_t batch_samples, int *micros);
/* At a border: all ranks come to have the same. Collective. */
void local_join(Trainer *t);

#endif
