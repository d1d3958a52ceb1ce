/* Looks for the first number of a step that is none, or infinite. */
#ifndef WEFT_PIPELINE_PROBE_H
#define WEFT_PIPELINE_PROBE_H

#include "input_ring.h"
#include "slot_memory.h"

/* After an action on the micro-batch: what it has written. */
void probe_action(StepFault *fault, const Context *context, const ChunkRun *chunk, const Slot *slot,
                  const Action *action, const Batch *batch);

#endif
