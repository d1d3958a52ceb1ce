/* Forecasts fields. Inputs of a step are fields that earlier steps have predicted, or fields that
 * are read from the set:
 *
 *     frames      -1   0 |  1    2    3        window {inputs: [-1, 0], targets: [1]}
 *     step 0       x   x -> p
 *     step 1           x    p -> p
 *     step 2                p    p -> p        x: read, p: predicted
 */
#include "train/rollout.h"

#include "data/field_picture.h"
#include "eval_data.h"
#include "label_scores.h"

#include <math.h>
#include <string.h>

struct Rollout {
    /* borrowed */
    Trainer *trainer;
    /* borrowed */
    const DataSet *set;
    /* owned */
    FieldReader *reader;
    /* number of steps of a forecast */
    int64_t steps;
    /* number of targets at one time */
    int channels;
    /* frames of the set from one step to the next */
    int advance;
    /* number of frames from the start of a forecast to each of its times, [leads]; owned */
    int64_t *lead_frame;
    /* for each input, index (below `channels`) of the target that predicts it; -1: the input is
     * read from the set */
    int target_of_input[FIELD_CHANNELS];
    /* the model's inputs; batch.x, (batch,C,H,W), has normalised values and is owned */
    MicroBatch batch;
    /* the same inputs in the variables' units, (batch,C,H,W); owned. A missing value is the mean,
     * which normalisation turns into 0, as in training. */
    float *units;
    /* For each target of a forecast at one time, (batch, channels, pixels): true if it is a change
     * since a missing input, so that the forecast is missing, too; owned */
    bool *missing;
    /* all levels of a variable at one time, (levels,H,W); owned */
    double *plane;
};

int rollout_leads(const Rollout *r)
{
    return (int)r->steps * r->set->field_set.offsets[FIELD_TARGET];
}

const int64_t *rollout_lead_frames(const Rollout *r)
{
    return r->lead_frame;
}

int rollout_channels(const Rollout *r)
{
    return r->channels;
}

/* ---- set-up ---- */

/* Returns the index of the target that predicts an input; -1: there is none. */
static int find_target(const Rollout *r, const FieldChannel *a)
{
    const FieldSet *f = &r->set->field_set;
    for (int i = 0; i < r->channels; ++i)
        if (field_is_same(f, a, &f->target[i])) return i;
    return -1;
}

/* Returns the index in lead_frame of the time that is `frame` frames after the forecast's start;
 * -1: there is no prediction for it. */
static int find_lead(const Rollout *r, int64_t frame)
{
    for (int i = 0; i < rollout_leads(r); ++i)
        if (r->lead_frame[i] == frame) return i;
    return -1;
}

/* Checks that forecasts of several steps are possible: at least one input must be predicted by a
 * target, and each such input whose frame is after the start must be predicted by an earlier
 * step. */
static Status check_window(const Rollout *r)
{
    const FieldSet *f = &r->set->field_set;
    int fed = 0;
    if (r->steps == 1) return OK;
    if (r->set->y.dim[2] != r->set->height || r->set->y.dim[3] != r->set->width)
        return fail(ERR_CONFIG,
                    "--rollout: targets and inputs differ in size, so outputs cannot become "
                    "inputs");
    for (int i = 0; i < f->inputs; ++i) {
        if (r->target_of_input[i] < 0) continue;
        ++fed;
        for (int64_t s = 1; s < r->steps; ++s) {
            const int64_t frame = s * r->advance + f->offset[FIELD_INPUT][f->input[i].offset];
            if (frame > 0 && find_lead(r, frame) < 0)
                return config_fail_key(r->trainer->config, "data.window",
                                       "step %lld of a rollout needs frame %lld after its start "
                                       "as input, but no target is there: the targets must have "
                                       "all offsets from 1 to the last",
                                       (long long)s + 1, (long long)frame);
        }
    }
    if (fed > 0) return OK;
    return config_fail_key(r->trainer->config, "data.variables",
                           "a rollout needs a target that is an input, too");
}

Status rollout_new(Rollout **rollout, Trainer *t, const DataSet *set, int64_t steps)
{
    const FieldSet *f = &set->field_set;
    const int offsets = f->offsets[FIELD_TARGET];
    const size_t inputs = (size_t)(t->batch * set->channels * set->height * set->width);
    const int64_t pixels = set->y.dim[2] * set->y.dim[3] > set->height * set->width
                               ? set->y.dim[2] * set->y.dim[3]
                               : set->height * set->width;
    Rollout *r = *rollout = mem_new(sizeof *r);
    *r = (Rollout){.trainer = t, .set = set, .steps = steps, .channels = f->targets / offsets};
    r->advance = f->offset[FIELD_TARGET][offsets - 1];
    r->lead_frame = mem_new((size_t)rollout_leads(r) * sizeof *r->lead_frame);
    for (int64_t i = 0; i < rollout_leads(r); ++i)
        r->lead_frame[i] = i / offsets * r->advance + f->offset[FIELD_TARGET][i % offsets];
    for (int i = 0; i < f->inputs; ++i) r->target_of_input[i] = find_target(r, &f->input[i]);
    r->batch.x = mem_new(inputs * sizeof(float));
    r->units = mem_new(inputs * sizeof(float));
    r->missing =
        mem_new((size_t)(t->batch * r->channels) * (size_t)(set->y.dim[2] * set->y.dim[3]));
    r->plane = mem_new((size_t)(FIELD_LEVELS * pixels) * sizeof *r->plane);
    Status st = OK;
    if (steps > 1 && data_has_label_fields(set))
        st = fail(ERR_USAGE,
                  "--rollout: the model predicts labels, which cannot become inputs: leave it out");
    if (st == OK && steps > 1 && r->advance < 1)
        st = config_fail_key(t->config, "data.window",
                             "a rollout needs targets after the sample's own time");
    if (st == OK) st = check_window(r);
    if (st == OK) st = field_reader_new(&r->reader, set);
    if (st != OK) rollout_free(rollout);
    return st;
}

void rollout_free(Rollout **rollout)
{
    Rollout *r = *rollout;
    if (!r) return;
    field_reader_free(&r->reader);
    mem_free(&r->lead_frame);
    mem_free(&r->batch.x);
    mem_free(&r->units);
    mem_free(&r->missing);
    mem_free(&r->plane);
    mem_free(rollout);
}

/* ---- inputs ---- */

int64_t rollout_limit(const Rollout *r, int64_t sample)
{
    const FieldSet *f = &r->set->field_set;
    const int64_t frame = field_sample_frame(f, sample);
    const FieldSegment *segment = &f->segment[field_find_segment(f, frame)];
    int64_t most = r->steps;
    for (int i = 0; i < f->inputs; ++i) {
        const FieldVariable *v = &f->variable[f->input[i].variable];
        if (r->target_of_input[i] >= 0 || v->is_static || v->extra_kind) continue;
        const int64_t last = frame + f->offset[FIELD_INPUT][f->input[i].offset];
        const int64_t left = segment->first + segment->frames - 1 - last;
        if (r->advance > 0 && left / r->advance + 1 < most) most = left / r->advance + 1;
    }
    return most;
}

/* Notes which targets are changes since input channel i, read from the set, and where it is
 * missing. missing: (channels, pixels). */
static void note_missing(const Rollout *r, int i, const double *read, bool *missing)
{
    const int64_t pixels = r->set->height * r->set->width;
    for (int target = 0; target < r->channels; ++target)
        for (int64_t k = 0; r->set->field_set.change_from[target] == i && k < pixels; ++k)
            missing[target * pixels + k] = isnan(read[k]);
}

/* Fills input channel i of a forecast at a step, (H,W): x with normalised values, `units` with
 * values in the variable's units. frame: frame of the forecast's start. predicted: earlier
 * predictions of this forecast, (leads, channels, pixels). missing: (channels, pixels), which step
 * 0 sets. */
static Status fill_channel(Rollout *r, int i, int64_t frame, int64_t step, const float *predicted,
                           float *x, float *units, bool *missing)
{
    const DataSet *set = r->set;
    const FieldSet *f = &set->field_set;
    const FieldChannel *c = &f->input[i];
    const int64_t pixels = set->height * set->width;
    const int64_t ahead = step * r->advance + f->offset[FIELD_INPUT][c->offset];
    const double mean = set->has_stats ? (double)set->mean[i] : 0;
    const double factor = 1 / (set->has_stats ? (double)set->std[i] : 1);
    const bool fed = r->target_of_input[i] >= 0 && step > 0 && ahead > 0;
    const double *read = r->plane + c->level * pixels;
    const float *state =
        fed ? predicted + (find_lead(r, ahead) * r->channels + r->target_of_input[i]) * pixels
            : NULL;
    const FieldChannel *before = i > 0 ? c - 1 : NULL;
    const bool already_read = before && before->variable == c->variable &&
                              before->offset == c->offset &&
                              !(r->target_of_input[i - 1] >= 0 && step > 0 && ahead > 0);
    /* all levels of a variable at one time are read together */
    if (!fed && !already_read)
        TRY(field_read_planes(r->reader, c->variable, frame, ahead, r->plane));
    if (step == 0) note_missing(r, i, read, missing);
    for (int64_t k = 0; k < pixels; ++k) {
        const double value = fed ? (double)state[k] : read[k];
        units[k] = (float)(isnan(value) ? mean : value);
        x[k] = isnan(value) ? 0 : (float)((value - mean) * factor);
    }
    return OK;
}

/* Writes to `predicted`, for each pixel of `count` samples, the class with the largest output. */
static Status choose_classes(const Rollout *r, const float *output, int count, float *predicted)
{
    const int64_t classes = r->set->classes, pixels = data_labels_per_sample(r->set);
    int32_t *class = mem_new((size_t)pixels * sizeof *class);
    const Status st = logits_check(output, count * classes * pixels);
    for (int b = 0; st == OK && b < count; ++b) {
        label_fields_choose(output + b * classes * pixels, classes, pixels,
                            r->trainer->backend->options.threads, class);
        for (int64_t i = 0; i < pixels; ++i) predicted[b * pixels + i] = (float)class[i];
    }
    mem_free(&class);
    return st;
}

/* Reports that values of a step are not finite. In step 0 the cause is the model's training, in
 * later steps the rollout. */
static Status fail_diverged(int64_t sample, int64_t step)
{
    return fail(ERR_DATA, "the forecast from sample %lld is NaN or infinite at step %lld: %s",
                (long long)sample, (long long)step + 1,
                step == 0 ? "the model's training diverged; use an earlier checkpoint"
                          : "the rollout diverged; predict fewer steps, or train the model with "
                            "more (train.rollout)");
}

/* Converts a step's outputs to the variables' units. ERR_DATA: a value is not finite. x: the
 * forecast's inputs in the variables' units. */
static Status restore_outputs(const Rollout *r, const float *x, float *output, int64_t sample,
                              int64_t step)
{
    const int64_t count = r->set->target_width;
    for (int64_t i = 0; i < count; ++i)
        if (!isfinite(output[i])) return fail_diverged(sample, step);
    field_denormalise(r->set, x, output);
    for (int64_t i = 0; i < count; ++i)
        if (!isfinite(output[i])) return fail_diverged(sample, step);
    return OK;
}

/* Marks the values of a forecast that are missing as NaN. predicted: (leads, channels, pixels). */
static void mark_missing(const Rollout *r, const bool *missing, float *predicted)
{
    const int64_t count = r->channels * r->set->y.dim[2] * r->set->y.dim[3];
    for (int l = 0; l < rollout_leads(r); ++l)
        for (int64_t i = 0; i < count; ++i)
            if (missing[i]) predicted[l * count + i] = NAN;
}

/* Runs one step of `count` forecasts. predicted: (count, leads, channels, pixels), of which the
 * step fills its own leads. */
static Status run_step(Rollout *r, const int64_t *sample, int count, int64_t step, float *predicted)
{
    const DataSet *set = r->set;
    const FieldSet *f = &set->field_set;
    const int64_t pixels = set->height * set->width, inputs = set->channels * pixels;
    const int64_t forecast = rollout_leads(r) * r->channels * set->y.dim[2] * set->y.dim[3];
    const float *output;
    r->batch.rows = count;
    for (int b = 0; b < count; ++b)
        for (int i = 0; i < f->inputs; ++i)
            TRY(fill_channel(r, i, field_sample_frame(f, sample[b]), step, predicted + b * forecast,
                             r->batch.x + b * inputs + i * pixels,
                             r->units + b * inputs + i * pixels,
                             r->missing + b * r->channels * set->y.dim[2] * set->y.dim[3]));
    TRY(run_unlabelled(r->trainer, &r->batch, &output));
    if (data_has_label_fields(set)) return choose_classes(r, output, count, predicted);
    for (int b = 0; b < count; ++b) {
        float *to = predicted + b * forecast + step * set->target_width;
        memcpy(to, output + b * set->target_width, (size_t)set->target_width * sizeof *to);
        TRY(restore_outputs(r, r->units + b * inputs, to, sample[b], step));
    }
    return OK;
}

Status rollout_run(Rollout *r, const int64_t *sample, int count, float *predicted)
{
    for (int b = 0; b < count; ++b)
        if (rollout_limit(r, sample[b]) < r->steps)
            return fail(ERR_USAGE,
                        "--rollout %lld: from sample %lld the set has inputs for %lld steps only "
                        "(those that the model does not predict)",
                        (long long)r->steps, (long long)sample[b],
                        (long long)rollout_limit(r, sample[b]));
    for (int64_t s = 0; s < r->steps; ++s) TRY(run_step(r, sample, count, s, predicted));
    const int64_t targets = r->channels * r->set->y.dim[2] * r->set->y.dim[3];
    for (int b = 0; b < count; ++b)
        mark_missing(r, r->missing + b * targets, predicted + b * rollout_leads(r) * targets);
    return OK;
}

/* ---- truth ---- */

/* Does for label fields what rollout_truth does. truth: the labels. input: the input that is shown
 * in pictures. NaN: missing. */
static Status read_labels(Rollout *r, int64_t sample, float *truth, float *input)
{
    const FieldSet *f = &r->set->field_set;
    const int64_t pixels = data_labels_per_sample(r->set);
    const int shown = field_shown_input(r->set);
    const FieldChannel *c = shown < 0 ? NULL : &f->input[shown];
    int32_t *label = mem_new((size_t)pixels * sizeof *label);
    Status st = field_read_sample_labels(r->reader, r->set, 0, sample, label);
    if (st == OK && c)
        st = field_read_variable(r->reader, c->variable,
                                 field_sample_frame(f, sample) + f->offset[FIELD_INPUT][c->offset],
                                 r->plane);
    for (int64_t i = 0; st == OK && i < pixels; ++i) {
        truth[i] = label[i] < 0 ? NAN : (float)label[i];
        input[i] = c ? (float)r->plane[c->level * pixels + i] : NAN;
    }
    mem_free(&label);
    return st;
}

Status rollout_truth(Rollout *r, int64_t sample, float *truth, float *persistence)
{
    if (data_has_label_fields(r->set)) return read_labels(r, sample, truth, persistence);
    const DataSet *set = r->set;
    const FieldSet *f = &set->field_set;
    const int64_t pixels = set->y.dim[2] * set->y.dim[3];
    const int64_t frame = field_sample_frame(f, sample);
    const FieldSegment *segment = &f->segment[field_find_segment(f, frame)];
    const int64_t end = segment->first + segment->frames;
    for (int l = -1; l < rollout_leads(r); ++l)
        for (int i = 0; i < r->channels; ++i) {
            const FieldChannel *c = &f->target[i];
            const int last = field_last_input(f, i);
            const int ahead =
                l < 0 ? f->offset[FIELD_INPUT][f->offsets[FIELD_INPUT] - 1] : (int)r->lead_frame[l];
            const bool exists = l < 0 ? last >= 0 : frame + ahead < end;
            float *to = l < 0 ? persistence + i * pixels : truth + (l * r->channels + i) * pixels;
            const bool already_read = i > 0 && c[-1].variable == c->variable;
            if (exists && !already_read)
                TRY(field_read_variable(r->reader, c->variable, frame + ahead, r->plane));
            for (int64_t k = 0; k < pixels; ++k)
                to[k] = exists ? (float)r->plane[c->level * pixels + k] : NAN;
        }
    return OK;
}
