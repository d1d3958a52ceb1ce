/* The part of the optimizer's ranges that this rank updates, and the exchange of partial norms:
 * with ZeRO among replicas, with slices among the ranks of a tensor-parallel group. */
#ifndef WEFT_TRAIN_SHARDS_H
#define WEFT_TRAIN_SHARDS_H

#include "trainer.h"

typedef struct Shards Shards;

/* Creates them for the ranges of t->range_param; range[] gives the sizes. Owner: the caller. */
Shards *shards_new(const Trainer *t, const OptimRange *range, int count);
void shards_free(Shards **shares);
/* Returns this rank's part; borrowed from shares, which must live as long as the optimizer. */
OptimShard shards_mine(Shards *shares);

#endif
