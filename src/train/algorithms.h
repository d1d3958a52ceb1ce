/* train.cuda_tune: which algorithms cuBLASLt and cuDNN use, and how all ranks and resumed runs get
 * the same ones. */
#ifndef WEFT_TRAIN_ALGORITHMS_H
#define WEFT_TRAIN_ALGORITHMS_H

#include "trainer.h"

/* Finds the run's record: the file's, the one in the checkpoint from which it resumes, or an empty
 * one. Returns ERR_CONFIG if the record was made for another GPU model or other libraries and may
 * not be replaced. only: the dry run, or NULL. Collective; all ranks return the same Status. */
Status algorithms_find(Trainer *t, const DryRun *only);
/* Plans the trainer's graph, so that all ranks have the same record afterwards. A shape that the
 * record lacks is timed by the first rank that has it: rank 0, or, for slices, another rank of its
 * tensor-parallel group. Collective; all ranks return the same Status. */
Status algorithms_plan(Trainer *t);
/* Returns ERR_CONFIG if the run must keep its bits and a shape has another algorithm than in meta,
 * the metadata of checkpoint path; the message names the first one. Not collective. */
Status algorithms_check(const Trainer *t, const CheckpointMeta *meta, const char *path);

#endif
