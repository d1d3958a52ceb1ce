/* Rollouts in training (train.rollout): builds a model of fields with several steps. Each step
 * after the first reads predictions of earlier steps. */
#ifndef WEFT_TRAIN_FIELD_STEPS_H
#define WEFT_TRAIN_FIELD_STEPS_H

#include "data.h"
#include "model.h"

/* Builds the model for a set of fields with several steps. The outputs of a step are converted to
 * inputs of the next step with the set's means and deviations. input: shape of a micro-batch of
 * samples. targets: number of output channels of a step. Returns the errors of
 * graph_build_rollout. */
Status field_steps_build(Graph **graph, const Config *config, const DataSet *set, Desc input,
                         int64_t targets);

#endif
