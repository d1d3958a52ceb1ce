/* Adds up gradients in arenas of partial sums, bucket by bucket; the sums of complete buckets begin
 * while backward still runs. */
#ifndef WEFT_PIPELINE_GRAD_SYNC_H
#define WEFT_PIPELINE_GRAD_SYNC_H

#include "micro_squares.h"
#include "slot_memory.h"

typedef struct GradSync {
    const Context *context;
    /* arenas in which this rank adds the gradients of a run of micro-batches (plan_micro_run), used
     * as tree_step says; the first plan->sum_levels are used. level[0] is the Comm's arena; the
     * others are owned */
    float *level[33];
    /* partial sums of this rank's shards between pushes, one arena for each of plan->push_levels,
     * in memory of comm->partial_backend; owned; NULL if this rank has no shard */
    float *partial[33];
    /* sums over all replicas: in the Comm's arena, or in partial[0] if gradients are sharded;
     * borrowed */
    float *sum;
    /* number of each bucket's last push, [chunk][bucket]; 0: it has not been pushed; owned */
    int64_t **pushed;
    /* true: steps are hashed (executor_hash_steps) */
    bool hashes;
    /* hash of this step so far */
    uint64_t hash;
    /* sums of squares of micro-batches, if executor_measure_micro_batches was called */
    MicroSquares squares;
} GradSync;

void grad_sync_init(GradSync *sync, const Context *context);
void grad_sync_fini(GradSync *sync);
/* Returns the arena to which backward writes a micro-batch's gradients. */
float *grad_arena(const GradSync *sync, int micro);
/* Returns the address of the sum of element `at` of the gradient arena. If gradients are sharded,
 * the element must be in this rank's shard. */
float *grad_sum(const GradSync *sync, int64_t at);
/* Returns true if bucket_open may wait for other ranks. */
bool bucket_waits(const Plan *plan, int micro);
/* Returns true if bucket_done begins a sum over other ranks. */
bool bucket_begins_sum(const Plan *plan, int micro);
/* Call it before a micro-batch writes to the bucket: waits until the memory is free. Sets *metrics
 * to the address of the micro-batch's metrics if the bucket includes them, else to NULL. */
void bucket_open(const GradSync *sync, const ChunkRun *chunk, const Slot *slot, int bucket,
                 int micro, float **metrics);
/* Call it when the micro-batch's gradients in the bucket are complete: adds them to the partial
 * sums, and after the last micro-batch of a run begins a sum over the replicas. Collective on the
 * replicas. */
void bucket_done(GradSync *sync, const ChunkRun *chunk, int bucket, int micro);
/* Waits for all sums that have been begun. Collective on the replicas. */
void grad_sync_wait(const GradSync *sync);

#endif
