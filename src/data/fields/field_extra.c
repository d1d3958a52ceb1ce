/* Computes extra channels from coordinates and times. They show the model where a pixel is and when
 * a sample is. An angle (a latitude, the time of a day) becomes two channels, its sine and cosine,
 * so that values do not jump after a full turn. Extra channels are not normalised, and have the
 * same bits on all processors. */
#include "../flow/flow.h"
#include "calendar.h"
#include "fields_private.h"

#include <math.h>
#include <string.h>

static const double DAY_S = 86400;
/* time in seconds; a time that is as far or farther from 1970 is no date (time_text) */
static const double TIME_MOST = 2e11;

typedef struct Extra {
    /* dimension along which the channel varies; FIELD_DIMS: it is the same at all pixels */
    FieldDim along;
    /* true: `value` returns an angle in turns; the channels are its sine and cosine */
    bool is_angle;
    /* true: frames must have times that are dates */
    bool needs_time;
    /* true: the coordinate of dimension `along` must be in degrees */
    bool needs_degrees;
    /* Returns the angle, or the channel's value if it is no angle, at index `at` of dimension
     * `along`. time: in seconds as in TimeUnits (calendar.h). */
    double (*value)(const FieldSet *f, const FieldVariable *v, double time, int64_t at);
} Extra;

static double latitude_turns(const FieldSet *f, const FieldVariable *v, double time, int64_t at)
{
    (void)v;
    (void)time;
    return (double)f->rows.value[at] / 360;
}

static double longitude_turns(const FieldSet *f, const FieldVariable *v, double time, int64_t at)
{
    (void)v;
    (void)time;
    return (double)f->columns.value[at] / 360;
}

/* Returns the position, from -1 to 1, of index `at` in a dimension of `size` indices; 0 if size is
 * 1. */
static double relative_position(int64_t at, int64_t size)
{
    return size > 1 ? 2 * (double)at / (double)(size - 1) - 1 : 0;
}

static double row_position(const FieldSet *f, const FieldVariable *v, double time, int64_t at)
{
    (void)f;
    (void)time;
    return relative_position(at, v->size[FIELD_ROW]);
}

static double column_position(const FieldSet *f, const FieldVariable *v, double time, int64_t at)
{
    (void)f;
    (void)time;
    return relative_position(at, v->size[FIELD_COLUMN]);
}

static double day_turns(const FieldSet *f, const FieldVariable *v, double time, int64_t at)
{
    (void)f;
    (void)v;
    (void)at;
    return time / DAY_S - floor(time / DAY_S);
}

/* Returns mean solar time as a fraction of a day, which may be below 0 or above 1. It is an hour
 * later for each 15 degrees to the east. */
static double local_day_turns(const FieldSet *f, const FieldVariable *v, double time, int64_t at)
{
    return day_turns(f, v, time, at) + longitude_turns(f, v, time, at);
}

static double year_turns(const FieldSet *f, const FieldVariable *v, double time, int64_t at)
{
    (void)v;
    (void)at;
    return year_fraction((Calendar)f->calendar, time);
}

static const Extra kinds[] = {
    [EXTRA_LATITUDE] = {FIELD_ROW, true, .needs_degrees = true, .value = latitude_turns},
    [EXTRA_LONGITUDE] = {FIELD_COLUMN, true, .needs_degrees = true, .value = longitude_turns},
    [EXTRA_ROW] = {FIELD_ROW, .value = row_position},
    [EXTRA_COLUMN] = {FIELD_COLUMN, .value = column_position},
    [EXTRA_LOCAL_HOUR] = {FIELD_COLUMN, true, true, true, local_day_turns},
    [EXTRA_HOUR] = {FIELD_DIMS, true, .needs_time = true, .value = day_turns},
    [EXTRA_YEAR] = {FIELD_DIMS, true, .needs_time = true, .value = year_turns},
};
_Static_assert(sizeof kinds / sizeof *kinds == FIELD_EXTRAS, "a row for each kind");

static const char *const names[] = {EXTRA_WORDS(LIST_NAME)};

/* ---- opening ---- */

int field_extra_find(const char *name)
{
    int kind = FIELD_EXTRAS - 1;
    while (kind >= 0 && strcmp(names[kind], name) != 0) --kind;
    return kind;
}

Status field_extra_init(FieldVariable *v, const Config *config, const ConfigVariable *entry)
{
    const int kind = field_extra_find(entry->name);
    if (kind < 0) {
        const char *near = text_nearest(entry->name, names, FIELD_EXTRAS);
        return config_fail(config, entry->line, entry->column,
                           "data.variables: there is no extra channel '%s'%s%s%s; there are "
                           "latitude, longitude, row, column, local_hour, hour and year",
                           entry->name, near ? "; did you mean '" : "", near ? near : "",
                           near ? "'?" : "");
    }
    if (entry->levels.count > 0)
        return config_fail(config, entry->line, entry->column,
                           "data.variables: %s is an extra channel, which has no levels", v->name);
    v->extra_kind = (int8_t)(kind + 1);
    v->is_scalar = kinds[kind].along == FIELD_DIMS;
    v->is_static = !kinds[kind].needs_time;
    /* the sine and the cosine of an angle are two levels */
    v->levels = kinds[kind].is_angle ? 2 : 1;
    for (int i = 0; i < v->levels; ++i) {
        v->level_index[i] = (int16_t)i;
        v->level_value[i] = NAN;
    }
    return OK;
}

/* Checks that rows, or columns if `rows` is false, have a coordinate in degrees with `size` finite
 * values. */
static Status check_degrees(const DataSet *set, const FieldVariable *v, bool rows, int64_t size)
{
    const FieldSet *f = &set->field_set;
    const FieldAxis *axis = rows ? &f->rows : &f->columns;
    bool finite = true;
    for (int i = 0; i < axis->count; ++i) finite = finite && isfinite(axis->value[i]);
    if (axis->degrees && axis->count == size && finite) return OK;
    return fail(
        ERR_DATA,
        "%s: the extra channel %s needs the %s of the %s, and the inputs have no coordinate "
        "of one dimension in %s: use the extra channel %s, or list a variable that has them under "
        "data.variables.static",
        set->path, v->name, rows ? "latitudes" : "longitudes", rows ? "rows" : "columns",
        rows ? "degrees_north" : "degrees_east", rows ? "row" : "column");
}

Status field_extra_check(DataSet *set)
{
    FieldSet *f = &set->field_set;
    for (int i = f->stored; i < f->variables; ++i) {
        FieldVariable *v = &f->variable[i];
        const Extra *kind = &kinds[v->extra_kind - 1];
        const bool rows = kind->along == FIELD_ROW;
        v->size[FIELD_TIME] = 1;
        v->size[FIELD_LEVEL] = v->levels;
        v->size[FIELD_ROW] = set->height;
        v->size[FIELD_COLUMN] = set->width;
        if (kind->needs_time && f->step_s == 0)
            return fail(ERR_DATA,
                        "%s: the extra channel %s needs times, and the frames have none: remove it "
                        "from data.variables",
                        set->path, v->name);
        for (int k = 0; kind->needs_time && k < f->segments; ++k)
            if (!(fabs(f->segment[k].start) < TIME_MOST))
                return fail(ERR_DATA,
                            "%s: the extra channel %s needs times that are dates, and there is one "
                            "of %g s",
                            set->path, v->name, f->segment[k].start);
        if (kind->needs_degrees) TRY(check_degrees(set, v, rows, rows ? set->height : set->width));
    }
    return OK;
}

int field_constants(const Config *config)
{
    const ConfigVariables *list = &config->data.variables;
    const int inputs = config->data.window.inputs.count, offsets = inputs > 0 ? inputs : 1;
    int count = 0;
    for (int i = 0; i < list->count; ++i) {
        const ConfigVariable *entry = &list->item[i];
        const int kind = entry->role == FIELD_EXTRA ? field_extra_find(entry->name) : -1;
        if (entry->role == FIELD_SCALAR)
            count += offsets * (entry->levels.count > 0 ? entry->levels.count : 1);
        if (kind >= 0 && kinds[kind].along == FIELD_DIMS) count += kinds[kind].is_angle ? 2 : 1;
    }
    return count;
}

/* ---- values ---- */

const char *field_extra_part(const FieldVariable *v, int level)
{
    if (!kinds[v->extra_kind - 1].is_angle) return "";
    return level == 0 ? "sin " : "cos ";
}

void field_extra_fill(const FieldSet *f, const FieldVariable *v, double time, double *plane)
{
    const Extra *kind = &kinds[v->extra_kind - 1];
    const int64_t rows = v->size[FIELD_ROW], columns = v->size[FIELD_COLUMN];
    const int64_t n = kind->along == FIELD_ROW ? rows : kind->along == FIELD_COLUMN ? columns : 1;
    /* [levels][n]: the sines and then the cosines of an angle, or the values of a channel that is
     * no angle */
    double *value = mem_new((size_t)(2 * n) * sizeof *value);
    for (int64_t i = 0; i < n; ++i) {
        value[i] = kind->value(f, v, time, i);
        if (kind->is_angle) flow_sine(value[i], &value[i], &value[n + i]);
    }
    for (int level = 0; level < v->levels; ++level)
        for (int64_t i = 0; i < rows; ++i)
            for (int64_t k = 0; k < columns; ++k)
                *plane++ = value[level * n + (kind->along == FIELD_ROW      ? i
                                              : kind->along == FIELD_COLUMN ? k
                                                                            : 0)];
    mem_free(&value);
}
