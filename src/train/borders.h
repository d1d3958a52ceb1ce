/* Borders: modes other than sync (grid.mode) have one state of all ranks, with all updates in it,
 * every grid.geo_steps steps, at the end of an epoch, and of the run. Only there are runs
 * evaluated, saved, stopped. */
#ifndef WEFT_TRAIN_BORDERS_H
#define WEFT_TRAIN_BORDERS_H

#include "trainer.h"

/* What the mode cannot be combined with: ERR_CONFIG. Once the model's rules are known. Not
 * collective. */
Status border_check(const Trainer *t);
/* Does step number `step` end at a border? true in mode sync. */
bool border_at(const Trainer *t, int64_t step);
/* Before the passes of step number t->step + 1. */
void border_begin_step(Trainer *t);
/* After a step's update: at a border all ranks come to have the same. What a rank was asked to do
 * is kept for the border, and then known to all. Collective at borders. */
void border_end_step(Trainer *t, StepResult *result);

#endif
