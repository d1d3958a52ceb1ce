/* The copy that a checkpoint is written from beside training. */
#ifndef WEFT_TRAIN_SAVE_COPY_H
#define WEFT_TRAIN_SAVE_COPY_H

#include "tensors.h"

typedef struct SaveCopy SaveCopy;

/* What the rank of the plan's stage that needs most has for it. Not collective. */
size_t save_copy_bytes(const Trainer *t, const Plan *plan);
/* Its memory, touched. Owner: the caller. Collective on all ranks. */
SaveCopy *save_copy_new(Trainer *t);
void save_copy_free(SaveCopy **copy);
/* What this rank has for it. */
size_t save_copy_held(const SaveCopy *copy);
/* Where this rank's part of a value (slot -1) or of a slot of its state is copied to; NULL: it is
 * another rank's to copy. */
float *save_copy_place(const SaveCopy *copy, int param, int slot);
/* Copies all at once, by all threads. */
void save_copy_take(SaveCopy *copy);
/* Between two steps whole tensors are put together, in rounds, of which each makes a step 3 %
 * longer at most: level 0 brings together the replicas' parts, level 1 the slices of a tensor
 * group. How many rounds a level has, alike on all ranks. */
enum { SAVE_COPY_LEVELS = 2 };
int save_copy_rounds(const SaveCopy *copy, int level);
/* Rounds are made in turn. Collective. */
void save_copy_collect(SaveCopy *copy, int level, int round);
/* Between the levels: this rank's slices, in plain order. Alone, by any thread. */
void save_copy_unpack(SaveCopy *copy);
/* After it has been taken. */
void save_copy_begin(SaveCopy *copy);
/* For the checkpoint module, whose thread calls get, after the last round. Borrowed from copy. */
CheckpointIo save_copy_io(SaveCopy *copy);

#endif
