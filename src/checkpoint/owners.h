/* Which rank reads or writes which of a checkpoint's tensors. */
#ifndef WEFT_CHECKPOINT_OWNERS_H
#define WEFT_CHECKPOINT_OWNERS_H

#include "checkpoint.h"

/* owner[i]: the rank that tensor i goes to, wholly; largest first, each to the rank with the fewest
 * bytes (the lowest of equals), of those that hold it if `holders`. A pure function: every rank
 * finds the same. */
void owners_assign(const CheckpointIo *io, int ranks, bool holders, int *owner);
/* Floats of the largest tensor (of `owner` rank; owner NULL: of all), at least 1. */
int64_t owners_largest(const CheckpointIo *io, const int *owner, int rank);

#endif
