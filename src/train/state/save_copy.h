/* The copy of a trainer's tensors from which a checkpoint is written in the background. */
#ifndef WEFT_TRAIN_SAVE_COPY_H
#define WEFT_TRAIN_SAVE_COPY_H

#include "tensors.h"

typedef struct SaveCopy SaveCopy;

/* Bytes of the copy on the rank of the plan's stage that needs most. Not collective. */
size_t save_copy_bytes(const Trainer *t, const Plan *plan);
/* Allocates and touches the copy. Owner: the caller. Collective on all ranks. */
SaveCopy *save_copy_new(Trainer *t);
void save_copy_free(SaveCopy **copy);
/* Bytes of this rank's copy. */
size_t save_copy_local_bytes(const SaveCopy *copy);
/* Returns the address in the copy of a parameter's value (slot -1) or state slot, or of this rank's
 * shard or slice of it; NULL if another rank copies it. */
float *save_copy_place(const SaveCopy *copy, int param, int slot);
/* Copies all tensors at once, with all threads. */
void save_copy_take(SaveCopy *copy);
/* Between steps whole tensors are assembled in rounds, each of which makes a step at most 3 %
 * longer: level 0 collects the replicas' shards, level 1 the slices of a tensor-parallel group. */
enum { SAVE_COPY_LEVELS = 2 };
/* Returns the number of rounds of a level, the same on all ranks. */
int save_copy_rounds(const SaveCopy *copy, int level);
/* Makes one round. Rounds must be called in order. Collective. */
void save_copy_collect(SaveCopy *copy, int level, int round);
/* Call between the levels: converts this rank's slices to plain order. Not collective; runs in any
 * thread. */
void save_copy_unpack(SaveCopy *copy);
/* Marks all tensors as not yet converted to plain order. Call after save_copy_take. */
void save_copy_begin(SaveCopy *copy);
/* Interface for the checkpoint module, whose thread calls get after the last round. Borrowed from
 * copy. */
CheckpointIo save_copy_io(SaveCopy *copy);

#endif
