/* The modes of grid.mode. A mode is a constant table of functions, which train_step calls. In mode
 * sync all ranks have the same state after each step. In the other modes they have the same state
 * only at sync points (sync_points.h). To add a mode, add one file, its name below, its entry in
 * step_mode.c and its word in table.h. */
#ifndef WEFT_TRAIN_STEP_MODE_H
#define WEFT_TRAIN_STEP_MODE_H

#include "../step/position.h"

typedef struct UpdateArgs {
    UpdateRates rates;
    /* factor by which the update multiplies the gradients */
    double scale;
    /* number of micro-batches whose gradients are summed; 0: this rank had no samples */
    int micro_batches;
} UpdateArgs;

/* Whether ranks make their steps together. */
typedef enum StepRanks {
    /* the mode does not set the field, which is an error */
    STEP_RANKS_UNSET,
    /* yes: the loss, the metrics and the gradients of a step are those of the whole batch */
    STEP_RANKS_TOGETHER,
    /* no: each rank makes its steps without waiting for other ranks. It reads its share of a batch,
     * and its loss, metrics and gradients are those of this share. */
    STEP_RANKS_ALONE,
} StepRanks;

/* A function may be NULL only if its comment says so. */
typedef struct StepMode {
    StepRanks ranks;
    /* Checks options and optimizer rules that the mode excludes: ERR_CONFIG. Not collective. May be
     * NULL. */
    Status (*check)(const Trainer *t);
    /* Explains, for the log, which runs give the same bits in this mode. Owner: the caller. NULL:
     * the mode adds no condition to those of other options. */
    char *(*bits_limit)(const Trainer *t);
    /* Creates the state of the mode, after the executor is made. Collective. May be NULL. */
    Status (*make)(Trainer *t);
    /* Frees the state of the mode, if there is one. NULL if `make` is NULL. */
    void (*free)(Trainer *t);
    /* Copies the current parameters to the places where the mode needs them. Called by
     * train_begin_steps when it opens the loader: before the first step, and before the next step
     * after a load. May be NULL. */
    void (*start)(Trainer *t);
    /* Called before the forward pass of a step. May be NULL. */
    void (*begin)(Trainer *t);
    /* Runs the forward and backward passes of the step after t->step and sums the gradients.
     * Returns the step's values that later parts of the step need. */
    StepBatch (*forward_backward)(Trainer *t);
    /* Returns the sum of squares of the gradients that are not in the gradient arena: those of
     * rows of sparse tables. Collective. NULL: there are no such gradients, or the mode never
     * clips. */
    double (*row_grad_squares)(Trainer *t);
    /* Applies the gradients. Not called for a skipped step. */
    void (*update)(Trainer *t, UpdateArgs args);
    /* Called after the update, also in a skipped step. At a sync point, gives all ranks the same
     * state, and sets the requests in *result to those of all ranks. NULL: all ranks have the same
     * state after each step; never NULL with STEP_RANKS_ALONE. */
    void (*after_update)(Trainer *t, StepResult *result);
} StepMode;

/* mode_sync_tables: mode sync for models with sparse tables */
extern const StepMode mode_sync, mode_sync_tables, mode_stale, mode_geo, mode_async;

/* Returns the functions of grid.mode. tables: true if the model has sparse tables. */
const StepMode *step_mode(const Config *config, bool tables);
/* Returns ERR_BUG, naming the slot, if a mode lacks something. word: the mode's word. */
Status step_mode_row_check(const char *word, const StepMode *mode);
/* Checks the rows of all modes with step_mode_row_check. */
Status step_modes_check(void);
/* Returns whether each rank makes its steps alone. */
static inline bool step_mode_is_local(const StepMode *mode)
{
    return mode->ranks == STEP_RANKS_ALONE;
}
/* Checks options that the trainer's mode excludes: ERR_CONFIG. Call it after rules are assigned.
 * Not collective. */
Status step_mode_check(const Trainer *t);

/* ---- train_step.c: parts of a step that modes share ---- */

/* Runs the forward and backward passes on this rank's next micro-batches and sums the gradients
 * over the ranks that t->comm connects. samples: number of samples on those ranks together. */
StepBatch step_forward_backward(Trainer *t, int64_t samples);
/* Updates the parameters from the gradient arena. */
void step_update_params(Trainer *t, UpdateArgs args);

#endif
