/* Sums over the replicas within a micro-batch, for operations whose statistics are over all
 * replicas (OpSpec.synced: batch norms with train.sync_batch_norm). */
#ifndef WEFT_PIPELINE_REPLICA_SUM_H
#define WEFT_PIPELINE_REPLICA_SUM_H

#include "context.h"

typedef struct ReplicaSum ReplicaSum;
/* Opens the channels and sets context->progress.replicas. *sum is NULL if the stage has no synced
 * operation. Owner: the caller, also on an error. Collective on the stage's replicas. */
Status replica_sum_new(ReplicaSum **sum, Context *context);
/* Collective. */
void replica_sum_free(ReplicaSum **sum);
/* Returns the interface that operations use; NULL if sum is NULL. */
const Replicas *replica_sum_interface(const ReplicaSum *sum);

#endif
