/* The place in the data of each step, counted in samples, so that a run may go on with another
 * train.batch. */
#ifndef WEFT_TRAIN_POSITION_H
#define WEFT_TRAIN_POSITION_H

#include "trainer.h"

/* Sets a trainer to step 0, the first sample of epoch 0, and counts its steps. Not collective. */
void position_init(Trainer *t);
/* Position after `steps` steps in all, not fewer than the loaded checkpoint has. */
Position position_after(const Trainer *t, int64_t steps);
/* Does an epoch end with that step? */
bool position_ends_epoch(const Trainer *t, int64_t steps);
/* 1-based epoch of the last of `steps` steps; 0 where none was made. */
int64_t position_last_epoch(const Trainer *t, int64_t steps);
/* Position of the next step on the learning rate's curve. */
LrSteps position_lr(const Trainer *t);

void position_put(const Trainer *t, CheckpointMeta *meta);
/* Sets the trainer to the position of a loaded checkpoint, and counts its steps anew. An epoch that
 * was begun with other data, or with their samples in another order, begins again. ERR_CONFIG: the
 * checkpoint does not say how many samples were done. Alike on all ranks. */
Status position_take(Trainer *t, const CheckpointMeta *meta, const char *path);
/* Sets step and epoch to what a checkpoint says, for evaluation. */
void position_show(Trainer *t, const CheckpointMeta *meta);
/* Has the run gone further than train.epochs or train.steps of the configuration? ERR_CONFIG. */
Status position_check_end(const Config *config, const CheckpointMeta *meta, const char *path);

#endif
