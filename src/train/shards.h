/* What of the optimizer's ranges a rank updates, and the exchange of partial norms: each replica's
 * shard (ZeRO), and each tensor-parallel rank's slice. */
#ifndef WEFT_TRAIN_SHARDS_H
#define WEFT_TRAIN_SHARDS_H

#include "trainer.h"

typedef struct Shards Shards;

/* For the ranges of t->range_param, whose parameters' elements range[] gives. Owner: the caller. */
Shards *shards_new(const Trainer *t, const OptimRange *range, int count);
void shards_free(Shards **shares);
/* This rank's; borrowed from shares, which optim's norms need as long as it lives. */
OptimShard shards_mine(Shards *shares);

#endif
