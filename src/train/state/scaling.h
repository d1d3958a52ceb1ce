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
/* Compares the factor by which this run multiplies raw values with the factor in the training of
 * the model in the file, if that is known. Returns ERR_DATA if they differ, except in three cases.
 * (1) The element types differ, and data.scale is set; for a model of uint8 the ranges of the
 * scaled values must then be similar. (2) The types differ, and the ranges of the raw values are
 * similar. (3) The types are the same but not uint8, data.scale is set, and the data are not those
 * of the training; if the checkpoint has no ranges, this is logged as a warning. */
Status scaling_check(const Trainer *t, const CheckpointMeta *meta, const char *path);
/* Warns if the values of the test set have another scale than those of the training set. Also warns
 * if the values of a file have another scale than those of the first file of its set. If the test
 * set has the scale of the training set, an evaluation also compares the test set with the ranges
 * in the evaluated checkpoint, if it has ranges. ERR_IO: a file cannot be read. */
Status scaling_compare_sets(const Trainer *t);
/* Logs a difference in mean and deviation between this run and the checkpoint. */
void scaling_log_stats(const Trainer *t, const CheckpointMeta *meta, const char *path);
/* Warns if the values of this run's training set have another scale than those of the checkpoint's
 * training set. before: the beginning of the line. */
void scaling_warn_ranges(const Trainer *t, const CheckpointMeta *meta, const char *path,
                         const char *before);
/* Logs differences in scaling for a run that begins with a file's parameters, because such a run
 * may scale its samples differently. Logs the difference that scaling_check would refuse or, if
 * there is none, that only one side has mean and deviation. Also warns of another scale of the
 * values (scaling_warn_ranges). */
void scaling_log_difference(const Trainer *t, const CheckpointMeta *meta, const char *path);

#endif
