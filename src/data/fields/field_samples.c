/* Finds the segments and samples of a set of fields. A segment is consecutive frames at equal
 * distances in time. It ends at a gap in the times, where times begin again, or, if frames have no
 * times, at the end of its file. All frames of a sample's window are in one segment, so no sample
 * joins frames on two sides of a gap. */
#include "calendar.h"
#include "fields_private.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* largest deviation of a distance in time from a multiple of the usual distance between frames, as
 * a fraction of the usual distance */
#define STEP_TOLERANCE 1e-3

static int compare_doubles(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Returns the most frequent distance by which times grow from one frame to the next; 0: they never
 * grow. */
static double usual_step(const double *times, int64_t frames)
{
    double *step = mem_new((size_t)(frames > 1 ? frames : 1) * sizeof *step), best = 0;
    int64_t count = 0, most = 0, run = 0;
    for (int64_t i = 1; i < frames; ++i)
        if (times[i] > times[i - 1]) step[count++] = times[i] - times[i - 1];
    qsort(step, (size_t)count, sizeof *step, compare_doubles);
    for (int64_t i = 0; i < count; ++i) {
        run = i > 0 && step[i] - step[i - run] <= STEP_TOLERANCE * step[i] ? run + 1 : 1;
        if (run > most) most = run, best = step[i];
    }
    mem_free(&step);
    return best;
}

/* Returns whether a new segment begins with this frame, which is not the first. */
static bool segment_ends(const FieldSet *f, const double *times, int64_t frame)
{
    if (!times) return f->file[field_find_file(f, frame)].first_frame == frame;
    const double distance = times[frame] - times[frame - 1];
    return fabs(distance - f->step_s) > STEP_TOLERANCE * f->step_s;
}

static Status find_segments(FieldSet *f, const double *times)
{
    const int64_t frames = field_frames(f);
    int64_t room = 0;
    f->step_s = times ? usual_step(times, frames) : 0;
    for (int64_t i = 0; i < frames; ++i) {
        if (f->segments == room) {
            room = 2 * room + 64;
            f->segment = mem_resize(f->segment, (size_t)room * sizeof *f->segment);
        }
        if (i == 0 || segment_ends(f, times, i)) {
            if (f->segments == FIELD_SEGMENTS)
                return fail(ERR_DATA,
                            "%s: its times have more than %d gaps: frames must be at equal "
                            "distances in time",
                            field_path(f, 0), FIELD_SEGMENTS);
            f->segment[f->segments++] = (FieldSegment){.first = i, .start = times ? times[i] : 0};
        }
        ++f->segment[f->segments - 1].frames;
    }
    return OK;
}

/* Converts the offsets of a role, `list`, to numbers of frames. */
static Status find_offsets(const Config *config, FieldSet *f, FieldRole role,
                           const ConfigList *list)
{
    const ConfigWindow *window = &config->data.window;
    if (list->count > FIELD_OFFSETS)
        return config_fail_key(config, "data.window", "has %d offsets, at most %d are possible",
                               list->count, FIELD_OFFSETS);
    f->offsets[role] = list->count > 0 ? list->count : 1;
    for (int i = 0; i < list->count; ++i) {
        const double value = list->value[i];
        if (value != 0 && window->seconds && f->step_s == 0)
            return config_fail_key(config, "data.window",
                                   "%s has no times, by which offsets in time could be found: give "
                                   "them in steps, [-1, 0]",
                                   field_path(f, 0));
        const double steps = value != 0 && window->seconds ? value / f->step_s : value;
        if (fabs(steps - rint(steps)) > STEP_TOLERANCE || fabs(steps) > INT32_MAX / 4)
            return config_fail_key(config, "data.window",
                                   "an offset of %g s is no multiple of the %g s between frames of "
                                   "%s",
                                   value, f->step_s, field_path(f, 0));
        f->offset[role][i] = (int)rint(steps);
    }
    return OK;
}

/* Returns whether a target is also an input at the same time. */
static bool targets_are_inputs(const Config *config, const FieldSet *f)
{
    const ConfigVariables *list = &config->data.variables;
    bool same_time = false;
    for (int i = 0; i < f->offsets[FIELD_INPUT]; ++i)
        for (int k = 0; k < f->offsets[FIELD_TARGET]; ++k)
            same_time |= f->offset[FIELD_INPUT][i] == f->offset[FIELD_TARGET][k];
    for (int i = 0; same_time && i < list->count; ++i)
        for (int k = 0; k < list->count; ++k)
            if (list->item[i].role == FIELD_INPUT && list->item[k].role == FIELD_TARGET &&
                !strcmp(list->item[i].name, list->item[k].name))
                return true;
    return false;
}

/* Numbers the samples of all segments. Returns the number of frames that a window spans. */
static int number_samples(DataSet *set)
{
    FieldSet *f = &set->field_set;
    int low = 0, high = 0;
    for (int role = 0; role < FIELD_WINDOWS; ++role)
        for (int i = 0; i < f->offsets[role]; ++i) {
            if (f->offset[role][i] < low) low = f->offset[role][i];
            if (f->offset[role][i] > high) high = f->offset[role][i];
        }
    set->samples = 0;
    for (int i = 0; i < f->segments; ++i) {
        FieldSegment *s = &f->segment[i];
        s->first_sample = set->samples;
        s->first_sample_frame = s->first - low;
        s->samples = s->frames > high - low ? s->frames - (high - low) : 0;
        set->samples += s->samples;
    }
    return high - low + 1;
}

Status field_samples_find(DataSet *set, const Config *config, const double *times)
{
    FieldSet *f = &set->field_set;
    TRY(find_segments(f, times));
    TRY(find_offsets(config, f, FIELD_INPUT, &config->data.window.inputs));
    TRY(find_offsets(config, f, FIELD_TARGET, &config->data.window.targets));
    TRY(field_rollout_offsets(f, config));
    if (targets_are_inputs(config, f))
        return config_fail_key(config, "data.window",
                               "a target is an input of the same time, so there is nothing to "
                               "learn: give the times, {inputs: [0], targets: [1]}");
    const int span = number_samples(set);
    if (set->samples > 0) return OK;
    if (times && f->step_s == 0 && field_frames(f) > 1)
        return fail(ERR_DATA,
                    "%s: its times fall from frame to frame or stay the same: store frames in the "
                    "order of time",
                    field_path(f, 0));
    return fail(ERR_DATA,
                "%s: no sample has all of its frames: the window spans %d frames, and the longest "
                "run of frames at equal distances is shorter",
                field_path(f, 0), span);
}

/* The times that data.train_time or data.test_time selects. */
typedef struct Span {
    /* first and last time, in seconds */
    double from, to;
    /* true: the time `to` itself is not selected */
    bool excludes_to;
} Span;

/* Cuts a segment to the frames in a span. Returns false if no frame remains. */
static bool cut_segment(const FieldSet *f, FieldSegment *s, Span span)
{
    const double begin = (span.from - s->start) / f->step_s, end = (span.to - s->start) / f->step_s;
    const double low = fmax(0, ceil(begin - STEP_TOLERANCE));
    const double last =
        span.excludes_to ? ceil(end - STEP_TOLERANCE) - 1 : floor(end + STEP_TOLERANCE);
    const double high = fmin((double)(s->frames - 1), last);
    if (low > high) return false;
    s->first += (int64_t)low;
    s->start += low * f->step_s;
    s->frames = (int64_t)(high - low) + 1;
    return true;
}

/* Finds the span that `times`, the value of configuration key `key`, selects. */
static Status read_times(const DataSet *set, const Config *config, const char *key,
                         const ConfigTimes *times, Span *span)
{
    const FieldSet *f = &set->field_set;
    double unused, last;
    if (f->step_s == 0)
        return config_fail_key(config, key, "the frames of %s have no times", field_path(f, 0));
    const Calendar calendar = (Calendar)f->calendar;
    const char *bad = !time_read(calendar, times->from, &span->from, &unused) ? times->from
                      : !time_read(calendar, times->to, &last, &span->to)     ? times->to
                                                                              : NULL;
    span->excludes_to = !bad && span->to > last;
    if (!bad && (span->excludes_to ? span->from < span->to : span->from <= span->to)) return OK;
    if (!bad) return config_fail_key(config, key, "%s is after %s", times->from, times->to);
    return config_fail_key(config, key, "'%s' is no date of the calendar %s of %s, as 2001-12-31",
                           bad, calendar_name(calendar), field_path(f, 0));
}

Status data_set_select_times(DataSet *set, const Config *config, bool test)
{
    FieldSet *f = &set->field_set;
    const ConfigTimes *times = test ? &config->data.test_time : &config->data.train_time;
    const char *key = test ? "data.test_time" : "data.train_time";
    char first[FIELD_TIME_TEXT], last[FIELD_TIME_TEXT];
    Span span;
    int kept = 0;
    if (!times->from || !data_has_fields(set)) return OK;
    TRY(read_times(set, config, key, times, &span));
    const FieldSegment *end = &f->segment[f->segments - 1];
    field_time_text(f, f->segment[0].start, first);
    field_time_text(f, field_frame_time(f, end->first + end->frames - 1), last);
    for (int i = 0; i < f->segments; ++i) {
        FieldSegment s = f->segment[i];
        if (cut_segment(f, &s, span)) f->segment[kept++] = s;
    }
    f->segments = kept;
    number_samples(set);
    set->x.dim[0] = set->y.dim[0] = set->samples;
    if (set->samples > 0) return OK;
    return config_fail_key(config, key,
                           "no sample of %s has all its frames between %s and %s: its times are "
                           "%s to %s",
                           field_path(f, 0), times->from, times->to, first, last);
}

int field_find_segment(const FieldSet *f, int64_t frame)
{
    return index_at_most(&f->segment[0].first, sizeof *f->segment, f->segments, frame);
}

double field_frame_time(const FieldSet *f, int64_t frame)
{
    const FieldSegment *s = &f->segment[field_find_segment(f, frame)];
    return f->step_s > 0 ? s->start + (double)(frame - s->first) * f->step_s : (double)frame;
}

int64_t field_sample_frame(const FieldSet *f, int64_t sample)
{
    /* several segments may have the same first_sample; only the last one has samples */
    const FieldSegment *s = &f->segment[index_at_most(&f->segment[0].first_sample,
                                                      sizeof *f->segment, f->segments, sample)];
    return s->first_sample_frame + sample - s->first_sample;
}
