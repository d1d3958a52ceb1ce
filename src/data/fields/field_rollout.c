/* Prepares a set of fields for rollouts, in which the model is applied several times (steps). A
 * sample has the targets of all steps. Its inputs are the inputs of the first step, followed by
 * those that later steps read from the data. A step spans the time from the last input to the
 * target. If a later step needs a channel at or before the time of the first step's last input, it
 * reads the data. After this time, it reads the model's own output if the channel is a target; if
 * it is not (a forcing), it reads the data. */
#include "fields_private.h"

#include <string.h>

/* Returns the number of frames from the last input to the target of the first step. */
static int step_frames(const FieldSet *f)
{
    return f->offset[FIELD_TARGET][0] - f->offset[FIELD_INPUT][f->offsets[FIELD_INPUT] - 1];
}

/* Returns the number of frames from the last input of the first step to the time at which step
 * `step` (from 1) reads input `channel`; 0 or less: the time is not after the last input. */
static int frames_ahead(const FieldSet *f, int step, int channel)
{
    const int *offset = f->offset[FIELD_INPUT];
    return offset[f->input[channel].offset] - offset[f->offsets[FIELD_INPUT] - 1] +
           (step - 1) * step_frames(f);
}

/* Returns the index of the target of the first step that has the variable and level of input
 * `channel`; -1: there is none. */
static int target_of(const FieldSet *f, int channel)
{
    for (int i = 0; i < f->step_targets; ++i)
        if (field_is_same(f, &f->input[channel], &f->target[i])) return i;
    return -1;
}

/* Returns the index of the input that has the variable and level of input `channel` and an offset
 * of `frames` frames; -1: there is none. */
static int input_at(const FieldSet *f, int channel, int frames)
{
    for (int i = 0; i < f->inputs; ++i)
        if (field_is_same(f, &f->input[channel], &f->input[i]) &&
            f->offset[FIELD_INPUT][f->input[i].offset] == frames)
            return i;
    return -1;
}

FieldSource field_source(const FieldSet *f, int step, int channel)
{
    const int last = f->offset[FIELD_INPUT][f->offsets[FIELD_INPUT] - 1];
    const int ahead = frames_ahead(f, step, channel), target = target_of(f, channel);
    if (f->variable[f->input[channel].variable].is_static) return (FieldSource){channel, 0, -1};
    if (target < 0 || ahead <= 0) return (FieldSource){input_at(f, channel, last + ahead), 0, -1};
    return (FieldSource){f->change_from[target], ahead / step_frames(f), target};
}

/* Adds to the inputs the channel that step `step` reads from the data in place of input
 * `channel`. */
static Status add_input(FieldSet *f, const Config *config, int step, int channel)
{
    const int frames =
        f->offset[FIELD_INPUT][f->offsets[FIELD_INPUT] - 1] + frames_ahead(f, step, channel);
    FieldChannel added = f->input[channel];
    int at = 0;
    while (at < f->offsets[FIELD_INPUT] + f->later_offsets && f->offset[FIELD_INPUT][at] != frames)
        ++at;
    if (at == FIELD_OFFSETS || f->inputs == FIELD_CHANNELS)
        return config_fail_key(config, "train.rollout",
                               "%d steps need more than %d channels, or times, of inputs", f->steps,
                               at == FIELD_OFFSETS ? FIELD_OFFSETS : FIELD_CHANNELS);
    if (at == f->offsets[FIELD_INPUT] + f->later_offsets) ++f->later_offsets;
    f->offset[FIELD_INPUT][at] = frames;
    added.offset = (int16_t)at;
    f->input[f->inputs++] = added;
    return OK;
}

Status field_rollout_offsets(FieldSet *f, const Config *config)
{
    int *target = f->offset[FIELD_TARGET];
    const int steps = (int)config->train.rollout, frames = step_frames(f);
    f->steps = steps;
    if (steps == 1) return OK;
    if (steps > FIELD_OFFSETS)
        return config_fail_key(config, "train.rollout", "at most %d steps are possible",
                               FIELD_OFFSETS);
    if (f->offsets[FIELD_TARGET] != 1)
        return config_fail_key(config, "data.window",
                               "train.rollout makes the targets of all steps itself: give one "
                               "offset of targets, that of the first step");
    if (frames < 1)
        return config_fail_key(config, "data.window",
                               "train.rollout needs a target after the last of the inputs");
    for (int k = 1; k < steps; ++k) target[k] = target[0] + k * frames;
    f->offsets[FIELD_TARGET] = steps;
    return OK;
}

Status field_rollout_inputs(FieldSet *f, const Config *config)
{
    bool feeds = false;
    f->step_inputs = f->inputs;
    f->step_targets = f->targets / f->steps;
    for (int step = 2; step <= f->steps; ++step)
        for (int c = 0; c < f->step_inputs; ++c) {
            const FieldSource from = field_source(f, step, c);
            feeds = feeds || from.target >= 0;
            if (from.target >= 0 && frames_ahead(f, step, c) % step_frames(f) != 0)
                return config_fail_key(config, "data.window",
                                       "train.rollout: step %d reads %s at a time between two "
                                       "outputs: give inputs in multiples of the time to the "
                                       "target",
                                       step, f->variable[f->input[c].variable].name);
            if (from.target < 0 && from.channel < 0) TRY(add_input(f, config, step, c));
        }
    if (f->steps == 1 || feeds) return OK;
    return config_fail_key(config, "train.rollout",
                           "no target is an input, so no step could read outputs of the model: "
                           "add a target to the inputs, or set train.rollout to 1");
}

void data_fields_share_stats(DataSet *set)
{
    FieldSet *f = &set->field_set;
    for (int i = f->step_inputs; i < f->inputs; ++i)
        for (int k = 0; k < f->step_inputs; ++k)
            if (field_is_same(f, &f->input[i], &f->input[k])) {
                set->mean[i] = set->mean[k];
                set->std[i] = set->std[k];
                break;
            }
    for (int i = f->step_targets; i < f->targets; ++i) {
        f->target_mean[i] = f->target_mean[i - f->step_targets];
        f->target_std[i] = f->target_std[i - f->step_targets];
    }
}
