/* The shards of the optimizer's ranges that this rank updates, and the exchange of sums of squares,
 * from which norms are computed: among replicas with ZeRO, and among the ranks of a group with
 * tensor parallelism. */
#ifndef WEFT_TRAIN_SHARDS_H
#define WEFT_TRAIN_SHARDS_H

#include "trainer.h"

typedef struct Shards Shards;

/* Creates this rank's shards of the ranges range[0 ... count - 1], whose parameters are in
 * t->range_param. Owner: the caller. */
Shards *shards_new(const Trainer *t, const OptimRange *range, int count);
void shards_free(Shards **shards);
/* Returns this rank's shard; borrowed from shards, which must live as long as the optimizer. */
OptimShard shards_mine(Shards *shards);
/* Returns the exchange of exact sums for t->optim; its function is NULL if this rank has whole
 * tensors. */
OptimMerge shards_merge(Trainer *t);

#endif
