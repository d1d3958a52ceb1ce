/* Results of an evaluation in host memory: the per-sample results of the loss, and the logits. */
#ifndef WEFT_PIPELINE_OUTPUTS_H
#define WEFT_PIPELINE_OUTPUTS_H

#include "slot_memory.h"

typedef struct Outputs {
    const Context *context;
    /* copy of the loss's results, used if operations do not use host memory; owned */
    float *columns;
    /* number of columns of one sample */
    int64_t columns_per_sample;
    /* inputs of the loss as floats, each allocated at its first use; owned */
    float *logits[SPEC_INPUTS];
    /* slot: slot of the micro-batch that was evaluated last; borrowed. converted: true for inputs
     * of this micro-batch that are in `logits`. */
    const Slot *slot;
    bool converted[SPEC_INPUTS];
} Outputs;

void outputs_init(Outputs *outputs, const Context *context);
void outputs_fini(Outputs *outputs);
/* Call it when the forward pass of an evaluation has ended in slot. */
void outputs_evaluated(Outputs *outputs, const Slot *slot);
/* Returns the loss's columns, (rows, LOSS_COLUMNS), of the micro-batch whose forward pass in slot
 * has just ended, in host memory. */
const float *outputs_columns(const Outputs *outputs, const SlotMemory *memory,
                             const ChunkRun *chunk, const Slot *slot, int64_t rows);
/* See executor_logits. */
const float *outputs_logits(Outputs *outputs, const SlotMemory *memory, int output);

#endif
