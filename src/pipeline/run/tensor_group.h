/* The ranks of a tensor group: the way by which operations exchange slices, and what the ranks owe
 * each other at a step's end. */
#ifndef WEFT_PIPELINE_TENSOR_GROUP_H
#define WEFT_PIPELINE_TENSOR_GROUP_H

#include "grad_sync.h"

typedef struct TensorGroup TensorGroup;
/* NULL for one rank. Sets context->progress.group. Owner: the caller. Collective on the grid. */
Status tensor_group_new(TensorGroup **group, Context *context);
/* Collective. */
void tensor_group_free(TensorGroup **group);
/* NULL for no group */
const Exchange *tensor_group_exchange(const TensorGroup *group);
/* Adds up the gradients of which each rank has a part, and what was asked (METRIC_STOP
 * and behind): metrics, the step's sums of them, or NULL where they are another replica's. Nothing
 * without a group. Collective on the group. */
void tensor_group_sum(TensorGroup *group, const GradSync *sync, float *metrics);

#endif
