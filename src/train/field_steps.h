/* Rollouts in training (train.rollout): how the steps of a model of fields are joined. */
#ifndef WEFT_TRAIN_FIELD_STEPS_H
#define WEFT_TRAIN_FIELD_STEPS_H

#include "data.h"
#include "model.h"

/* Builds the model for a set of fields with several steps, for micro-batches of shape input. What
 * one step gives becomes what the next one reads by the set's means and deviations. targets:
 * channels that a step gives. ERR_CONFIG. */
Status field_steps_build(Graph **graph, const Config *config, const DataSet *set, Desc input,
                         int64_t targets);

#endif
