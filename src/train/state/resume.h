/* Resuming: identifies the data, and checks whether a checkpoint fits this run. */
#ifndef WEFT_TRAIN_RESUME_H
#define WEFT_TRAIN_RESUME_H

#include "../trainer.h"

/* Computes the fingerprints of the data sets (Trainer.train_fingerprint, test_fingerprint). On rank
 * 0 also computes the statistics of the training set's values (Trainer.ranges). resume_check and
 * the checkpoints of this trainer use these facts. Collective; all ranks return the same Status. */
Status resume_know_data(Trainer *trainer);
/* Checks whether the trainer may resume from `path`, a checkpoint of this run. Call it after
 * resume_know_data. Not collective. Errors:
 * - ERR_CONFIG: the file was written with a configuration that gives other results (the message has
 * the first difference), its step or epoch is after the end of this run, or this run must keep its
 * bits but has another algorithm for a shape on GPUs than the file's run;
 * - ERR_DATA: the training set has changed;
 * - errors of checkpoint_read_meta. */
Status resume_check(const Trainer *trainer, const char *path);
/* Returns a text by which servers recognise a run (tables_begin), in the form of config_text. It
 * has the configuration, with defaults for the keys that may change when a run resumes, except
 * grid.mode and grid.geo_steps, which keep their values; the fingerprint of the training set; and
 * the description of model.init_from. Call it after resume_know_data. Owner: the caller. */
char *resume_identity(const Trainer *trainer);
/* Returns true if a checkpoint's best metric was measured on this run's test data, or if the
 * checkpoint's or this run's test data are not known. Otherwise the metrics are not comparable. */
bool resume_same_test(const Trainer *trainer, const CheckpointMeta *meta);
/* Returns true if the checkpoint's best metric is the metric of this run, or if the checkpoint does
 * not name its metric. */
bool resume_same_best(const Trainer *trainer, const CheckpointMeta *meta);

#endif
