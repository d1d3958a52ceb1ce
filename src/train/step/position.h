/* The position in the data of each step, counted in samples, so that a run may continue with
 * another train.batch. */
#ifndef WEFT_TRAIN_POSITION_H
#define WEFT_TRAIN_POSITION_H

#include "../trainer.h"

/* Sets the position after step 0 to the first sample of epoch 0, and computes the number of steps;
 * does not set t->step. Not collective. */
void position_init(Trainer *t);
/* Makes the next step continue at position `at`. Call it after the trainer's training set has
 * changed. */
void position_move(Trainer *t, Position at);
/* Returns the position after step number `steps` of the run. This number must be at least
 * t->begin_step, the step of the loaded checkpoint or of the last new files. */
Position position_after(const Trainer *t, int64_t steps);
/* Returns true if an epoch ends with step number `steps`. */
bool position_ends_epoch(const Trainer *t, int64_t steps);
/* Returns the epoch, counted from 1, of step number `steps`; 0 if steps is 0. */
int64_t position_last_epoch(const Trainer *t, int64_t steps);
/* Returns the number of samples of step number steps + 1. The last batch of an epoch may be
 * short. */
int64_t position_batch_samples(const Trainer *t, int64_t steps);
/* Returns the next step's position on the learning rate's curve. config gives the length of the
 * curve. */
LrSteps position_lr(const Trainer *t, const Config *config);

/* Writes the position to a checkpoint's metadata. */
void position_put(const Trainer *t, CheckpointMeta *meta);
/* Sets the trainer to the position of a loaded checkpoint, and computes the number of steps. An
 * epoch that began with other data, or with samples in another order, starts again. Returns
 * ERR_CONFIG if the position in samples cannot be found from the checkpoint. path: its path, for
 * messages. All ranks compute the same position. */
Status position_take(Trainer *t, const CheckpointMeta *meta, const char *path);
/* Sets the trainer's position to the step and epoch of a loaded checkpoint, for an evaluation,
 * which only reports them. */
void position_set_reported(Trainer *t, const CheckpointMeta *meta);
/* Returns ERR_CONFIG if the checkpoint `path`, whose metadata is meta, is already past the
 * configuration's train.epochs or train.steps. */
Status position_check_end(const Config *config, const CheckpointMeta *meta, const char *path);

#endif
