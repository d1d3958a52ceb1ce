/* The optim module's private header: what the files of the rules share. */
#ifndef WEFT_OPTIM_RULES_H
#define WEFT_OPTIM_RULES_H

#include "optim.h"

/* State arena `slot` where piece begins; NULL where its rule holds none. */
float *optim_slot(const Optim *optim, int slot, const OptimPiece *piece);
/* Scratch for piece, which stays between measure, direction and update. */
float *optim_scratch_of(const Optim *optim, const OptimPiece *piece);
/* The rule's weight decay, or 0 for a piece that does not decay. */
float optim_decay(const OptimPiece *piece);
/* Where queued work reads this step's numbers of the piece's rule, or NULL. */
const UpdateNumbers *optim_now(const Optim *optim, const OptimPiece *piece);
/* From measure: x, as long as piece, is what norm number `set` of its range is of. */
void optim_squares(Optim *optim, int set, const OptimPiece *piece, const float *x);
/* body on the piece's parameters and what else is given, in order; memory of the host. What is NULL
 * here is NULL in body, too. */
void optim_each(const Optim *optim, const OptimPiece *piece, ElementBody body, const void *args,
                float *const range[FLAT_RANGES]);

/* adam.c. Adam's 1 - beta^t for the step that has begun. */
void adam_corrections(const Optim *optim, const OptimRule *rule, float *first, float *second);
/* Adam's numbers for the step that has begun; decoupled: AdamW. */
AdamArgs adam_args(const Optim *optim, const OptimPiece *piece, const OptimArgs *args,
                   bool decoupled);
/* A step of Adam or AdamW. */
void adam_step(Optim *optim, const OptimPiece *piece, const OptimArgs *args, bool decoupled);
/* The same for a row: m, v, and how often it has been updated. */
RowState adam_row_state(const OptimConfig *is, int width);
void adam_row_step(const OptimRule *rule, const OptimRowArgs *args, bool decoupled);

/* rules.c, curves.c: the word of row i, as ConfigWords wants it. */
ConfigWord optim_rule_word(int i);
/* "sgd, adam, ...": the rules that can update rows. Owner: the caller. */
char *optim_row_rules(void);
ConfigWord optim_curve_word(int i);

/* whole.c: direction, whole, update of one piece; floats that it needs beside what is stored. */
void optim_step_whole(Optim *optim, const OptimPiece *piece, const OptimArgs *args);
int64_t optim_whole_floats(const OptimTable *table, const OptimTensor *tensor);

#endif
