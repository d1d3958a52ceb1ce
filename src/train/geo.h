/* Mode geo (grid.mode): each rank that computes makes steps of its own, on its share of each batch; at
 * borders they add what all have changed, divided by their number. */
#ifndef WEFT_TRAIN_GEO_H
#define WEFT_TRAIN_GEO_H

#include "trainer.h"

/* What it cannot be combined with: ERR_CONFIG. Once the model's rules are known. Not collective. */
Status geo_check(const Trainer *t);
/* Of a run in this mode, once parameters are there. Collective; all ranks agree. */
Status geo_make(Trainer *t);
void geo_free(Trainer *t);
/* What parameters are now is what the next change counts from: before the first step, and where they
 * have been loaded. */
void geo_begin(Trainer *t);
/* Does step number `step` end at a border: every grid.geo_steps, at the end of an epoch, and of the run?
 * true in other modes. */
bool geo_border(const Trainer *t, int64_t step);
/* The step's samples of this rank, and how many of its micro-batches hold one. */
int64_t geo_samples(const Trainer *t, int64_t batch_samples, int *micros);
/* After a step's update: at a border the exchange. What a rank was asked to do is kept for the border,
 * and then known to all. Collective at borders. */
void geo_end_step(Trainer *t, StepResult *result);

#endif
