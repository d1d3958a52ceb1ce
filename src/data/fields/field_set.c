/* Opens a set of fields: the variables that data.variables names, in one or several files, and the
 * channels of inputs and targets. All files must have the same variables, dimensions, units and
 * grid; types, packing and storage may differ. */
#include "calendar.h"
#include "field_facts.h"
#include "fields_private.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct Opening {
    DataSet *set;
    FieldSet *f;
    const Config *config;
    /* entry of data.variables that each variable is made from */
    const ConfigVariable *entry[FIELD_VARIABLES];
    /* variables in data.variables; behind them is that of data.mask, if it is none of them */
    int listed;
    FieldFactsRequest request;
    /* owned: paths of all files */
    FieldPaths paths;
    /* facts of the file that is opened, borrowed, and of the first one, owned */
    const FieldFacts *facts;
    FieldFacts *first;
    /* largest number of frames of a chunk; 0: no array is chunked by time */
    int64_t chunk_frames;
    /* owned: times of all frames so far, in seconds; NULL: they have none */
    double *times;
    int64_t frames;
} Opening;

const char *field_dim_name(int dim)
{
    static const char *const name[] = {"time", "level", "rows", "columns"};
    return name[dim];
}

int field_find_file(const FieldSet *f, int64_t frame)
{
    return index_at_most(&f->file[0].first, sizeof *f->file, f->files, frame);
}

/* ---- variables and channels ---- */

/* Roles whose variables of one name may be the same one have one number. */
static int sort_of(int role)
{
    return role == FIELD_TARGET ? FIELD_INPUT : role;
}

static bool same_variable(const ConfigVariable *a, const ConfigVariable *b)
{
    return !strcmp(a->name, b->name) && sort_of(a->role) == sort_of(b->role) &&
           a->levels.count == b->levels.count &&
           (a->levels.count == 0 || !memcmp(a->levels.value, b->levels.value,
                                            (size_t)a->levels.count * sizeof *a->levels.value));
}

/* Adds the variable of an entry, unless an entry before has it. */
static Status add_variable(Opening *o, const ConfigVariable *entry)
{
    FieldVariable *v = &o->f->variable[o->f->variables];
    int same = 0;
    while (same < o->f->variables && !same_variable(o->entry[same], entry)) ++same;
    if (entry->classes > 0) o->request.labels = same;
    if (same < o->f->variables) return OK;
    if (o->f->variables == FIELD_VARIABLES)
        return config_fail_key(o->config, "data.variables", "more than %d variables",
                               FIELD_VARIABLES);
    if (strlen(entry->name) >= FIELD_NAME || entry->levels.count > FIELD_LEVELS)
        return config_fail_key(o->config, "data.variables",
                               "%.40s: names have up to %d characters, and a variable up to "
                               "%d levels",
                               entry->name, FIELD_NAME - 1, FIELD_LEVELS);
    snprintf(v->name, sizeof v->name, "%s", entry->name);
    if (entry->role == FIELD_EXTRA) TRY(field_extra_init(v, o->config, entry));
    if (entry->role != FIELD_EXTRA) {
        v->is_static = entry->role == FIELD_STATIC;
        v->is_scalar = entry->role == FIELD_SCALAR;
        memcpy(o->request.name[o->f->variables], v->name, sizeof v->name);
        o->request.is_static[o->f->variables] = v->is_static;
        o->request.is_scalar[o->f->variables] = v->is_scalar;
        o->request.count = o->f->stored = o->f->variables + 1;
    }
    o->entry[o->f->variables++] = entry;
    return OK;
}

/* Finds the variable that data.mask names, or adds it. */
static Status add_mask(Opening *o)
{
    static const ConfigVariable entry = {.role = FIELD_INPUT};
    FieldSet *f = o->f;
    const char *name = o->config->data.mask;
    f->mask = -1;
    o->listed = f->variables;
    if (!*name) return OK;
    for (int i = 0; i < f->variables && f->mask < 0; ++i)
        if (!strcmp(f->variable[i].name, name)) f->mask = i;
    if (f->mask >= 0) return OK;
    if (f->variables == FIELD_VARIABLES || strlen(name) >= FIELD_NAME)
        return config_fail_key(o->config, "data.mask",
                               "%.40s: a set has up to %d variables, whose names have up to %d "
                               "characters",
                               name, FIELD_VARIABLES, FIELD_NAME - 1);
    f->mask = f->variables++;
    o->request.count = f->stored = f->variables;
    snprintf(f->variable[f->mask].name, FIELD_NAME, "%s", name);
    memcpy(o->request.name[f->mask], f->variable[f->mask].name, FIELD_NAME);
    o->entry[f->mask] = &entry;
    return OK;
}

/* Adds the variables of all roles and the mask, extra ones last. */
static Status add_variables(Opening *o)
{
    const ConfigVariables *list = &o->config->data.variables;
    int count[FIELD_ROLES] = {0};
    TRY(field_labels_check(o->config));
    o->request.labels = -1;
    for (int extra = 0; extra < 2; ++extra) {
        for (int i = 0; i < list->count; ++i) {
            if ((list->item[i].role == FIELD_EXTRA) != (extra == 1)) continue;
            TRY(add_variable(o, &list->item[i]));
            ++count[list->item[i].role];
        }
        if (!extra) TRY(add_mask(o));
    }
    if (count[FIELD_INPUT] > 0 && count[FIELD_TARGET] > 0) return OK;
    return config_fail_key(o->config, "data.variables", "needs inputs and targets");
}

/* Adds the channels of a role at one offset to a list: those that are constant over space, or the
 * others. */
static Status add_channels(const Opening *o, FieldRole role, bool constant, int offset,
                           FieldChannel *list, int *count)
{
    const ConfigVariables *entries = &o->config->data.variables;
    for (int i = 0; i < entries->count; ++i) {
        if (entries->item[i].role != (int)role) continue;
        int variable = 0;
        while (!same_variable(o->entry[variable], &entries->item[i])) ++variable;
        if (o->f->variable[variable].is_scalar != constant) continue;
        for (int k = 0; k < o->f->variable[variable].levels; ++k) {
            if (*count == FIELD_CHANNELS)
                return config_fail_key(o->config, "data.variables",
                                       "a sample has more than %d channels of inputs or targets",
                                       FIELD_CHANNELS);
            list[(*count)++] = (FieldChannel){(int16_t)variable, (int16_t)k, (int16_t)offset};
        }
        const int levels = o->f->variable[variable].levels;
        if (role == FIELD_TARGET)
            TRY(field_weights_set(o->f, o->config, &entries->item[i], *count - levels, *count));
    }
    return OK;
}

/* Finds for each target the input that its change is counted from. */
static Status find_changes(const Opening *o)
{
    FieldSet *f = o->f;
    const bool change = o->config->data.predict == PREDICT_CHANGE;
    bool found = false;
    for (int i = 0; i < f->targets; ++i) {
        f->change_from[i] = change ? (int16_t)field_last_input(f, i) : -1;
        found |= f->change_from[i] >= 0;
    }
    if (!change || found) return OK;
    return config_fail_key(o->config, "data.predict",
                           "change needs a target that is an input, too: add it to the inputs");
}

/* ---- one file ---- */

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
        v->level[i] = (int16_t)at;
        v->level_value[i] = at < facts->levels ? facts->level[at] : NAN;
    }
    return OK;
}

/* Takes dimensions and levels of a variable from the first file. */
static Status take_variable(const Opening *o, int i)
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

/* Checks that a variable of a later file is like that of the first one. */
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
    return OK;
}

/* Takes the names of the classes of the first file; those of others must be equal. */
static Status take_names(const Opening *o)
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
    const bool first = f->files == 0;
    int timed = -1;
    file->stat = o->facts->stat;
    file->layout = o->facts->layout;
    for (int i = 0; i < f->stored; ++i) {
        const FieldVariableFacts *facts = &o->facts->variable[i];
        TRY(first ? take_variable(o, i) : compare_variable(o, i));
        *field_array(f, f->files, i) = (FieldArray){.type = facts->array.type,
                                                    .big_endian = facts->array.big_endian,
                                                    .offset = facts->array.offset,
                                                    .packing = facts->packing};
        if (f->variable[i].is_static) continue;
        if (facts->dim[0] == FIELD_TIME && facts->array.chunk_rows > o->chunk_frames)
            o->chunk_frames = facts->array.chunk_rows;
        int at = 0;
        while (facts->dim[at] != FIELD_TIME) ++at;
        const int64_t frames = facts->array.dim[at];
        if (timed >= 0 && frames != file->frames)
            return fail(ERR_DATA, "%s: %s has %lld frames, but %s has %lld",
                        field_path(o->f, o->f->files), f->variable[timed].name,
                        (long long)file->frames, f->variable[i].name, (long long)frames);
        file->frames = frames;
        timed = i;
    }
    file->first = o->frames;
    TRY(take_names(o));
    TRY(add_times(o, times, file->frames));
    o->frames += file->frames;
    ++f->files;
    if (!first) return OK;
    f->rows = o->facts->rows;
    f->columns = o->facts->columns;
    f->is_latitude = o->facts->is_latitude;
    f->is_longitude = o->facts->is_longitude;
    memcpy(f->row, o->facts->row, sizeof f->row);
    memcpy(f->column, o->facts->column, sizeof f->column);
    *o->first = *o->facts;
    return OK;
}

/* Takes the facts of the next file. */
static Status take_file(void *user, int file, const FieldFacts *facts, const double *times)
{
    Opening *o = user;
    (void)file;
    o->facts = facts;
    return add_file(o, times);
}

/* Opens the files of all paths. */
static Status open_files(Opening *o)
{
    FieldSet *f = o->f;
    f->file = mem_new((size_t)o->paths.count * sizeof *f->file);
    f->array = mem_new((size_t)o->paths.count * (size_t)f->stored * sizeof *f->array);
    for (int i = 0; i < o->paths.count; ++i) {
        f->file[i].path = f->text_bytes;
        f->text_bytes += (int64_t)strlen(o->paths.path[i]) + 1;
    }
    f->text = mem_new((size_t)f->text_bytes);
    for (int i = 0; i < o->paths.count; ++i) strcpy(f->text + f->file[i].path, o->paths.path[i]);
    return field_facts_each(&o->request, o->paths.path, o->paths.count, take_file, o);
}

/* ---- the set ---- */

/* Finds the size of the fields of inputs, or of targets, which must be one. */
static Status find_size(const Opening *o, const FieldChannel *channel, int count, int64_t *height,
                        int64_t *width)
{
    const FieldVariable *first = &o->f->variable[channel[0].variable];
    *height = first->size[FIELD_ROW];
    *width = first->size[FIELD_COLUMN];
    for (int i = 1; i < count; ++i) {
        const FieldVariable *v = &o->f->variable[channel[i].variable];
        const int64_t rows = v->size[FIELD_ROW], columns = v->size[FIELD_COLUMN];
        if (v->is_scalar || v->made || (rows == *height && columns == *width)) continue;
        return fail(ERR_DATA,
                    "%s: %s has fields of %lldx%lld, but %s of %lldx%lld: all inputs "
                    "must have one size, and all targets%s",
                    o->set->path, first->name, (long long)*height, (long long)*width, v->name,
                    (long long)rows, (long long)columns,
                    rows * columns == 1 || *height * *width == 1
                        ? "; a variable without rows and columns may be one of scalars"
                        : "");
    }
    return OK;
}

void data_set_size_fields(DataSet *set, int64_t height, int64_t width, int64_t target_height,
                          int64_t target_width)
{
    set->height = set->stored_height = height;
    set->width = set->stored_width = width;
    const int64_t x[] = {set->samples, set->channels, height, width};
    const int64_t y[] = {set->samples, set->field_set.targets, target_height, target_width};
    memcpy(set->x.dim, x, sizeof x);
    memcpy(set->y.dim, y, sizeof y);
    set->x.sample_bytes = x[1] * x[2] * x[3] * (int64_t)sizeof(float);
    set->y.sample_bytes = y[1] * y[2] * y[3] * (int64_t)sizeof(float);
    set->target_width = set->field_set.classes.count > 0 ? 0 : y[1] * y[2] * y[3];
}

/* Describes samples and targets as arrays of floats, and labels as one of integers, which the
 * reader makes. */
static void set_arrays(DataSet *set, int64_t height, int64_t width)
{
    const FieldSet *f = &set->field_set;
    const DataArray like = {.type = ELEM_F32, .ndim = 4, .offset = -1};
    set->x = set->y = like;
    snprintf(set->x.name, sizeof set->x.name, "inputs");
    snprintf(set->y.name, sizeof set->y.name, "targets");
    data_set_size_fields(set, set->height, set->width, height, width);
    if (f->classes.count > 0) {
        snprintf(set->y.name, sizeof set->y.name, "%s", f->variable[f->target[0].variable].name);
        set->y.type = ELEM_I32;
        set->classes = f->classes.count;
    }
    snprintf(set->x.storage, sizeof set->x.storage, "%d variables in %d file%s", f->stored,
             f->files, f->files == 1 ? "" : "s");
}

/* Lists the channels of a sample: offset after offset, then those without one; those that are
 * constant over space last. */
static Status add_all_channels(const Opening *o)
{
    FieldSet *f = o->f;
    const int last = f->offsets[FIELD_INPUT] - 1;
    for (int i = 0; i <= last; ++i)
        TRY(add_channels(o, FIELD_INPUT, false, i, f->input, &f->inputs));
    TRY(add_channels(o, FIELD_STATIC, false, 0, f->input, &f->inputs));
    TRY(add_channels(o, FIELD_EXTRA, false, last, f->input, &f->inputs));
    for (int i = 0; i <= last; ++i)
        TRY(add_channels(o, FIELD_SCALAR, true, i, f->input, &f->inputs));
    TRY(add_channels(o, FIELD_EXTRA, true, last, f->input, &f->inputs));
    for (int i = 0; i < f->offsets[FIELD_TARGET]; ++i)
        TRY(add_channels(o, FIELD_TARGET, false, i, f->target, &f->targets));
    return OK;
}

static Status open_set(Opening *o)
{
    DataSet *set = o->set;
    FieldSet *f = o->f;
    int64_t height, width;
    TRY(field_samples_find(set, o->config, o->times));
    TRY(add_all_channels(o));
    TRY(field_labels_take(set, o->config));
    TRY(find_changes(o));
    TRY(field_rollout_inputs(f, o->config));
    TRY(find_size(o, f->input, f->inputs, &set->height, &set->width));
    TRY(find_size(o, f->target, f->targets, &height, &width));
    set->channels = f->inputs;
    set->scale = 1;
    f->patch.whole[0] = set->height;
    f->patch.whole[1] = set->width;
    TRY(field_extra_check(set));
    if (f->rows != height) f->rows = 0;
    TRY(field_weights_check(f, o->config, height, width));
    const bool differ = height != set->height || width != set->width;
    if (o->config->data.predict == PREDICT_CHANGE && differ)
        return config_fail_key(
            o->config, "data.predict",
            "inputs are %lldx%lld and targets %lldx%lld: a change needs one size",
            (long long)set->height, (long long)set->width, (long long)height, (long long)width);
    if (f->steps > 1 && differ)
        return config_fail_key(o->config, "train.rollout",
                               "inputs are %lldx%lld and targets %lldx%lld: what a step gives "
                               "must have the size of what it reads",
                               (long long)set->height, (long long)set->width, (long long)height,
                               (long long)width);
    set_arrays(set, height, width);
    /* by which the loader keeps samples of the same chunks together */
    set->x.chunk_rows = o->chunk_frames > 1 ? o->chunk_frames : 0;
    return OK;
}

static void opening_free(Opening **opening)
{
    Opening *o = *opening;
    field_paths_free(&o->paths);
    mem_free(&o->times);
    mem_free(&o->first);
    mem_free(opening);
}

static Opening *opening_new(DataSet *set, const Config *config)
{
    Opening *o = mem_new(sizeof *o);
    memset(set, 0, sizeof *set);
    set->kind = DATA_FIELDS;
    *o = (Opening){
        .set = set, .f = &set->field_set, .config = config, .first = mem_new(sizeof *o->first)};
    return o;
}

Status field_set_open(DataSet *set, const Config *config, const char *paths)
{
    FieldSet *f = &set->field_set;
    Opening *o = opening_new(set, config);
    Status st = add_variables(o);
    o->request.mask = f->mask;
    if (st == OK) st = field_paths_find(&o->paths, paths);
    if (o->paths.count > 0) snprintf(set->path, sizeof set->path, "%s", o->paths.path[0]);
    if (st == OK) st = open_files(o);
    if (st == OK) st = open_set(o);
    if (st == OK)
        field_block_make(f);
    else
        field_block_drop_parts(f);
    opening_free(&o);
    return st;
}

static Status take_nothing(void *user, int file, const FieldFacts *facts, const double *times)
{
    (void)user, (void)file, (void)facts, (void)times;
    return OK;
}

Status field_file_check(const Config *config, const char *path)
{
    DataSet *set = mem_new(sizeof *set);
    Opening *o = opening_new(set, config);
    char *paths[] = {mem_text(path)};
    Status st = add_variables(o);
    o->request.mask = set->field_set.mask;
    if (st == OK) st = field_facts_each(&o->request, paths, 1, take_nothing, NULL);
    mem_free(&paths[0]);
    opening_free(&o);
    mem_free(&set);
    return st;
}
