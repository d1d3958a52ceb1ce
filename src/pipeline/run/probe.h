/* Finds the first NaN or infinite number of a step. */
#ifndef WEFT_PIPELINE_PROBE_H
#define WEFT_PIPELINE_PROBE_H

#include "input_ring.h"
#include "slot_memory.h"

/* Checks the tensors that an action on the micro-batch has written. */
void probe_action(StepFault *fault, const Context *context, const ChunkRun *chunk, const Slot *slot,
                  const Action *action, const MicroBatch *batch);

#endif
