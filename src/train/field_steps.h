/* Rollouts in training (train.rollout): builds a model of fields with several steps, each of which
 * reads predictions of earlier ones. */
#ifndef WEFT_TRAIN_FIELD_STEPS_H
#define WEFT_TRAIN_FIELD_STEPS_H

#include "data.h"
#include "model.h"

/* Builds the model for a set of fields with several steps, for micro-batches of shape input. The
 * outputs of a step are converted to inputs of the next step with the set's means and deviations.
 * targets: number of output channels of a step. ERR_CONFIG. */
Status field_steps_build(Graph **graph, const Config *config, const DataSet *set, Desc input,
                         int64_t targets);

#endif
