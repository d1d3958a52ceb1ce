/* Checks of grid.transport, and the number of replicas that share parameters. include/train.h
 * declares the other functions of transport.c. */
#ifndef WEFT_TRAIN_TRANSPORT_H
#define WEFT_TRAIN_TRANSPORT_H

#include "trainer.h"

/* Returns ERR_CONFIG if grid.transport names a transport that cannot be used with this grid and
 * backend, or if replicas on GPUs use grid.zero and grid.transport excludes NCCL. Call it when the
 * grid's shape and the backend are known, before communicators are made. Not collective. */
Status transport_check(const Trainer *trainer);
/* Returns whether the first `ranks` ranks are on one node. In a dry run with DryRun.node_ranks this
 * follows from that number; otherwise it is true only if all ranks are on one node. */
bool transport_one_node(const Trainer *trainer, int ranks);
/* Returns the number of replicas that share one arena of parameters with grid.zero: grid.dp if
 * their sums use shared memory, else 1. */
int transport_param_sharers(const Trainer *trainer);

#endif
