/* The modes of grid.mode. A mode is a constant table of functions, StepMode, which says who calls
 * them. In mode sync all ranks have the same state after each step. In the other modes they have
 * the same state only at sync points (sync_points.h).
 *
 * To add a mode, add one file, its name below, its entry in step_mode.c, and its word in
 * UPDATE_MODE_WORDS (include/table.h). If the mode sets STEP_RANKS_ALONE, also add its constant to
 * update_mode_is_local (include/table.h); step_modes_check compares the two. */
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

/* The functions of a mode. train_step calls begin, forward_backward, update and after_update, in
 * this order; the comments name the callers of the others. A member may be NULL only if its comment
 * says so. */
typedef struct StepMode {
    StepRanks ranks;
    /* Checks options and optimizer rules that the mode excludes: ERR_CONFIG. Called by
     * step_mode_check, which does not call it in mode sync. Not collective. The member may be
     * NULL. */
    Status (*check)(const Trainer *t);
    /* Explains, for the log, which runs give the same bits in this mode. Called by
     * train_bits_limit. Owner of the text: the caller. The member is NULL if the mode adds no
     * condition to those of other options. */
    char *(*bits_limit)(const Trainer *t);
    /* Creates the state of the mode, after the executor is made (trainer.c). Collective. The member
     * may be NULL. */
    Status (*make)(Trainer *t);
    /* Frees the state of the mode, if there is one (trainer.c). The member is NULL if `make` is
     * NULL. */
    void (*free)(Trainer *t);
    /* Copies the current parameters to the places where the mode needs them. Called by
     * train_begin_steps each time that it opens the loader, such as before the first step and after
     * a load. The member may be NULL. */
    void (*start)(Trainer *t);
    /* Called before the forward pass of a step. The member may be NULL. */
    void (*begin)(Trainer *t);
    /* Runs the forward and backward passes of step number t->step + 1 and sums the gradients.
     * Returns the step's values that later parts of the step need. Also called by
     * train_repeat_step. */
    StepBatch (*forward_backward)(Trainer *t);
    /* Returns the sum of squares of the gradients that are not in the gradient arena: those of rows
     * of sparse tables. Called by train_grad_norm. Collective. The member is NULL if there are no
     * such gradients, or if the mode never clips. */
    double (*row_grad_squares)(Trainer *t);
    /* Applies the gradients. Not called for a skipped step. */
    void (*update)(Trainer *t, UpdateArgs args);
    /* Called after the update, also in a skipped step. At a sync point, gives all ranks the same
     * state, and sets the requests in *result to those of all ranks. The member is NULL if all
     * ranks have the same state after each step; it is never NULL with STEP_RANKS_ALONE. */
    void (*after_update)(Trainer *t, StepResult *result);
} StepMode;

/* mode_sync_tables: mode sync for models with sparse tables */
extern const StepMode mode_sync, mode_sync_tables, mode_stale, mode_geo, mode_async;

/* Returns the functions of grid.mode. tables: true if the model has sparse tables. */
const StepMode *step_mode(const Config *config, bool tables);
/* Returns ERR_BUG, naming the member, if a mode lacks a member that must be set. word: the mode's
 * word. */
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
