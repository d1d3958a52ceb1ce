/* The optim module's private header: the tables of the update rules, and what their files share. */
#ifndef WEFT_OPTIM_RULES_H
#define WEFT_OPTIM_RULES_H

#include "optim.h"

extern const OptimTable optim_sgd, optim_adam, optim_adamw, optim_lars, optim_lamb;

/* State arena `slot` where piece begins; NULL where config's rule holds none. */
float *optim_slot(const Optim *optim, int slot, const OptimPiece *piece);
/* Scratch for piece, which stays between measure and update. */
float *optim_scratch_of(const Optim *optim, const OptimPiece *piece);
/* The config's weight decay, or 0 for a piece that does not decay. */
float optim_decay(const Optim *optim, const OptimPiece *piece);
/* Adam's 1 - beta^t for the step that has begun. */
void adam_corrections(const Optim *optim, float *first, float *second);
/* From measure: x, as long as piece, is what norm number `set` of its range is of. */
void optim_squares(Optim *optim, int set, const OptimPiece *piece, const float *x);

#endif
