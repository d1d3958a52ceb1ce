/* What of the optimizer's ranges a rank updates, and the exchange of partial norms: each replica's share (ZeRO), and each
 * tensor-parallel rank's slice. */
#ifndef WEFT_TRAIN_SHARES_H
#define WEFT_TRAIN_SHARES_H

#include "trainer.h"

typedef struct Shares Shares;

/* For the ranges of t->range_param, whose parameters' elements range[] gives. Owner: the caller. */
Shares *shares_new(const Trainer *t, const OptimRange *range, int count);
void shares_free(Shares **shares);
/* This rank's; borrowed from shares, which optim's norms need as long as it lives. */
OptimShare shares_mine(Shares *shares);

#endif
