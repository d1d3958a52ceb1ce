/* Forecasts of fields by a trained model: its outputs become its inputs, step after step. A step
 * moves a state's time to the last offset of the targets. Inputs whose variable and level are
 * targets are replaced; all other inputs are read from the set. */
#ifndef WEFT_TRAIN_ROLLOUT_H
#define WEFT_TRAIN_ROLLOUT_H

#include "data/field_read.h"
#include "train.h"

typedef struct Rollout Rollout;
/* Prepares forecasts of `steps` steps from samples of set, which must be the trainer's. Requires
 * one rank and a batch of one micro-batch. ERR_CONFIG: with more than one step, the window needs
 * frames that are neither read nor predicted, or the model predicts none of its inputs. Borrows
 * both; released with rollout_free. */
Status rollout_new(Rollout **rollout, Trainer *trainer, const DataSet *set, int64_t steps);
void rollout_free(Rollout **rollout);
/* Number of fields of a forecast in time, steps x offsets of the targets; and the offset of each
 * from the start, in frames of the set; borrowed. */
int rollout_leads(const Rollout *rollout);
const int64_t *rollout_lead_frames(const Rollout *rollout);
/* Number of targets at one lead; those of lead 0 are f->target[0 ... channels - 1]. */
int rollout_channels(const Rollout *rollout);
/* Returns the number of steps that forecasts from a sample can have, at most rollout_new's: the
 * set has the inputs that are not predicted. */
int64_t rollout_limit(const Rollout *rollout, int64_t sample);
/* Forecasts from samples sample[0 ... count - 1], at most as many as the trainer's batch has.
 * predicted: (count, leads, channels, H, W) in the variables' units; of label fields the numbers of
 * classes. ERR_USAGE, with the number of steps that are possible: the set lacks inputs; ERR_DATA,
 * with sample and step: an output is not finite, or overflows in the variables' units. */
Status rollout_run(Rollout *rollout, const int64_t *sample, int count, float *predicted);
/* Reads what the set has at the times of a forecast, NaN where it has nothing: truth, (leads,
 * channels, H, W); and persistence, (channels, H, W), the last inputs, NaN for variables that are
 * no inputs. Of label fields persistence is the input that field_shown_input names. */
Status rollout_truth(Rollout *rollout, int64_t sample, float *truth, float *persistence);

#endif
