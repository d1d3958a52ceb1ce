/* Connects the steps of a rollout of fields in training. All fields are normalised: an input x,
 * with mean m and deviation s, is (value - m) / s. A target z, with mean m' and deviation s', is
 * (value - m') / s' or, if it is a change, (change - m') / s'. Changes are counted from the
 * sample's input at the last offset. A step that reads a target z of an earlier step therefore
 * reads
 *
 *     z s' / s + (m' - m) / s         if z is a value
 *     x + z s' / s + m' / s           if z is a change; x: the input from which it is counted
 *
 * If z is a change, the model's output y in a step is the change in this step only, so z of this
 * step is z of the step before + y + m' / s'. Otherwise z is y. */
#include "field_steps.h"

/* Mean and standard deviation of a channel. */
typedef struct Scale {
    double mean, deviation;
} Scale;

static Scale scale_of(const DataSet *set, const float *mean, const float *deviation, int channel)
{
    if (!set->has_stats) return (Scale){0, 1};
    return (Scale){(double)mean[channel], (double)deviation[channel]};
}

/* Returns the sum of channels that step `step`, counted from 1, reads as input `channel`. */
static ChannelSum state_of(const DataSet *set, int step, int channel)
{
    const FieldSet *f = &set->field_set;
    const FieldSource from = field_source(f, step, channel);
    const Scale x = scale_of(set, set->mean, set->std, channel);
    ChannelSum sum = {0};
    if (from.channel >= 0)
        sum.term[sum.terms++] = (ChannelTerm){.channel = (int16_t)from.channel, .factor = 1};
    if (from.target < 0) return sum;
    const Scale z = scale_of(set, f->target_mean, f->target_std, from.target);
    sum.term[sum.terms++] = (ChannelTerm){.input = (int16_t)from.step,
                                          .channel = (int16_t)from.target,
                                          .factor = (float)(z.deviation / x.deviation)};
    sum.shift = (float)((z.mean - (from.channel >= 0 ? 0 : x.mean)) / x.deviation);
    return sum;
}

/* Returns the sum that is z of channel `target` in a step after the first: the step's output or, if
 * z is a change, the sum of this output, z of the step before and a constant. */
static ChannelSum output_of(const DataSet *set, int target)
{
    const FieldSet *f = &set->field_set;
    const Scale z = scale_of(set, f->target_mean, f->target_std, target);
    ChannelSum sum = {.terms = 1, .term = {{.channel = (int16_t)target, .factor = 1}}};
    if (f->change_from[target] < 0) return sum;
    sum.term[sum.terms++] = (ChannelTerm){.input = 1, .channel = (int16_t)target, .factor = 1};
    sum.shift = (float)(z.mean / z.deviation);
    return sum;
}

Status field_steps_build(Graph **graph, const Config *config, const DataSet *set, Desc input,
                         int64_t targets)
{
    const FieldSet *f = &set->field_set;
    const size_t inputs = (size_t)f->step_inputs;
    ChannelSum *state = mem_new((size_t)f->steps * inputs * sizeof *state);
    ChannelSum *output = mem_new((size_t)f->step_targets * sizeof *output);
    for (int step = 1; step <= f->steps; ++step)
        for (int c = 0; c < f->step_inputs; ++c)
            state[(size_t)(step - 1) * inputs + (size_t)c] = state_of(set, step, c);
    for (int c = 0; c < f->step_targets; ++c) output[c] = output_of(set, c);
    const GraphRollout rollout = {.steps = f->steps,
                                  .inputs = f->step_inputs,
                                  .targets = f->step_targets,
                                  .input_terms = state,
                                  .z_terms = output};
    const Status st = graph_build_rollout(graph, config, input, &rollout, targets);
    mem_free(&state);
    mem_free(&output);
    return st;
}
