/* Resuming: identifies the data, and checks whether a checkpoint fits this run. */
#ifndef WEFT_TRAIN_RESUME_H
#define WEFT_TRAIN_RESUME_H

#include "../trainer.h"

/* Computes the fingerprints of the data sets (train_data, test_data) and the ranges of the training
 * set, for resume_check and for the checkpoints that this trainer writes. Collective; all ranks
 * return the same Status. */
Status resume_know_data(Trainer *trainer);
/* Checks whether the trainer may resume from path. Returns ERR_CONFIG with the first difference if
 * it was written with a configuration that computes something else; ERR_DATA if the training set
 * has changed. Call after resume_know_data. Not collective. */
Status resume_check(const Trainer *trainer, const char *path);
/* Describes everything that decides the bits of results except the number of ranks, in the form of
 * config_text: the configuration without keys that do not affect results, and the contents of the
 * training set and of model.init_from. Call after resume_know_data. Owner: the caller. */
char *resume_numbers(const Trainer *trainer);
/* Returns true if a checkpoint's best metric was reached on this run's test data, as far as both
 * are known. Otherwise the metrics are not comparable. */
bool resume_same_test(const Trainer *trainer, const CheckpointMeta *meta);
/* Returns true if the checkpoint's best metric is the one that this run uses. */
bool resume_same_best(const Trainer *trainer, const CheckpointMeta *meta);

#endif
