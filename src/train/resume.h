/* What a run does to go on: which data it has, whether a checkpoint is of the same numbers. */
#ifndef WEFT_TRAIN_RESUME_H
#define WEFT_TRAIN_RESUME_H

#include "trainer.h"

/* Finds out what the data sets hold (train_data, test_data), for resume_check and for the
 * checkpoints that this trainer writes. Collective; all ranks agree. */
Status resume_know_data(Trainer *trainer);
/* May the trainer go on from path? ERR_CONFIG, naming the first difference, if it was written under
 * a configuration with other numbers; ERR_DATA if the training set holds other data than then.
 * After resume_know_data. Not collective. */
Status resume_check(const Trainer *trainer, const char *path);
/* What decides the run's bits but for ranks, as config_text: the configuration without keys of
 * where and how, and what the training set and model.init_from hold. After resume_know_data.
 * Owner: the caller. */
char *resume_numbers(const Trainer *trainer);
/* Was a checkpoint's best metric reached on the test data of this run, as far as both are known?
 * Else they do not compare. */
bool resume_same_test(const Trainer *trainer, const CheckpointMeta *meta);
/* Is it by the figure that this run goes by? */
bool resume_same_best(const Trainer *trainer, const CheckpointMeta *meta);

#endif
