/* Prints a set of fields, for `weft data info`: its variables as they are stored, files, segments
 * and the gaps between them, and the channels of a sample. */
#include "calendar.h"
#include "field_facts.h"
#include "fields_private.h"

#include <math.h>
#include <string.h>

/* largest number of segments, of files and of channels that the text lists; JSON lists all */
enum { SEGMENTS_LISTED = 12, FILES_LISTED = 64, CHANNELS_LISTED = 24 };

const char *field_time_text(const FieldSet *f, double time, char text[FIELD_TIME_TEXT])
{
    if (f->step_s > 0) return time_text((Calendar)f->calendar, time, text);
    snprintf(text, FIELD_TIME_TEXT, "%lld", (long long)time);
    return text;
}

const char *field_offset_text(const FieldSet *f, int64_t frames, char text[FIELD_TIME_TEXT])
{
    static const struct {
        double seconds;
        const char *name;
    } unit[] = {{86400, "d"}, {3600, "h"}, {60, "m"}, {1, "s"}};
    const double seconds = (double)frames * f->step_s;
    int i = 0;
    if (f->step_s == 0 || frames == 0) {
        snprintf(text, FIELD_TIME_TEXT, "%lld", (long long)frames);
        return text;
    }
    while (i < 3 && fmod(seconds, unit[i].seconds) != 0) ++i;
    snprintf(text, FIELD_TIME_TEXT, "%g%s", seconds / unit[i].seconds, unit[i].name);
    return text;
}

/* Returns whether the times of the first and of the last of `frames` frames are known. They are
 * unknown if the set has no times (step_s is 0), or if the first or the last frame is in no
 * segment, because data.train_time or data.test_time has left it out. */
static bool ends_are_known(const FieldSet *f, int64_t first, int64_t frames)
{
    const int64_t end[] = {first, first + frames - 1};
    for (int i = 0; i < 2; ++i) {
        const FieldSegment *s = &f->segment[field_find_segment(f, end[i])];
        if (end[i] < s->first || end[i] >= s->first + s->frames) return false;
    }
    return f->step_s > 0;
}

static const char *roles_text(const FieldSet *f, int variable)
{
    bool input = false, target = false;
    for (int i = 0; i < f->inputs; ++i) input |= f->input[i].variable == variable;
    for (int i = 0; i < f->targets; ++i) target |= f->target[i].variable == variable;
    if (f->variable[variable].extra_kind) return "extra";
    if (f->variable[variable].is_scalar) return "scalar";
    if (variable == f->mask && !input && !target) return "mask";
    if (f->variable[variable].is_static) return "static";
    return input && target ? "input, target" : input ? "input" : "target";
}

static bool same_packing(const FieldArray *a, const FieldArray *b)
{
    return a->type == b->type && a->big_endian == b->big_endian &&
           a->packing.scale == b->packing.scale && a->packing.add == b->packing.add;
}

/* Returns whether the variable is the set's label field, the target whose pixels have classes. */
static bool has_labels(const FieldSet *f, int variable)
{
    return f->classes.count > 0 && f->target[0].variable == variable;
}

/* ---- text ---- */

static void print_classes(const FieldClasses *classes, FILE *out)
{
    fprintf(out, "    %-16s %-10s labels of %d classes", "", "", classes->count);
    for (int c = 0; classes->named && c < classes->count; ++c)
        fprintf(out, "%s%s", c ? ", " : ": ", classes->name[c]);
    if (classes->has_ignore) fprintf(out, "; no label: %.9g", classes->ignore);
    fputc('\n', out);
}

static void print_packing(const FieldSet *f, int variable, FILE *out)
{
    const FieldArray *a = field_array(f, 0, variable);
    int others = 0, printed = 0;
    fprintf(out, "%s%s", element_name(a->type), a->big_endian ? " (big-endian)" : "");
    if (a->packing.scale != 1 || a->packing.add != 0)
        fprintf(out, " * %.9g + %.9g", a->packing.scale, a->packing.add);
    for (int i = 0; i < a->packing.missing_count; ++i)
        if (a->packing.missing[i] != FIELD_NEVER_WRITTEN && !isnan(a->packing.missing[i]))
            fprintf(out, "%s%.9g", printed++ ? " or " : ", missing: ", a->packing.missing[i]);
    fprintf(out, ", %s", f->variable[variable].storage);
    for (int i = 1; i < f->files; ++i) others += !same_packing(a, field_array(f, i, variable));
    if (others)
        fprintf(out, "; packed otherwise in %d other file%s", others, others > 1 ? "s" : "");
    fputc('\n', out);
}

static void print_variable(const FieldSet *f, int variable, FILE *out)
{
    const FieldVariable *v = &f->variable[variable];
    fprintf(out, "    %-16s %-10s %s; ", v->name, v->units[0] ? v->units : "-",
            roles_text(f, variable));
    for (int i = 0; i < v->ndim; ++i) {
        fprintf(out, "%s%s", i ? " x " : "", field_dim_name(v->dim[i]));
        if (v->dim[i] != FIELD_TIME || v->is_static)
            fprintf(out, " %lld", (long long)v->size[v->dim[i]]);
    }
    if (v->size[FIELD_LEVEL] > 1) {
        fputs("; levels", out);
        for (int i = 0; i < v->levels; ++i) {
            if (isnan(v->level_value[i]))
                fprintf(out, " #%d", v->level_index[i]);
            else
                fprintf(out, " %g", v->level_value[i]);
        }
    }
    fprintf(out, "\n    %-16s %-10s ", "", "");
    print_packing(f, variable, out);
    if (has_labels(f, variable)) print_classes(&f->classes, out);
}

static void print_files(const FieldSet *f, FILE *out)
{
    char from[FIELD_TIME_TEXT], to[FIELD_TIME_TEXT];
    fprintf(out, "  %-9s %d\n", "files", f->files);
    for (int i = 0; i < f->files && i < FILES_LISTED; ++i) {
        const FieldFile *file = &f->file[i];
        fprintf(out, "    %s: %lld frames", field_path(f, i), (long long)file->frames);
        if (ends_are_known(f, file->first_frame, file->frames))
            fprintf(
                out, ", %s to %s", field_time_text(f, field_frame_time(f, file->first_frame), from),
                field_time_text(f, field_frame_time(f, file->first_frame + file->frames - 1), to));
        fputc('\n', out);
    }
    if (f->files > FILES_LISTED) fputs("    ...\n", out);
}

static void print_segments(const FieldSet *f, FILE *out)
{
    char from[FIELD_TIME_TEXT], to[FIELD_TIME_TEXT], step[FIELD_TIME_TEXT];
    fprintf(out, "  %-9s %d of frames %s apart\n", "segments", f->segments,
            f->step_s > 0 ? field_offset_text(f, 1, step) : "1 step");
    for (int i = 0; i < f->segments && i < SEGMENTS_LISTED; ++i) {
        const FieldSegment *s = &f->segment[i];
        fprintf(out, "    %s to %s: %lld frames, %lld samples\n",
                field_time_text(f, field_frame_time(f, s->first), from),
                field_time_text(f, field_frame_time(f, s->first + s->frames - 1), to),
                (long long)s->frames, (long long)s->samples);
        if (i + 1 == f->segments || f->step_s == 0) continue;
        const double gap = f->segment[i + 1].start - s->start - (double)(s->frames - 1) * f->step_s;
        if (gap > 0)
            fprintf(out, "    the next frame is %g steps after %s\n", gap / f->step_s, to);
        else
            fprintf(out, "    times begin again after %s\n", to);
    }
    if (f->segments > SEGMENTS_LISTED) fputs("    ...\n", out);
}

static void print_channels(const FieldSet *f, const char *what, FieldRole role,
                           const FieldChannel *list, int count, const DataArray *array, FILE *out)
{
    char offset[FIELD_TIME_TEXT];
    fprintf(out, "  %-9s %d channel%s of %lld x %lld:", what, count, count == 1 ? "" : "s",
            (long long)array->dim[2], (long long)array->dim[3]);
    for (int i = 0; i < count && i < CHANNELS_LISTED; ++i) {
        const FieldVariable *v = &f->variable[list[i].variable];
        const double level = v->level_value[list[i].level];
        fprintf(out, "%s %s%s", i ? "," : "",
                v->extra_kind ? field_extra_part(v, list[i].level) : "", v->name);
        const bool levels = !v->extra_kind && v->size[FIELD_LEVEL] > 1;
        if (levels && !isnan(level)) fprintf(out, " %g", level);
        if (levels && isnan(level)) fprintf(out, " #%d", v->level_index[list[i].level]);
        if (v->is_static) continue;
        fprintf(out, " (%s)", field_offset_text(f, f->offset[role][list[i].offset], offset));
        if (role == FIELD_TARGET && f->change_from[i] >= 0) fputs(" as change", out);
    }
    fputs(count > CHANNELS_LISTED ? ", ...\n" : "\n", out);
}

void field_print_text(const DataSet *set, FILE *out)
{
    const FieldSet *f = &set->field_set;
    fprintf(out, "%s: fields data set, %lld samples\n", set->path, (long long)set->samples);
    fprintf(out, "  %-9s %d\n", "variables", f->stored);
    for (int i = 0; i < f->stored; ++i) print_variable(f, i, out);
    print_files(f, out);
    print_segments(f, out);
    print_channels(f, "inputs", FIELD_INPUT, f->input, f->inputs, &set->x, out);
    print_channels(f, "targets", FIELD_TARGET, f->target, f->targets, &set->y, out);
}

/* ---- JSON ---- */

static void variable_json(const FieldSet *f, int variable, Json *json)
{
    const FieldVariable *v = &f->variable[variable];
    const FieldArray *a = field_array(f, 0, variable);
    json_object(json, NULL);
    json_text(json, "name", v->name);
    json_text(json, "units", v->units);
    json_text(json, "role", roles_text(f, variable));
    json_array(json, "dimensions");
    for (int i = 0; i < v->ndim; ++i) json_text(json, NULL, field_dim_name(v->dim[i]));
    json_end(json);
    json_int(json, "rows", v->size[FIELD_ROW]);
    json_int(json, "columns", v->size[FIELD_COLUMN]);
    json_array(json, "levels");
    for (int i = 0; v->size[FIELD_LEVEL] > 1 && i < v->levels; ++i)
        json_real(json, NULL, field_level(v, i));
    json_end(json);
    json_text(json, "type", element_name(a->type));
    json_text(json, "byte_order", a->big_endian ? "big" : "little");
    json_real(json, "scale_factor", a->packing.scale);
    json_real(json, "add_offset", a->packing.add);
    json_array(json, "missing");
    for (int i = 0; i < a->packing.missing_count; ++i) json_real(json, NULL, a->packing.missing[i]);
    json_end(json);
    json_text(json, "storage", v->storage);
    if (has_labels(f, variable)) {
        const FieldClasses *classes = &f->classes;
        json_array(json, "classes");
        for (int c = 0; c < classes->count; ++c) json_text(json, NULL, classes->name[c]);
        json_end(json);
        if (classes->has_ignore) json_real(json, "ignore", classes->ignore);
    }
    json_end(json);
}

static void channels_json(const FieldSet *f, const char *key, FieldRole role,
                          const FieldChannel *list, int count, Json *json)
{
    json_array(json, key);
    for (int i = 0; i < count; ++i) {
        const FieldVariable *v = &f->variable[list[i].variable];
        const int frames = v->is_static ? 0 : f->offset[role][list[i].offset];
        json_object(json, NULL);
        json_text(json, "variable", v->name);
        if (v->extra_kind && v->levels > 1)
            json_text(json, "part", list[i].level == 0 ? "sin" : "cos");
        if (!v->extra_kind && v->size[FIELD_LEVEL] > 1)
            json_real(json, "level", field_level(v, list[i].level));
        if (!v->is_static) json_real(json, "offset", frames * (f->step_s > 0 ? f->step_s : 1));
        if (role == FIELD_TARGET) json_bool(json, "change", f->change_from[i] >= 0);
        json_end(json);
    }
    json_end(json);
}

/* Adds keys that describe `frames` consecutive frames: their number and, if both are known, the
 * times of the first and of the last one. */
static void span_json(const FieldSet *f, int64_t first, int64_t frames, Json *json)
{
    char text[FIELD_TIME_TEXT];
    json_int(json, "frames", frames);
    if (!ends_are_known(f, first, frames)) return;
    json_text(json, "from", field_time_text(f, field_frame_time(f, first), text));
    json_text(json, "to", field_time_text(f, field_frame_time(f, first + frames - 1), text));
}

void field_print_json(const DataSet *set, Json *json)
{
    const FieldSet *f = &set->field_set;
    json_array(json, "variables");
    for (int i = 0; i < f->stored; ++i) variable_json(f, i, json);
    json_end(json);
    json_array(json, "files");
    for (int i = 0; i < f->files; ++i) {
        json_object(json, NULL);
        json_text(json, "path", field_path(f, i));
        span_json(f, f->file[i].first_frame, f->file[i].frames, json);
        json_end(json);
    }
    json_end(json);
    json_text(json, "calendar", f->step_s > 0 ? calendar_name((Calendar)f->calendar) : "");
    json_real(json, "step_s", f->step_s);
    json_array(json, "segments");
    for (int i = 0; i < f->segments; ++i) {
        json_object(json, NULL);
        span_json(f, f->segment[i].first, f->segment[i].frames, json);
        json_int(json, "samples", f->segment[i].samples);
        json_end(json);
    }
    json_end(json);
    json_int(json, "height", set->y.dim[2]);
    json_int(json, "width", set->y.dim[3]);
    channels_json(f, "inputs", FIELD_INPUT, f->input, f->inputs, json);
    channels_json(f, "targets", FIELD_TARGET, f->target, f->targets, json);
}
