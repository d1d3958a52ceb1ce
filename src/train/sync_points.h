/* Sync points. In the modes geo, async and stale (grid.mode), all ranks have the same state, with
 * all updates in it, only every grid.geo_steps steps, at the end of an epoch and at the end of the
 * run. Evaluations, checkpoints and stops happen only there. */
#ifndef WEFT_TRAIN_SYNC_POINTS_H
#define WEFT_TRAIN_SYNC_POINTS_H

#include "trainer.h"

/* Checks options that the mode excludes: ERR_CONFIG. Call after rules are assigned. Not
 * collective. */
Status sync_point_check(const Trainer *t);
/* Returns true if step number `step` ends at a sync point; always true in mode sync. */
bool sync_point_at(const Trainer *t, int64_t step);
/* Call before the passes of step number t->step + 1. */
void sync_point_begin_step(Trainer *t);
/* Call after a step's update: at a sync point, gives all ranks the same state. Requests of ranks
 * are kept until then and shared with all ranks. Collective at sync points. */
void sync_point_end_step(Trainer *t, StepResult *result);

#endif
