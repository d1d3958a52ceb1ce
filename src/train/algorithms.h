/* train.cuda_tune: chooses the algorithms of cuBLASLt and cuDNN, and gives all ranks and resumed
 * runs the same algorithms. */
#ifndef WEFT_TRAIN_ALGORITHMS_H
#define WEFT_TRAIN_ALGORITHMS_H

#include "trainer.h"

/* Sets t->algorithms to the run's record: that of the configured file, that of the run's newest
 * checkpoint or of the checkpoint with which it begins, or, if the trainer will make steps, an
 * empty one. It stays NULL with train.cuda_tune=off and on CPUs. Returns ERR_CONFIG if the
 * configured file cannot be read, or if the record was made for another GPU model or other
 * libraries and may not be replaced. only: the dry run, or NULL. Collective; all ranks return the
 * same Status. */
Status algorithms_find(Trainer *t, const DryRun *only);
/* Plans the trainer's graph. Afterwards all ranks have the same record. With train.cuda_tune=time,
 * a shape that is not in the record is timed by the first rank that has it: rank 0 or, for slices,
 * another rank of rank 0's tensor-parallel group. Collective; all ranks return the same Status. */
Status algorithms_plan(Trainer *t);
/* Returns ERR_CONFIG if the run must keep its bits and a shape has another algorithm than in meta,
 * the metadata of the checkpoint `path`; the message names the first such shape. Not collective. */
Status algorithms_check(const Trainer *t, const CheckpointMeta *meta, const char *path);

#endif
