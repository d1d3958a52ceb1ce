/* Sync points. In modes geo, async and stale (grid.mode), all ranks have the same state, with all
 * updates in it, only every grid.geo_steps steps, at the end of an epoch and at the end of the run.
 * Evaluations, checkpoints and stops happen only there. */
#ifndef WEFT_TRAIN_SYNC_POINTS_H
#define WEFT_TRAIN_SYNC_POINTS_H

#include "step_mode.h"

/* Returns true if step number `step` ends at a sync point; always true in mode sync. */
bool sync_point_at(const Trainer *t, int64_t step);
/* Call before the forward pass of a step: tells the tables whether it ends at a sync point. */
void sync_point_announce(Trainer *t);
/* Takes the results of a step after its update: ends the job if the step is bad, because these
 * modes cannot skip a step, and moves its stop, save and hook requests from *result to the trainer,
 * until the next sync point. Returns true if the step ends at a sync point. Not collective. */
bool sync_point_take_step(Trainer *t, StepResult *result);
/* Call at a sync point: sets the stop, save and hook requests in *result to those that any rank has
 * made since the previous one. Collective. */
void sync_point_share_requests(Trainer *t, StepResult *result);

#endif
