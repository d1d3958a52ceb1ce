/* What an evaluation brings to the host: the loss's results for each sample, and its input. */
#ifndef WEFT_PIPELINE_OUTPUTS_H
#define WEFT_PIPELINE_OUTPUTS_H

#include "slot_memory.h"

typedef struct Outputs {
    const Context *context;
    /* owned: the loss's results */
    float *columns;
    /* of these */
    int64_t columns_per_sample;
    /* owned: its input, as floats; NULL until it is asked for */
    float *logits;
} Outputs;

void outputs_init(Outputs *outputs, const Context *context);
void outputs_fini(Outputs *outputs);
/* The loss's columns of the micro-batch that has just gone forward in slot, (rows, LOSS_COLUMNS),
 * in host memory. */
const float *outputs_columns(const Outputs *outputs, const SlotMemory *memory,
                             const ChunkRun *chunk, const Slot *slot, int64_t rows);
/* See executor_logits. */
const float *outputs_logits(Outputs *outputs, const SlotMemory *memory);

#endif
