/* The copy of a trainer's tensors from which a checkpoint is written in the background. */
#ifndef WEFT_TRAIN_SAVE_COPY_H
#define WEFT_TRAIN_SAVE_COPY_H

#include "tensors.h"

typedef struct SaveCopy SaveCopy;

/* Returns the bytes of the copy, with its buffer, on that rank of the plan's stage that needs the
 * most. Not collective. */
size_t save_copy_bytes(const Trainer *t, const Plan *plan);
/* Allocates and touches the copy. Owner: the caller. Collective on all ranks. */
SaveCopy *save_copy_new(Trainer *t);
void save_copy_free(SaveCopy **copy);
/* Returns the bytes of this rank's copy, with its buffer. */
size_t save_copy_local_bytes(const SaveCopy *copy);
/* Returns the address in the copy of a parameter's value, optimizer state or average, or of this
 * rank's shard or slice of it; NULL if another rank copies it. slot: as in Tensors.slot. */
float *save_copy_place(const SaveCopy *copy, int param, int slot);
/* Copies this rank's tensors, shards and slices, with all threads or from the device. */
void save_copy_take(SaveCopy *copy);
/* Levels of rounds, in which whole tensors are assembled between steps. Level 0 collects the
 * replicas' shards, level 1 the slices of a tensor-parallel group. A round makes a step at most 3 %
 * longer. */
enum { SAVE_COPY_LEVELS = 2 };
/* Returns the number of rounds of a level, the same on all ranks. */
int save_copy_rounds(const SaveCopy *copy, int level);
/* Makes one round. Rounds must be called in order. Collective. */
void save_copy_collect(SaveCopy *copy, int level, int round);
/* Converts this rank's slices to plain order. Call it between the two levels. Not collective; may
 * be called in any thread. */
void save_copy_unpack(SaveCopy *copy);
/* Marks all tensors as not yet converted to plain order. Call it after the tensors have been
 * copied. */
void save_copy_begin(SaveCopy *copy);
/* Returns the interface for the checkpoint module, whose thread calls its `get` after the last
 * round. The interface borrows from copy. */
CheckpointIo save_copy_io(SaveCopy *copy);

#endif
