/* Where the tensors of a step lie: the slots of each chunk, one a micro-batch in flight, then the
 * scratch memory that all share. All pointers are computed once. */
#ifndef WEFT_PIPELINE_SLOT_MEMORY_H
#define WEFT_PIPELINE_SLOT_MEMORY_H

#include "context.h"

/* The memory of a micro-batch in flight, and what its runs point to. */
typedef struct Slot {
    /* in the activation arena */
    char *memory;
    /* the micro-batch's in the chunk before, where this stage has it */
    char *before;
    /* owned; as ChunkPlan.run */
    OpRun *run;
    /* no sample in this micro-batch: nothing is computed */
    bool empty;
    /* METRIC_PAD of the backend's memory, in StepReport.metrics */
    float *metrics;
} Slot;

typedef struct ChunkRun {
    const ChunkPlan *plan;
    /* owned; plan->slots */
    Slot *slot;
} ChunkRun;

typedef struct SlotMemory {
    const Context *context;
    /* owned arenas */
    char *activations, *cache, *workspace;
    /* in activations */
    char *scratch;
    /* owned; plan->chunk_count */
    ChunkRun *chunk;
} SlotMemory;

/* What operations are given beside the memory here: parameters; ways to the tensor group and to the
 * other replicas, or NULL. Borrowed, all. */
typedef struct SlotLinks {
    float *weights;
    const Exchange *exchange;
    const Replicas *replicas;
} SlotLinks;
void slot_memory_init(SlotMemory *memory, const Context *context, const SlotLinks *links);
void slot_memory_fini(SlotMemory *memory);
/* Where a place of the chunk lies for the micro-batch in slot; NULL for OFFSET_NONE and
 * OFFSET_INPUT. */
void *slot_address(const SlotMemory *memory, const ChunkRun *chunk, const Slot *slot,
                   int64_t place);
/* The micro-batch has the slot `before` in the chunk before: points the slot's runs to what they
 * read there. */
void slot_bind_before(const SlotMemory *memory, const ChunkRun *chunk, Slot *slot,
                      const Slot *before);
/* The run of the loss for the micro-batch in slot; the chunk has the loss. */
const OpRun *slot_loss(const SlotMemory *memory, const ChunkRun *chunk, const Slot *slot);

#endif
