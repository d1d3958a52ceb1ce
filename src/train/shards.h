/* The shards of the optimizer's ranges that this rank updates, and the exchange of sums of squares,
 * from which norms are computed. With ZeRO the replicas exchange these sums; with tensor
 * parallelism the ranks of a tensor-parallel group do. */
#ifndef WEFT_TRAIN_SHARDS_H
#define WEFT_TRAIN_SHARDS_H

#include "trainer.h"

typedef struct Shards Shards;

/* Creates this rank's shards of the ranges range[0] to range[count - 1]; t->range_param has their
 * parameters. Owner: the caller. */
Shards *shards_new(const Trainer *t, const OptimRange *range, int count);
void shards_free(Shards **shards);
/* Returns this rank's shards as the optimizer needs them. The arrays are borrowed from *shards,
 * which must live as long as the optimizer. */
OptimShard shards_mine(Shards *shards);
/* Returns the function with which t->optim adds exact sums of squares over ranks. Its member
 * `merge` is NULL if tensors are neither sharded nor sliced. */
OptimMerge shards_merge(Trainer *t);

#endif
