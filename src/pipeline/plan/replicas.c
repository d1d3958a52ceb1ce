/* Plans the sums over a stage's replicas within a micro-batch, for statistics of synced layers.
 * Sums move up a binomial tree of the replicas and back down; run/replica_sum.c makes them. */
#include "plan.h"

ReplicaSums plan_replica_sums(const Plan *plan)
{
    ReplicaSums sums = {0};
    for (int k = 0; k < plan->chunk_count; ++k) {
        const ChunkPlan *c = &plan->chunk[k];
        for (int pass = 0; pass < PASSES; ++pass)
            for (int i = 0; i < c->pass[pass].count; ++i) {
                const Action *a = &c->pass[pass].action[i];
                bool runs = a->kind == ACTION_FORWARD || a->kind == ACTION_BACKWARD ||
                            a->kind == ACTION_BACKWARD_DATA;
                if (!runs) continue;
                const Op *op = plan->graph->node[c->run[a->index].node].op;
                if (!op->spec.synced) continue;
                ++sums.count;
                sums.bytes += (size_t)op->synced_sums * sizeof(double);
            }
    }
    return sums;
}

int replica_children(int rank, int size)
{
    int children = 0;
    for (int step = 1; rank % (2 * step) == 0 && rank + step < size; step *= 2) ++children;
    return children;
}

/* Every rank reserves the memory that rank 0 needs, which has the most children. */
void replica_sums_memory(Plan *plan)
{
    if (plan_replica_sums(plan).count == 0) return;
    size_t channels = (size_t)replica_children(0, plan->shape.dp);
    plan->message_bytes += channels * REPLICA_PIECE_BYTES * REPLICA_DEPTH;
    plan->send_slot_bytes += channels * REPLICA_PIECE_BYTES * REPLICA_DEPTH;
}
