/* train.cuda_tune: chooses the algorithms of cuBLASLt and cuDNN, and gives all ranks and resumed
 * runs the same algorithms. */
#ifndef WEFT_TRAIN_ALGORITHMS_H
#define WEFT_TRAIN_ALGORITHMS_H

#include "trainer.h"

/* Sets t->algorithms to the record of algorithms with which the run begins: with
 * train.cuda_tune=FILE the record in this file; with time the record of the run's newest
 * checkpoint, else that of checkpoint.resume's file, else an empty record. An empty record is made
 * only if the trainer will make steps. The record stays NULL with train.cuda_tune=off and on CPUs.
 * Returns ERR_CONFIG if FILE cannot be read, or if the record was made for another GPU model or
 * other libraries and must be used (check_machine); ERR_DATA if the record is not valid. only: the
 * dry run, or NULL. Collective; all ranks return the same Status. */
Status algorithms_find(Trainer *t, const DryRun *only);
/* Plans the trainer's graph. Afterwards all ranks have the same record. With train.cuda_tune=time,
 * a shape that is not in the record is timed by the first rank that has it: rank 0 or, for slices,
 * another rank of rank 0's tensor-parallel group. Collective; all ranks return the same Status. */
Status algorithms_plan(Trainer *t);
/* Compares the record with that in meta, the metadata of the checkpoint `path`. Returns ERR_CONFIG
 * if the run must keep its bits (train.reproducible=any_grid) and a shape has another algorithm;
 * the message names the first such shape. Not collective. */
Status algorithms_check(const Trainer *t, const CheckpointMeta *meta, const char *path);

#endif
