/* Deferred updates of mode stale (grid.mode): an update is made grid.staleness steps after its
 * gradients were summed, so step t computes with the values that step t - 1 - staleness has left.
 * Tables defer updates of rows alike. */
#ifndef WEFT_TRAIN_DEFERRED_UPDATES_H
#define WEFT_TRAIN_DEFERRED_UPDATES_H

#include "trainer.h"

/* Arguments of an update: learning rate, and factor on the gradients. */
typedef struct UpdateArgs {
    double lr, scale;
} UpdateArgs;

/* Creates t->deferred in mode stale. No function here is collective. */
void deferred_updates_make(Trainer *t);
void deferred_updates_free(Trainer *t);
/* Bytes of the deferred gradients. */
size_t deferred_updates_bytes(const Trainer *t, const Plan *plan);
/* Call after a step's gradients are summed: stores them with *now. Returns true if an update is
 * due: then the gradient arena and *now are those of the oldest one. In other modes leaves both and
 * returns true. */
bool deferred_update_due(Trainer *t, UpdateArgs *now);
/* Puts the oldest deferred gradients into the gradient arena and sets *now; returns false if none
 * is left. */
bool deferred_update_next(Trainer *t, UpdateArgs *now);
/* train_step.c: makes all deferred updates, of parameters and of rows. */
void deferred_updates_finish(Trainer *t);

#endif
