/* Mode stale (grid.mode): an update is made grid.staleness steps after its gradients were summed,
 * so that step t computes with the values that step t - 1 - staleness has left. The tables do the
 * same with rows. */
#ifndef WEFT_TRAIN_LATE_UPDATES_H
#define WEFT_TRAIN_LATE_UPDATES_H

#include "trainer.h"

/* What an update is told: the rate, and by what it multiplies gradients. */
typedef struct LateUpdate {
    double lr, scale;
} LateUpdate;

/* Of a run in this mode. Not collective, nor is anything here. */
void late_make(Trainer *t);
void late_free(Trainer *t);
/* What that takes. */
size_t late_bytes(const Trainer *t, const Plan *plan);
/* The step's gradients are summed: keeps them and *now. true: in their place are those of the
 * oldest update, which is to be made now; of other modes always. false: none is due. */
bool late_turn(Trainer *t, LateUpdate *now);
/* Puts the oldest update that is left in the gradients' place; false: none is left. */
bool late_next(Trainer *t, LateUpdate *now);
/* step.c: makes all updates that are left, of parameters and rows. */
void late_catch_up(Trainer *t);

#endif
