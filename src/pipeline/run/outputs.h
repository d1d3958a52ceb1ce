/* Results of an evaluation in host memory: the lines of the loss's y (one for each sample or
 * token), and the logits. */
#ifndef WEFT_PIPELINE_OUTPUTS_H
#define WEFT_PIPELINE_OUTPUTS_H

#include "slot_memory.h"

typedef struct Outputs {
    const Context *context;
    /* copy of the loss's results, used if operations do not use host memory; owned */
    float *columns;
    /* floats of the loss's results for one sample: LOSS_COLUMNS for each of its lines */
    int64_t columns_per_sample;
    /* inputs of the loss as floats in plain order, each allocated at its first use; owned */
    float *logits[SPEC_INPUTS];
    /* slot of the micro-batch that was evaluated last; borrowed */
    const Slot *slot;
    /* true for inputs of this micro-batch that are in `logits` */
    bool converted[SPEC_INPUTS];
} Outputs;

void outputs_init(Outputs *outputs, const Context *context);
void outputs_fini(Outputs *outputs);
/* Call it in an evaluation when the forward pass of the chunk with the loss has ended in `slot`. */
void outputs_evaluated(Outputs *outputs, const Slot *slot);
/* Returns the loss's results, (lines, LOSS_COLUMNS), in host memory, for the micro-batch whose
 * forward pass has just ended in `slot`. rows: samples of the micro-batch. */
const float *outputs_columns(const Outputs *outputs, const SlotMemory *memory,
                             const ChunkRun *chunk, const Slot *slot, int64_t rows);
/* Implements executor_logits. */
const float *outputs_logits(Outputs *outputs, const SlotMemory *memory, int output);

#endif
