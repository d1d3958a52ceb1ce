/* Resuming: identifies the data, and checks whether a checkpoint fits this run. */
#ifndef WEFT_TRAIN_RESUME_H
#define WEFT_TRAIN_RESUME_H

#include "../trainer.h"

/* Computes the fingerprints of the data sets (Trainer.train_data, test_data) and the ranges of the
 * training set. resume_check and the checkpoints of this trainer use them. Collective; all ranks
 * return the same Status. */
Status resume_know_data(Trainer *trainer);
/* Checks whether the trainer may resume from path. Returns ERR_CONFIG, with the first difference,
 * if the file was written with a configuration that gives other results; ERR_DATA if the training
 * set has changed. Call it after resume_know_data. Not collective. */
Status resume_check(const Trainer *trainer, const char *path);
/* Describes everything except the number of ranks on which the bits of results depend, in the form
 * of config_text: the configuration without keys that do not affect results, and the fingerprints
 * of the training set and of model.init_from. Call it after resume_know_data. Owner: the caller. */
char *resume_numbers(const Trainer *trainer);
/* Returns true if a checkpoint's best metric was measured on this run's test data, or if the
 * checkpoint's or this run's test data are not known. Otherwise the metrics are not comparable. */
bool resume_same_test(const Trainer *trainer, const CheckpointMeta *meta);
/* Returns true if the checkpoint's best metric is the metric of this run. */
bool resume_same_best(const Trainer *trainer, const CheckpointMeta *meta);

#endif
