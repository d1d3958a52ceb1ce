/* Adds a file to a set of fields. All files must have the same variables, dimensions, units,
 * levels, grid, calendar and names of classes. Variables that are static or have no time must have
 * the same values in all files. Types, packing and storage may differ. */
#include "calendar.h"
#include "field_opening.h"

#include <math.h>
#include <string.h>

static Status differ_fail(const Opening *o, const char *path, const char *what, int variable)
{
    return fail(ERR_DATA, "%s: %s of %s differ from those in %s, so the two cannot be one set",
                path, what, o->f->variable[variable].name, field_path(o->f, 0));
}

static Status level_fail(const char *path, const char *name, double level,
                         const FieldVariableFacts *facts)
{
    enum { LISTED = 20 };
    char list[LISTED * 24] = "";
    for (int i = 0; i < facts->levels && i < LISTED; ++i)
        snprintf(list + strlen(list), 24, "%s%.8g", i ? ", " : "", facts->level[i]);
    if (facts->levels == 0)
        return fail(ERR_DATA, "%s: %s has no level %g: its levels have no coordinate", path, name,
                    level);
    return fail(ERR_DATA, "%s: %s has no level %g; it has %s%s", path, name, level, list,
                facts->levels > LISTED ? ", ..." : "");
}

/* Finds the levels that the configuration selects, by the values of the coordinate. */
static Status select_levels(const Opening *o, FieldVariable *v, const FieldVariableFacts *facts,
                            const ConfigList *levels)
{
    const int64_t all = v->size[FIELD_LEVEL];
    const char *path = field_path(o->f, o->f->files);
    if (levels->count == 0 && all > FIELD_LEVELS)
        return fail(ERR_DATA,
                    "%s: %s has %lld levels, of which a set can have %d: select them in "
                    "data.variables, {name: %s, levels: [...]}",
                    path, v->name, (long long)all, FIELD_LEVELS, v->name);
    v->levels = levels->count ? levels->count : (int)all;
    for (int i = 0; i < v->levels; ++i) {
        int at = i;
        if (levels->count > 0) {
            at = 0;
            while (at < facts->levels && fabs(facts->level[at] - levels->value[i]) >
                                             1e-6 * fmax(1, fabs(levels->value[i])))
                ++at;
            if (at == facts->levels) return level_fail(path, v->name, levels->value[i], facts);
        }
        v->level_index[i] = (int16_t)at;
        v->level_value[i] = at < facts->levels ? facts->level[at] : NAN;
    }
    return OK;
}

/* Copies the dimensions, units, storage and levels of variable i from the facts of the first file,
 * and checks that they fit the variable's role. */
static Status copy_variable(const Opening *o, int i)
{
    FieldVariable *v = &o->f->variable[i];
    const FieldVariableFacts *facts = &o->facts->variable[i];
    bool has[FIELD_DIMS] = {false};
    v->ndim = facts->array.ndim;
    for (int d = 0; d < FIELD_DIMS; ++d) v->size[d] = 1;
    for (int d = 0; d < v->ndim; ++d) {
        v->dim[d] = facts->dim[d];
        v->size[v->dim[d]] = facts->array.dim[d];
        has[v->dim[d]] = true;
    }
    snprintf(v->units, sizeof v->units, "%s", facts->units);
    snprintf(v->storage, sizeof v->storage, "%s", facts->array.storage);
    if (v->is_scalar && (has[FIELD_ROW] || has[FIELD_COLUMN]))
        return fail(ERR_DATA,
                    "%s: %s has %s, so it is no scalar: list it under inputs in data.variables",
                    field_path(o->f, o->f->files), v->name, has[FIELD_ROW] ? "rows" : "columns");
    if (v->is_scalar && v->size[FIELD_LEVEL] > 1 && o->entry[i]->levels.count == 0)
        return fail(ERR_DATA,
                    "%s: %s has %lld levels: select those that are scalars in data.variables, "
                    "{name: %s, levels: [...]}",
                    field_path(o->f, o->f->files), v->name, (long long)v->size[FIELD_LEVEL],
                    v->name);
    if (i == o->f->mask && i >= o->listed) v->is_static = !has[FIELD_TIME];
    if (!v->is_static && !has[FIELD_TIME])
        return fail(ERR_DATA, "%s: %s has no time: list it under static in data.variables",
                    field_path(o->f, o->f->files), v->name);
    return select_levels(o, v, facts, &o->entry[i]->levels);
}

/* Checks that a variable of a later file is like the same variable of the first file. */
static Status compare_variable(const Opening *o, int i)
{
    const FieldVariable *v = &o->f->variable[i];
    const FieldVariableFacts *a = &o->facts->variable[i], *b = &o->first->variable[i];
    const char *path = field_path(o->f, o->f->files);
    if (a->array.ndim != b->array.ndim) return differ_fail(o, path, "dimensions", i);
    for (int d = 0; d < v->ndim; ++d)
        if (a->dim[d] != b->dim[d] ||
            (a->dim[d] != FIELD_TIME && a->array.dim[d] != b->array.dim[d]))
            return differ_fail(o, path, "dimensions", i);
    if (strcmp(a->units, b->units) != 0) return differ_fail(o, path, "units", i);
    if (a->grid_hash != b->grid_hash)
        return differ_fail(o, path, "coordinates of rows or columns", i);
    if (a->levels != b->levels ||
        memcmp(a->level, b->level, (size_t)a->levels * sizeof *a->level) != 0)
        return differ_fail(o, path, "levels", i);
    if (a->value_hash != b->value_hash)
        return fail(ERR_DATA,
                    "%s: the values of %s differ from those in %s, and a variable without time "
                    "must be the same in all files of a set: %s",
                    path, v->name, field_path(o->f, 0),
                    v->is_static && i == o->f->mask
                        ? "give the mask a time, or learn from files with one mask"
                        : "give it a time and list it under inputs, or learn from files that share "
                          "it");
    return OK;
}

/* Copies the names of the classes from the first file; other files must have equal names. */
static Status copy_class_names(const Opening *o)
{
    FieldClasses *classes = &o->f->classes, *more;
    const ConfigVariable *entry = data_label_target(o->config);
    if (!entry) return OK;
    if (o->f->files == 0) {
        field_labels_name(o->facts, (int)entry->classes, classes);
        return OK;
    }
    more = mem_new(sizeof *more);
    field_labels_name(o->facts, (int)entry->classes, more);
    const bool equal =
        more->named == classes->named && !memcmp(more->name, classes->name, sizeof more->name);
    mem_free(&more);
    return equal
               ? OK
               : differ_fail(o, field_path(o->f, o->f->files), "flag_meanings", o->request.labels);
}

/* Appends the times of a file with `frames` frames, in seconds. */
static Status add_times(Opening *o, const double *times, int64_t frames)
{
    const FieldFacts *facts = o->facts;
    const bool timed = facts->times > 0 && facts->time_units[0];
    TimeUnits units;
    if (facts->times > 0 && facts->times != frames)
        return fail(ERR_DATA, "%s: has %lld frames and %lld times", field_path(o->f, o->f->files),
                    (long long)frames, (long long)facts->times);
    if (o->frames > 0 && timed != (o->times != NULL))
        return fail(ERR_DATA, "%s: its times %s units, unlike those of %s",
                    field_path(o->f, o->f->files), timed ? "have" : "have no", field_path(o->f, 0));
    if (!timed) return OK;
    if (time_units_read(facts->time_units, facts->calendar, &units) != OK)
        return fail(ERR_DATA, "%s: the coordinate of time: %s", field_path(o->f, o->f->files),
                    fail_message());
    if (o->frames > 0 && (int)units.calendar != o->f->calendar)
        return fail(ERR_DATA, "%s: its calendar is not that of %s", field_path(o->f, o->f->files),
                    field_path(o->f, 0));
    o->f->calendar = units.calendar;
    o->times = mem_resize(o->times, (size_t)(o->frames + frames) * sizeof *o->times);
    for (int64_t i = 0; i < frames; ++i) {
        double *t = &o->times[o->frames + i];
        *t = units.origin + times[i] * units.unit;
        if (!isfinite(*t))
            return fail(ERR_DATA, "%s: frame %lld has no time", field_path(o->f, o->f->files),
                        (long long)i);
    }
    return OK;
}

/* Adds a file whose facts have been read. */
static Status add_file(Opening *o, const double *times)
{
    FieldSet *f = o->f;
    FieldFile *file = &f->file[f->files];
    const bool is_first = f->files == 0;
    int last_timed = -1;
    file->stat = o->facts->stat;
    file->layout = o->facts->layout;
    for (int i = 0; i < f->stored; ++i) {
        const FieldVariableFacts *facts = &o->facts->variable[i];
        TRY(is_first ? copy_variable(o, i) : compare_variable(o, i));
        *field_array(f, f->files, i) = (FieldArray){.type = facts->array.type,
                                                    .big_endian = facts->array.big_endian,
                                                    .offset = facts->array.offset,
                                                    .chunk_bytes = facts->array.chunk_bytes,
                                                    .chunks = facts->array.chunks,
                                                    .packing = facts->packing};
        if (f->variable[i].is_static) continue;
        if (facts->dim[0] == FIELD_TIME && facts->array.chunk_rows > o->chunk_frames)
            o->chunk_frames = facts->array.chunk_rows;
        int at = 0;
        while (facts->dim[at] != FIELD_TIME) ++at;
        const int64_t frames = facts->array.dim[at];
        if (last_timed >= 0 && frames != file->frames)
            return fail(ERR_DATA, "%s: %s has %lld frames, but %s has %lld",
                        field_path(o->f, o->f->files), f->variable[last_timed].name,
                        (long long)file->frames, f->variable[i].name, (long long)frames);
        file->frames = frames;
        last_timed = i;
    }
    file->first_frame = o->frames;
    TRY(copy_class_names(o));
    TRY(add_times(o, times, file->frames));
    o->frames += file->frames;
    ++f->files;
    if (!is_first) return OK;
    f->rows = o->facts->rows;
    f->columns = o->facts->columns;
    f->target_rows = o->facts->target_rows;
    *o->first = *o->facts;
    return OK;
}

Status field_opening_add_file(void *user, int file, const FieldFacts *facts, const double *times)
{
    Opening *o = user;
    (void)file;
    o->facts = facts;
    return add_file(o, times);
}
