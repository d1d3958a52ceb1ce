/* Sync points. In modes geo, async and stale (grid.mode), all ranks have the same state, including
 * all updates, only at these points: after every grid.geo_steps steps, at the end of an epoch and
 * at the end of the run. Evaluations, checkpoints and stops on request happen only at sync
 * points. */
#ifndef WEFT_TRAIN_SYNC_POINTS_H
#define WEFT_TRAIN_SYNC_POINTS_H

#include "step_mode.h"

/* Returns true if step number `step` ends at a sync point; always true in mode sync. */
bool sync_point_at(const Trainer *t, int64_t step);
/* Lets the tables know whether the next step ends at a sync point. Call it before the forward pass
 * of a step. */
void sync_point_announce(Trainer *t);
/* Handles the results of a step after its update. If the step is bad, ends the job, because these
 * modes cannot skip a step. Moves the step's stop, save and hook requests from *result to the
 * trainer, where they wait for the next sync point. Returns true if the step ends at a sync point.
 * Not collective. */
bool sync_point_take_step(Trainer *t, StepResult *result);
/* Call it at a sync point. Sets the stop, save and hook requests in *result to those that any rank
 * has made since the previous sync point. Collective. */
void sync_point_share_requests(Trainer *t, StepResult *result);

#endif
