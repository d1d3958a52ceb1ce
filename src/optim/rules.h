/* Private header of the optim module: functions that the files of the rules share. */
#ifndef WEFT_OPTIM_RULES_H
#define WEFT_OPTIM_RULES_H

#include "optim.h"

/* Start of the piece in the arena of state slot `slot`; NULL if the piece's rule does not use the
 * slot with its constants, or while row_check.c checks the rule. Ends the job if the slot is not
 * below the rule's .slots. */
float *optim_slot(const Optim *optim, int slot, const OptimPiece *piece);
/* Scratch memory of the piece; its content is kept between measure, direction and update. */
float *optim_scratch_of(const Optim *optim, const OptimPiece *piece);
/* Learning rate of the rule in the update that has begun. */
float optim_lr_of(const Optim *optim, const OptimRule *rule);
/* The rule's weight decay, or 0 for a piece without weight decay. */
float optim_decay(const OptimPiece *piece);
/* Momentum of the rule, not rounded to float, when the fraction `warm` of the warm-up is done; 0 if
 * the rule has no momentum. */
double optim_momentum_at(const OptimRule *rule, double warm);
/* ERR_CONFIG if optim.warmup_bias_lr or optim.warmup_momentum is set without a warm-up, or
 * optim.warmup_momentum without a rule whose momentum is above 0 (curves.c). */
Status warmup_check(const Config *config);
/* Returns the piece's average; .to is NULL without train.ema (average.c). */
Average optim_average_of(const Optim *optim, const OptimPiece *piece);
/* Moves the average of a piece in a pass of its own, for rules without .averages and for running
 * statistics. */
void optim_average_piece(Optim *optim, const OptimPiece *piece, const float *params);
/* Sets average_rate for the update that has begun. */
void optim_average_start_update(Optim *optim);
/* Numbers of the current update for the piece's rule, in memory that queued work reads; NULL if the
 * backend does not record work. */
const UpdateNumbers *optim_now(const Optim *optim, const OptimPiece *piece);
/* Called by measure: adds up the squares of x, float[piece->elements], chunk by chunk, for norm
 * number `set` of the range (OptimArgs.norm[set]). piece: an entry of Optim.piece. */
void optim_add_squares(Optim *optim, int set, const OptimPiece *piece, const float *x);
/* Runs body on the elements of the piece, with these arrays, in host memory. An array may be NULL;
 * body then receives NULL. */
void optim_each(const Optim *optim, const OptimPiece *piece, ElementBody body, const void *args,
                float *const array[FLAT_ARRAYS]);
/* Casts const away, for an array that an ElementBody only reads. */
static inline float *optim_read_only(const float *x)
{
    return (float *)(uintptr_t)x;
}

/* Sets *first and *second to Adam's 1 - beta1^t and 1 - beta2^t, t the number of the update that
 * has begun (adam.c). */
void adam_corrections(const Optim *optim, const OptimRule *rule, float *first, float *second);
/* Adam's numbers for the update that has begun, without an average; decoupled: true for AdamW and
 * LAMB. */
AdamArgs adam_args(const Optim *optim, const OptimPiece *piece, const OptimArgs *args,
                   bool decoupled);
/* An update by Adam or AdamW. */
void adam_step(Optim *optim, const OptimPiece *piece, const OptimArgs *args, bool decoupled);
/* State and update of a row of a sparse table by Adam or AdamW. The state is m, v and the number of
 * the row's updates. */
RowState adam_row_state(const OptimConfig *constants, int width);
void adam_row_step(const OptimRule *rule, const OptimRowArgs *args, bool decoupled);

/* Rule number i of the list, or NULL after the last; its word, for ConfigWords. */
const OptimTable *optim_rule_at(int i);
ConfigWord optim_rule_word(int i);
/* row_check.c. optim_rule_check: ERR_BUG if a rule's table lacks something or contradicts itself.
 * optim_slots_check runs the rule's update on zero elements, and returns ERR_BUG if the update uses
 * other state slots than .slots; it checks nothing if the backend's memory is not the host's. */
Status optim_rule_check(const OptimTable *table);
Status optim_slots_check(const OptimTable *table, Backend *backend);
/* The rules that can update rows, as "sgd, adam, ...". The caller owns the text. */
char *optim_row_rules(void);
/* The word of curve i, for ConfigWords (curves.c). */
ConfigWord optim_curve_word(int i);

/* whole_tensor.c. optim_step_whole calls direction, whole and update for an entry of Optim.piece.
 * optim_whole_floats returns the floats of memory for the whole tensor in plain order and for the
 * rule's scratch. */
void optim_step_whole(Optim *optim, const OptimPiece *piece, const OptimArgs *args);
int64_t optim_whole_floats(const OptimTable *table, const OptimTensor *tensor);

#endif
