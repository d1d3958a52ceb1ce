/* Sums over the replicas in the middle of a micro-batch: what synced operations ask for. */
#ifndef WEFT_PIPELINE_REPLICA_SUM_H
#define WEFT_PIPELINE_REPLICA_SUM_H

#include "context.h"

typedef struct ReplicaSum ReplicaSum;
/* NULL where the stage has no synced operation. Sets context->progress.replicas. Owner: the caller.
 * Collective on the stage's replicas. */
Status replica_sum_new(ReplicaSum **sum, Context *context);
/* Collective. */
void replica_sum_free(ReplicaSum **sum);
/* NULL for NULL */
const Replicas *replica_sum_face(const ReplicaSum *sum);

#endif
