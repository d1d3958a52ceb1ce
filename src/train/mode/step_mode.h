/* The modes of grid.mode. A mode is a constant table of functions, which train_step calls. In mode
 * sync all ranks have the same state after each step. In the other modes they have it only at sync
 * points (sync_points.h). A new mode is one file, its row in step_mode.c and its word in
 * table.h. */
#ifndef WEFT_TRAIN_STEP_MODE_H
#define WEFT_TRAIN_STEP_MODE_H

#include "../step/position.h"

/* Arguments of an update: learning rate, factor on the gradients, and number of micro-batches that
 * are summed in the gradients. */
typedef struct UpdateArgs {
    double lr, scale;
    int micros;
} UpdateArgs;

/* A slot that may be NULL does nothing then. */
typedef struct StepMode {
    /* Each rank makes its steps alone: it reads its share of a batch, and its loss, metrics and
     * gradients are those of that share. */
    bool local;
    /* Checks options and optimizer rules that the mode excludes: ERR_CONFIG. Not collective. May be
     * NULL. */
    Status (*check)(const Trainer *t);
    /* Explains for which runs the bits of this mode are the same. Owner: the caller. NULL: for all
     * numbers of ranks that other options allow. */
    char *(*bits_limit)(const Trainer *t);
    /* Create and free the state of the mode, after the executor is made. make is collective. May be
     * NULL. */
    Status (*make)(Trainer *t);
    void (*free)(Trainer *t);
    /* Starts from the current parameters, before the first step and before the first one after a
     * load. May be NULL. */
    void (*start)(Trainer *t);
    /* Called before the passes of a step. May be NULL. */
    void (*begin)(Trainer *t);
    /* Runs the forward and backward passes of the step after t->step and sums the gradients.
     * Returns what the step covered. */
    StepBatch (*forward_backward)(Trainer *t);
    /* Applies the gradients. Not called for a skipped step. */
    void (*update)(Trainer *t, UpdateArgs args);
    /* Called after the update, also of a skipped step: at a sync point, gives all ranks the same
     * state. NULL: each step ends at one. */
    void (*boundary)(Trainer *t, StepResult *result);
} StepMode;

extern const StepMode mode_sync, mode_stale, mode_geo, mode_async;

/* Returns the row of grid.mode. */
const StepMode *step_mode(const Config *config);
/* Checks options that the trainer's mode excludes: ERR_CONFIG. Call after rules are assigned. Not
 * collective. */
Status step_mode_check(const Trainer *t);

/* ---- train_step.c: parts of a step that modes share ---- */

/* Runs the passes on the next micro-batches of this rank and sums the gradients, of `samples`
 * samples over all ranks that t->comm connects. */
StepBatch step_forward_backward(Trainer *t, int64_t samples);
/* Updates the parameters from the gradient arena. */
void step_update_params(Trainer *t, UpdateArgs args);

#endif
