/* Memory for the tensors of a step: the slots of each chunk, one for each micro-batch in flight,
 * followed by scratch memory that all chunks share. */
#ifndef WEFT_PIPELINE_SLOT_MEMORY_H
#define WEFT_PIPELINE_SLOT_MEMORY_H

#include "context.h"

/* The memory of a micro-batch in flight, and the arguments of the operations that run on it. */
typedef struct Slot {
    /* memory in the activation arena */
    char *memory;
    /* memory of the micro-batch's slot in the previous chunk; NULL if that chunk is on another
     * stage; borrowed */
    char *before;
    /* arguments of each run of the chunk, in the order of ChunkPlan.run; owned */
    OpRun *run;
    /* true: the micro-batch has no samples, so only synced operations run */
    bool empty;
    /* metrics of the micro-batch, METRIC_PAD floats in StepReport.metrics; borrowed */
    float *metrics;
} Slot;

typedef struct ChunkRun {
    const ChunkPlan *plan;
    /* slots, [plan->slots]; owned */
    Slot *slot;
} ChunkRun;

typedef struct SlotMemory {
    const Context *context;
    /* arena of slots and scratch memory; owned */
    char *activations;
    /* arena of repacked weights; owned */
    char *cache;
    /* memory that an operation uses while it runs; owned */
    char *workspace;
    /* start of scratch memory in activations */
    char *scratch;
    /* chunks of this stage, [plan->chunk_count]; owned */
    ChunkRun *chunk;
} SlotMemory;

/* Arguments of operations that are not in slots. All are borrowed. */
typedef struct SlotLinks {
    /* parameters as operations read them */
    float *weights;
    /* exchange with the tensor-parallel group, or NULL */
    const Exchange *exchange;
    /* sums over the other replicas, or NULL */
    const Replicas *replicas;
} SlotLinks;
void slot_memory_init(SlotMemory *memory, const Context *context, const SlotLinks *links);
void slot_memory_fini(SlotMemory *memory);
/* Returns the address of a place (pipeline/plan.h, OFFSET_*) for the micro-batch in `slot`. NULL:
 * the place is OFFSET_NONE or OFFSET_INPUT, or it is in the previous chunk's slot and
 * slot_bind_before has not been called. */
void *slot_address(const SlotMemory *memory, const ChunkRun *chunk, const Slot *slot,
                   int64_t place);
/* Sets the addresses of the tensors that the slot's runs read in `before`, the same micro-batch's
 * slot in the previous chunk. */
void slot_bind_before(const SlotMemory *memory, const ChunkRun *chunk, Slot *slot,
                      const Slot *before);
/* Returns the run of the loss for the micro-batch in `slot`; the chunk must contain the loss. */
const OpRun *slot_loss(const SlotMemory *memory, const ChunkRun *chunk, const Slot *slot);

#endif
