/* Gradients on their way to their sums: the arenas of partial sums, and the buckets that leave
 * while backward still runs. */
#ifndef WEFT_PIPELINE_GRAD_SYNC_H
#define WEFT_PIPELINE_GRAD_SYNC_H

#include "slot_memory.h"

typedef struct GradSync {
    const Context *context;
    /* Arenas of partial sums (tree_step). level[0] is the Comm's where nothing is sharded, the
     * others are owned. */
    float *level[33];
    /* owned, one a chunk and bucket: number of its last push, where gradients are sharded (zero
     * 2) */
    int64_t **pushed;
    /* see executor_hash_steps */
    bool hashes;
    uint64_t hash;
} GradSync;

void grad_sync_init(GradSync *sync, const Context *context);
void grad_sync_fini(GradSync *sync);
/* The arena that backward writes a micro-batch's gradients to. */
float *grad_arena(const GradSync *sync, int micro);
/* Where the sum of what lies at offset `at` of the gradient arena is, on a rank whose share it
 * is. */
float *grad_sum(const GradSync *sync, int64_t at);
/* From here on a micro-batch writes to the bucket. Waits for what lay there before. Where the
 * bucket carries the step's metrics, *metrics is where the micro-batch's belong; else NULL. */
void bucket_open(const GradSync *sync, const ChunkRun *chunk, const Slot *slot, int bucket,
                 int micro, float **metrics);
/* The micro-batch's gradients in the bucket are complete: they join the partial sums; after the
 * last one the sum over the replicas begins. Collective on the replicas. */
void bucket_done(GradSync *sync, const ChunkRun *chunk, int bucket, int micro);
/* Waits for all sums that were begun. Collective on the replicas. */
void grad_sync_wait(const GradSync *sync);

#endif
