/* Functions of scaling.c for the rest of the module, all of which run on rank 0. */
#ifndef WEFT_TRAIN_SCALING_H
#define WEFT_TRAIN_SCALING_H

#include "checkpoint.h"
#include "trainer.h"

/* Normalises the sets as the samples of the checkpoint that an evaluation loads. */
void scaling_take(Trainer *t);
/* ERR_DATA: raw values become other numbers for this run than for the model in the file. */
Status scaling_check(const Trainer *t, const CheckpointMeta *meta, const char *path);
/* Warns where values of the test set, or of one file of a list, are at another scale than those of
 * the training set, or of the first file. Bytes are not compared. ERR_IO. */
Status scaling_compare_sets(const Trainer *t);
/* Logs in one line that this run's mean and deviation are others. */
void scaling_log_stats(const Trainer *t, const CheckpointMeta *meta, const char *path);
/* Logs in one line what scaling_check refuses, and normalisation on one side only: a run that
 * begins with the parameters of a file may scale otherwise. */
void scaling_log_difference(const Trainer *t, const CheckpointMeta *meta, const char *path);

#endif
