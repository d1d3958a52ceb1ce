/* Functions of scaling.c. All run on rank 0. */
#ifndef WEFT_TRAIN_SCALING_H
#define WEFT_TRAIN_SCALING_H

#include "checkpoint.h"
#include "../trainer.h"

/* Gives set the mean and deviation of the training set. */
void train_share_stats(DataSet *set, const DataSet *train);
/* Gives the sets the normalisation of the checkpoint that an evaluation loads. */
void scaling_take(Trainer *t);
/* Returns ERR_DATA if this run scales raw values differently from the model in the file. */
Status scaling_check(const Trainer *t, const CheckpointMeta *meta, const char *path);
/* Warns if the values of the test set, or of one file of a list, have another scale than those of
 * the training set, or of the first file. An evaluation compares its test set with the training set
 * of its checkpoint, too, where that is known. Returns ERR_IO. */
Status scaling_compare_sets(const Trainer *t);
/* Logs a difference in mean and deviation between this run and the checkpoint. */
void scaling_log_stats(const Trainer *t, const CheckpointMeta *meta, const char *path);
/* Warns if the values of this run's training set have another scale than those of the checkpoint's
 * training set. before: the beginning of the line. */
void scaling_warn_ranges(const Trainer *t, const CheckpointMeta *meta, const char *path,
                         const char *before);
/* Logs what scaling_check would refuse, and normalisation on one side only: a run that begins with
 * a file's parameters may scale differently. */
void scaling_log_difference(const Trainer *t, const CheckpointMeta *meta, const char *path);

#endif
