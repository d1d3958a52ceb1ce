/* The order in which the owners of a checkpoint's tensors, the ranks that write them
 * (checkpoint_owners), collect these tensors. */
#ifndef WEFT_CHECKPOINT_OWNERS_H
#define WEFT_CHECKPOINT_OWNERS_H

#include "checkpoint.h"

/* Divides tensors into turns, each with at most one tensor of every rank: in a turn all owners
 * collect their tensor, and then hash or write it at the same time. order[count]: tensors, turn by
 * turn; turn t begins at first[t], and first[turns] is count (first has room for count + 1).
 * Returns the number of turns, which is the least possible, except that the blocks of each data set
 * begin a new turn (CheckpointTensor.block), because rows are sorted for one table after the other.
 * Between these beginnings, a rank's largest tensor comes first, so that the tensors of a turn take
 * about the same time. A pure function. */
int owners_turns(const CheckpointIo *io, const int *owner, int ranks, int *order, int *first);
/* Returns the number of floats, at least 1, of the largest tensor that `rank` owns or, if owner is
 * NULL, of the largest of all tensors. */
int64_t owners_largest(const CheckpointIo *io, const int *owner, int rank);

#endif
