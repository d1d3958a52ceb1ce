/* Memory for the tensors of a step: the slots of each chunk, one for each micro-batch in flight,
 * followed by scratch memory that all share. Pointers are computed once. */
#ifndef WEFT_PIPELINE_SLOT_MEMORY_H
#define WEFT_PIPELINE_SLOT_MEMORY_H

#include "context.h"

/* The memory of a micro-batch in flight, and the runs that point into it. */
typedef struct Slot {
    /* memory in the activation arena */
    char *memory;
    /* the micro-batch's slot memory in the previous chunk, if this stage has that chunk */
    char *before;
    /* arguments of each run of the chunk, in the order of ChunkPlan.run; owned */
    OpRun *run;
    /* the micro-batch has no samples, so only synced operations run */
    bool empty;
    /* METRIC_PAD floats in StepReport.metrics */
    float *metrics;
} Slot;

typedef struct ChunkRun {
    const ChunkPlan *plan;
    /* plan->slots slots; owned */
    Slot *slot;
} ChunkRun;

typedef struct SlotMemory {
    const Context *context;
    /* arenas; owned */
    char *activations, *cache, *workspace;
    /* start of scratch memory in activations */
    char *scratch;
    /* plan->chunk_count chunks; owned */
    ChunkRun *chunk;
} SlotMemory;

/* Arguments that operations need besides slots: parameters, and exchanges with the tensor-parallel
 * group and with the other replicas, or NULL. All borrowed. */
typedef struct SlotLinks {
    float *weights;
    const Exchange *exchange;
    const Replicas *replicas;
} SlotLinks;
void slot_memory_init(SlotMemory *memory, const Context *context, const SlotLinks *links);
void slot_memory_fini(SlotMemory *memory);
/* Returns the address of a place (pipeline.h, OFFSET_*) for the micro-batch in slot; NULL for
 * OFFSET_NONE and OFFSET_INPUT. */
void *slot_address(const SlotMemory *memory, const ChunkRun *chunk, const Slot *slot,
                   int64_t place);
/* Points the slot's runs to the tensors that they read in `before`, the same micro-batch's slot in
 * the previous chunk. */
void slot_bind_before(const SlotMemory *memory, const ChunkRun *chunk, Slot *slot,
                      const Slot *before);
/* Returns the run of the loss for the micro-batch in slot; the chunk must contain the loss. */
const OpRun *slot_loss(const SlotMemory *memory, const ChunkRun *chunk, const Slot *slot);

#endif
