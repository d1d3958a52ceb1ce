/* Divides tensors into the turns in which their owners collect them. The owner of a tensor is the
 * rank that writes it (checkpoint_owners). */
#ifndef WEFT_CHECKPOINT_OWNERS_H
#define WEFT_CHECKPOINT_OWNERS_H

#include "checkpoint.h"

/* Divides tensors into turns, each with at most one tensor of every rank: in a turn all owners
 * collect their tensor, and then hash or write it at the same time. order[count]: tensors, turn by
 * turn. first: turn t begins at order[first[t]], and first[turns] is count; `first` has room for
 * count + 1. Returns the number of turns, which is the least possible with one exception: the
 * blocks of each data set (CheckpointTensor.block) begin a new turn, because rows are sorted for
 * one table after the other. Between two such beginnings, a rank's largest tensor comes first, so
 * that the tensors of a turn take about the same time. A pure function. */
int owners_turns(const CheckpointIo *io, const int *owner, int ranks, int *order, int *first);
/* Returns the number of elements of the largest tensor that `rank` owns or, if `owner` is NULL, of
 * the largest of all tensors; at least 1. */
int64_t owners_largest(const CheckpointIo *io, const int *owner, int rank);

#endif
