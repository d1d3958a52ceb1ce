/* The optim room's private door: the tables of the update rules, and what their files share. */
#ifndef WEFT_OPTIM_RULES_H
#define WEFT_OPTIM_RULES_H

#include "optim.h"

extern const OptimTable optim_sgd, optim_adam, optim_adamw, optim_lars, optim_lamb;

/* State arena `slot` where range begins. */
float *optim_slot(const Optim *optim, int slot, const OptimRange *range);
/* The config's weight decay, or 0 for a range that does not decay. */
float optim_decay(const Optim *optim, const OptimRange *range);
/* Euclidean norm of n numbers of the backend's memory: squares per FLAT_CHUNK, added in order. The host waits. */
double optim_norm(Optim *optim, const float *x, int64_t n);

#endif
