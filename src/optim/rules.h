/* Private header of the optim module: functions that the files of the rules share. */
#ifndef WEFT_OPTIM_RULES_H
#define WEFT_OPTIM_RULES_H

#include "optim.h"

/* Records which memory and functions a rule has used, while row_check.c checks the rule. */
typedef struct OptimUses {
    /* a bit for each state slot */
    unsigned slots;
    /* true: optim_scratch_of was called */
    bool scratch;
    /* true: optim_each was called */
    bool each;
} OptimUses;
/* Returns the piece's part of state slot `slot`. Returns NULL if the piece's rule does not use the
 * slot with its constants, and while row_check.c checks the rule. Ends the job if the slot's number
 * is not below the rule's .slots. */
float *optim_slot(const Optim *optim, int slot, const OptimPiece *piece);
/* Returns the scratch memory of the piece. Its content is kept from measure or direction to
 * update. */
float *optim_scratch_of(const Optim *optim, const OptimPiece *piece);
/* Returns the learning rate of the rule in the update that has begun. */
float optim_lr_of(const Optim *optim, const OptimRule *rule);
/* Returns the rule's weight decay, or 0 if weight decay does not apply to the piece. */
float optim_decay(const OptimPiece *piece);
/* Returns the rule's momentum when the fraction `warm` of the warm-up is done, not rounded to
 * float; 0 if the rule has no momentum. */
double optim_momentum_at(const OptimRule *rule, double warm);
/* Returns ERR_CONFIG if optim.warmup_bias_lr or optim.warmup_momentum is set without a warm-up, or
 * if optim.warmup_momentum is set and no rule has a momentum above 0 (curves.c). */
Status warmup_check(const Config *config);
/* Returns the piece's part of the average; NULL without train.ema (average.c). */
float *optim_average_of(const Optim *optim, const OptimPiece *piece);
/* Moves the average of a piece in a pass of its own, for rules without update_pieces and for
 * running statistics. */
void optim_average_piece(Optim *optim, const OptimPiece *piece, const float *params);
/* Sets Optim.average_rate for the update that has begun. */
void optim_average_start_update(Optim *optim);
/* Returns the numbers of the rule in the update that has begun, in memory that queued work reads;
 * NULL if the backend does not record work. */
const UpdateNumbers *optim_numbers_of(const Optim *optim, const OptimRule *rule);
/* Computes the sum of squares of each chunk of x, float[piece->elements], for OptimArgs.norm[set].
 * A rule's measure calls it. piece: an entry of Optim.piece. */
void optim_add_squares(Optim *optim, int set, const OptimPiece *piece, const float *x);
/* Calls `body` for all elements of the piece, in parts. array: arrays in host memory that begin
 * with the piece's first element; for an array that is NULL, body receives NULL. */
void optim_each(const Optim *optim, const OptimPiece *piece, ElementBody body, const void *args,
                float *const array[FLAT_ARRAYS]);
/* Casts const away, for an array that an ElementBody only reads. */
static inline float *optim_read_only(const float *x)
{
    return (float *)(uintptr_t)x;
}

/* ---- pieces (pieces.c) ---- */
/* Sets Optim.piece, Optim.chunk, and the sizes of the arenas. arena_elements: as in optim_new. */
void optim_make_pieces(Optim *optim, int64_t arena_elements);
/* Sets Optim.joined and Optim.joined_statistic. May be called again when pieces have changed. */
void optim_join_pieces(Optim *optim);

/* ---- Adam (adam.c); decoupled: true for AdamW and LAMB, whose weight decay is decoupled ---- */
/* Sets *first to 1 - beta1^t and *second to 1 - beta2^t, where t is the number of the update that
 * has begun. */
void adam_corrections(const Optim *optim, const OptimRule *rule, float *first, float *second);
/* Returns the arguments of Adam's kernel for the update that has begun. */
AdamArgs adam_args(const Optim *optim, const OptimRule *rule, bool decoupled);
/* OptimTable.update_pieces of Adam and AdamW. */
void adam_step(Optim *optim, const OptimRule *rule, const UpdatePiece *piece, int count,
               bool decoupled);
/* OptimTable.row_state and .row_update of Adam and AdamW. The state is m, v and the number of the
 * row's updates. */
RowState adam_row_state(const OptimConfig *constants, int width);
void adam_row_step(const OptimRule *rule, const OptimRowArgs *args, bool decoupled);

/* ---- lists of rules and curves, and their checks ---- */
/* Returns rule number i of the list, or NULL after the last. */
const OptimTable *optim_rule_at(int i);
/* Returns the word of that rule, for ConfigWords. */
ConfigWord optim_rule_word(int i);
/* Returns ERR_BUG if a rule's table lacks something or contradicts itself (row_check.c). */
Status optim_rule_check(const OptimTable *table);
/* Runs the rule's update on a piece without elements. Returns ERR_BUG if the rule uses other state
 * slots than .slots says, or if its .scratch, .average or .devices contradict what it uses. Checks
 * nothing if the backend's memory is not the host's (row_check.c). */
Status optim_slots_check(const OptimTable *table, Backend *backend);
/* Returns the names of the rules that can update rows, "sgd, adam, ...". The caller owns the
 * text. */
char *optim_row_rules(void);
/* Returns the word of curve number i, for ConfigWords (curves.c). */
ConfigWord optim_curve_word(int i);

/* ---- rules on whole tensors (whole_tensor.c) ---- */
/* Calls direction, whole and update for an entry of Optim.piece. */
void optim_step_whole(Optim *optim, const OptimPiece *piece, const OptimArgs *args);
/* Returns the number of floats for the whole tensor in plain order and for the rule's work on
 * it. */
int64_t optim_whole_floats(const OptimTable *table, const OptimTensor *tensor);

#endif
