/* pipeline: plans what one rank does in a step (memory, messages, lists of actions) from a planned
 * graph, a cut of the model and a schedule, and executes that plan. A plan is read-only data: it
 * can be printed and measured without being executed, for any stage of any grid. Planning is not
 * collective; executing is collective over the ranks of the grid. A rank's stage has one or more
 * chunks of the model. A chunk has up to three passes: forward, backward, and a separate pass for
 * the gradients of weights if the schedule splits backward. A pass is a list of actions on nodes.
 * Tensors that a later pass reads are in a slot; a chunk has one slot for each micro-batch in
 * flight. All other tensors are in free parts of the slot, or in scratch memory that all chunks
 * share. */
#ifndef WEFT_PIPELINE_H
#define WEFT_PIPELINE_H

#include "pipeline/plan.h"
#include "pipeline/executor.h"

#endif
