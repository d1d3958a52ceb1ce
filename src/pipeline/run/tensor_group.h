/* A tensor-parallel group: the exchange of slices that operations use, and the sum of partial
 * gradients at the end of a step. */
#ifndef WEFT_PIPELINE_TENSOR_GROUP_H
#define WEFT_PIPELINE_TENSOR_GROUP_H

#include "grad_sync.h"

typedef struct TensorGroup TensorGroup;
/* Opens the group's exchange and, if it uses host memory, sets context->progress.group. *group is
 * NULL if the group has one rank. Owner: the caller, also on an error. Collective on the grid. */
Status tensor_group_new(TensorGroup **group, Context *context);
/* Collective. */
void tensor_group_free(TensorGroup **group);
/* Returns the exchange that operations use; NULL if group is NULL. */
const Exchange *tensor_group_exchange(const TensorGroup *group);
/* Adds up over the group the gradients of which each rank has a partial sum, and the values that
 * ranks have set (metrics from METRIC_STOP on). metrics: the step's sums, or NULL if another
 * replica has them. Collective on the group. */
void tensor_group_sum(TensorGroup *group, const GradSync *sync, float *metrics);

#endif
