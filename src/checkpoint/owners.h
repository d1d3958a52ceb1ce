/* When the ranks that write a checkpoint's tensors (checkpoint_owners) get them. */
#ifndef WEFT_CHECKPOINT_OWNERS_H
#define WEFT_CHECKPOINT_OWNERS_H

#include "checkpoint.h"

/* Tensors in turns, of which each has at most one of every rank: all owners collect theirs, and
 * then all work at once. order[count]: tensors, turn by turn; turn t begins at first[t], and
 * first[turns] is count (room for count + 1). Returns turns: as few as there can be, and more only
 * where blocks of rows begin, as rows are sorted for one table after the other. A rank has its
 * largest first, so that those of a turn take about as long. A pure function. */
int owners_turns(const CheckpointIo *io, const int *owner, int ranks, int *order, int *first);
/* Floats of the largest tensor (of `owner` rank; owner NULL: of all), at least 1. */
int64_t owners_largest(const CheckpointIo *io, const int *owner, int rank);

#endif
