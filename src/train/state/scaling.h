/* Scaling of samples: compares a checkpoint's scaling with this run's. All functions run on rank 0
 * only. */
#ifndef WEFT_TRAIN_SCALING_H
#define WEFT_TRAIN_SCALING_H

#include "checkpoint.h"
#include "../trainer.h"

/* Sets the set's mean and deviation, also those of targets of fields, to those of the training
 * set. */
void train_share_stats(DataSet *set, const DataSet *train);
/* Sets the mean and deviation of both sets to those of Trainer.checkpoint or Trainer.earlier, if
 * there is such a file and the configuration does not set others. Without data.train also sets the
 * scale and the number of classes. */
void scaling_take(Trainer *t);
/* Returns ERR_DATA if this run scales raw values differently from the training of the model in the
 * file, unless the types or ranges of the values justify it; some such differences are logged. */
Status scaling_check(const Trainer *t, const CheckpointMeta *meta, const char *path);
/* Warns if the values of the test set have another scale than those of the training set, or values
 * of one file another scale than those of the first file of its set. If the test set has the scale
 * of the training set, an evaluation also compares it with the training set of its checkpoint, if
 * the checkpoint has the ranges of that set. Returns ERR_IO. */
Status scaling_compare_sets(const Trainer *t);
/* Logs a difference in mean and deviation between this run and the checkpoint. */
void scaling_log_stats(const Trainer *t, const CheckpointMeta *meta, const char *path);
/* Warns if the values of this run's training set have another scale than those of the checkpoint's
 * training set. before: the beginning of the line. */
void scaling_warn_ranges(const Trainer *t, const CheckpointMeta *meta, const char *path,
                         const char *before);
/* For a run that begins with a file's parameters and may scale differently: logs the difference
 * that scaling_check would refuse, else normalisation on one side only; and another scale of the
 * values (scaling_warn_ranges). */
void scaling_log_difference(const Trainer *t, const CheckpointMeta *meta, const char *path);

#endif
