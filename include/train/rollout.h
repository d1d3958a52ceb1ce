/* Forecasts fields with a trained model: in each step, the outputs of the step before become
 * inputs. A step advances the time by the last offset of the targets. If the model
 * predicts the variable and level of an input, the input's values after the start of the forecast
 * are predictions. All other inputs are read from the set. */
#ifndef WEFT_TRAIN_ROLLOUT_H
#define WEFT_TRAIN_ROLLOUT_H

#include "data/field_read.h"
#include "train.h"

typedef struct Rollout Rollout;
/* Prepares forecasts of `steps` steps from samples of set, which must be the trainer's. Requires
 * one rank and a batch of one micro-batch. Borrows trainer and set. Errors with more than one step:
 * - ERR_USAGE: the model predicts labels;
 * - ERR_CONFIG: targets and inputs differ in size, no target is later than the sample's own time,
 * the window of inputs has frames that are neither in the set nor predicted, or the model predicts
 * none of its inputs.
 * Release with rollout_free. */
Status rollout_new(Rollout **rollout, Trainer *trainer, const DataSet *set, int64_t steps);
void rollout_free(Rollout **rollout);
/* rollout_leads returns the number of times of a forecast: steps x offsets of the targets.
 * rollout_lead_frames returns the offset of each of them from the start, in frames of the set;
 * borrowed. */
int rollout_leads(const Rollout *rollout);
const int64_t *rollout_lead_frames(const Rollout *rollout);
/* Returns the number of targets at each time; the targets of the first time are the first
 * entries of f->target, where f is the set's FieldSet. */
int rollout_channels(const Rollout *rollout);
/* Returns the largest number of steps of a forecast from this sample, at most the steps of
 * rollout_new. It is limited because the set must have, for each step, the inputs that the model
 * does not predict. */
int64_t rollout_limit(const Rollout *rollout, int64_t sample);
/* Forecasts from samples sample[0] .. sample[count - 1]; count is at most the size of the trainer's
 * batch. predicted: (count, leads, channels, H, W), in the variables' units; for label fields,
 * numbers of classes. ERR_USAGE: the set lacks inputs; the message has the number of possible
 * steps. ERR_DATA: an output is not finite, or overflows in the variables' units; the message has
 * sample and step. */
Status rollout_run(Rollout *rollout, const int64_t *sample, int count, float *predicted);
/* Reads the set's fields at the times of a forecast. truth: (leads, channels, H, W), NaN if the set
 * has no field. persistence: (channels, H, W), the last inputs, NaN for variables that are not
 * inputs; for label fields, the input that field_shown_input returns. */
Status rollout_truth(Rollout *rollout, int64_t sample, float *truth, float *persistence);

#endif
