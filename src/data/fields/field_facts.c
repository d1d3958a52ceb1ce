/* Reads the facts of a file's variables with HDF5: arrays (by set/facts.c), dimensions, packing (CF
 * conventions, section 8.1) and coordinates. The meaning of a dimension (time, level, row, column)
 * is found by the attributes axis, standard_name and units of its dimension scale, else by its
 * name. place_rest gives the dimensions that are still unknown the meanings that are left. */
#include "field_facts.h"
#include "../set/facts.h"
#include "calendar.h"
#include "fields_private.h"
#include "scales.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <xxhash.h>

typedef struct Reading {
    const FieldFactsRequest *request;
    const char *path;
    HashPieces *layout;
    FieldFacts *facts;
    FactsFile file;
    /* owned: times of the frames; NULL: not read yet */
    double *times;
    /* address in the file of the coordinate that has these times */
    haddr_t times_at;
} Reading;

/* A dimension of an array. */
typedef struct Dimension {
    /* its dimension scale; -1: it has none */
    hid_t scale;
    int64_t length;
    /* name of its dimension scale; "": it has none */
    char name[FIELD_NAME];
} Dimension;

/* ---- attributes ---- */

static Status attr_text(const Reading *r, hid_t object, const char *name, char text[FIELD_UNITS])
{
    TRY(h5_attr_text(object, r->path, name, text, FIELD_UNITS));
    for (char *c = text; *c; ++c)
        if ((unsigned char)*c < ' ' || *c == 127) *c = '?';
    return OK;
}

/* Reads the stored values that mean "missing". If the array is of float32, rounds them to float32,
 * because they are compared with values of that type. */
static Status read_missing(const Reading *r, hid_t dataset, FieldVariableFacts *v)
{
    FieldPacking *p = &v->packing;
    int count;
    TRY(scale_attr_numbers(dataset, r->path, v->array.name, "_FillValue", 1, p->missing,
                           &p->missing_count));
    if (p->missing_count == 0 && element_is_float(v->array.type))
        p->missing[p->missing_count++] = FIELD_NEVER_WRITTEN;
    TRY(scale_attr_numbers(dataset, r->path, v->array.name, "missing_value",
                           FIELD_MISSING_CODES_MAX - p->missing_count,
                           &p->missing[p->missing_count], &count));
    p->missing_count += count;
    for (int i = 0; i < p->missing_count && v->array.type == ELEM_F32; ++i)
        p->missing[i] = (double)(float)p->missing[i];
    return OK;
}

static Status read_packing(const Reading *r, hid_t dataset, FieldVariableFacts *v)
{
    TRY(scale_packing(dataset, r->path, v->array.name, &v->packing));
    return read_missing(r, dataset, v);
}

/* ---- dimensions ---- */

static bool is_word(const char *word, const char *words)
{
    const size_t length = strlen(word);
    for (const char *at = words; *at; at += strcspn(at, " "), at += *at == ' ')
        if (strcspn(at, " ") == length && strncasecmp(at, word, length) == 0) return true;
    return false;
}

/* Finds the meaning of a dimension by the attributes of its scale, or else by its name. *role: a
 * FieldDim; -1: the meaning is unknown. */
static Status find_role(const Reading *r, const Dimension *d, int8_t *role)
{
    static const char *const names[] = {
        [FIELD_TIME] = "time t valid_time xtime sample samples",
        [FIELD_LEVEL] = "level lev plev pressure pressure_level isobaricinhpa depth height z "
                        "altitude sigma model_level hybrid",
        [FIELD_ROW] = "y lat latitude rlat south_north nj yc",
        [FIELD_COLUMN] = "x lon longitude rlon west_east ni xc",
    };
    static const char *const standard[] = {
        [FIELD_TIME] = "time",
        [FIELD_LEVEL] = "air_pressure height altitude depth model_level_number "
                        "atmosphere_hybrid_sigma_pressure_coordinate atmosphere_sigma_coordinate",
        [FIELD_ROW] = "latitude projection_y_coordinate grid_latitude",
        [FIELD_COLUMN] = "longitude projection_x_coordinate grid_longitude",
    };
    char axis[FIELD_UNITS] = "", words[FIELD_UNITS] = "", units[FIELD_UNITS] = "";
    static const char axes[] = "TZYX";
    if (d->scale >= 0) {
        TRY(attr_text(r, d->scale, "axis", axis));
        TRY(attr_text(r, d->scale, "standard_name", words));
        TRY(attr_text(r, d->scale, "units", units));
    }
    const char *by_axis = axis[0] && !axis[1] ? strchr(axes, axis[0]) : NULL;
    *role = by_axis ? (int8_t)(by_axis - axes) : -1;
    for (int8_t i = 0; *role < 0 && i < FIELD_DIMS; ++i)
        if (words[0] && is_word(words, standard[i])) *role = i;
    if (*role < 0 && time_units_like(units)) *role = FIELD_TIME;
    for (int8_t i = 0; *role < 0 && i < FIELD_DIMS; ++i)
        if (is_word(d->name, names[i])) *role = i;
    return OK;
}

static Status scales_fail(const Reading *r, const FieldVariableFacts *v)
{
    return fail(ERR_DATA,
                "%s: attribute DIMENSION_LIST of %s, which names its dimensions, is damaged: copy "
                "or make the file again",
                r->path, v->array.name);
}

/* Gives the dimensions whose meaning is unknown the meanings that are left, beginning with the last
 * dimension. */
static Status place_rest(const Reading *r, FieldVariableFacts *v, bool scalar)
{
    bool taken[FIELD_DIMS] = {false};
    const int ndim = v->array.ndim;
    for (int i = 0; i < ndim; ++i) {
        if (v->dim[i] < 0) continue;
        if (taken[v->dim[i]])
            return fail(ERR_DATA, "%s: %s has two dimensions that seem to be its %s", r->path,
                        v->array.name, field_dim_name(v->dim[i]));
        taken[v->dim[i]] = true;
    }
    /* (time, row, column) is more usual than (level, row, column) */
    static const int8_t fields[] = {FIELD_COLUMN, FIELD_ROW, FIELD_TIME, FIELD_LEVEL};
    static const int8_t scalars[] = {FIELD_TIME, FIELD_LEVEL, FIELD_ROW, FIELD_COLUMN};
    const int8_t *order = scalar ? scalars : fields;
    int8_t left[SHAPE_DIMS];
    int unplaced = 0, count = 0;
    for (int i = 0; i < ndim; ++i) unplaced += v->dim[i] < 0;
    for (int i = 0; i < FIELD_DIMS && count < unplaced; ++i)
        if (!taken[order[i]]) left[count++] = order[i];
    if (unplaced == 4 && !scalar) left[2] = FIELD_LEVEL, left[3] = FIELD_TIME;
    for (int i = ndim - 1, at = 0; i >= 0; --i)
        if (v->dim[i] < 0) v->dim[i] = left[at++];
    return OK;
}

/* ---- coordinates ---- */

/* Reads the values of a dimension's scale into *values, which the caller owns. *count: their
 * number; 0: the scale is no coordinate of d->length numbers, or has more than `most` of them. For
 * times (`longer`) it may have more: the variable may have been written for fewer times. */
static Status read_coordinate(const Reading *r, const Dimension *d, int64_t most, bool longer,
                              double **values, int64_t *count)
{
    *values = NULL;
    Status st = OK;
    if (d->length <= most)
        st = scale_read(r->file.file, d->scale, r->path, d->name, d->length, longer, values);
    *count = *values ? d->length : 0;
    return st;
}

/* Reads the times of the frames from the coordinate of dimension d. ERR_DATA: they differ from the
 * times of an earlier variable. */
static Status read_times(Reading *r, const Dimension *d, const FieldVariableFacts *v)
{
    FieldFacts *facts = r->facts;
    H5O_info_t info = {0};
    double *times;
    int64_t count;
    if (d->scale < 0 || H5Oget_info(d->scale, &info) < 0 || (r->times && info.addr == r->times_at))
        return OK;
    Status st = read_coordinate(r, d, FIELD_TIMES, true, &times, &count);
    if (st == OK && count > 0 && !r->times) {
        r->times = times;
        r->times_at = info.addr;
        facts->times = count;
        TRY(attr_text(r, d->scale, "units", facts->time_units));
        return attr_text(r, d->scale, "calendar", facts->calendar);
    }
    if (st == OK && count > 0 &&
        (count != facts->times || memcmp(times, r->times, (size_t)count * sizeof *times) != 0))
        st = fail(ERR_DATA, "%s: the times of %s (%s) differ from those of other variables",
                  r->path, v->array.name, d->name);
    mem_free(&times);
    return st;
}

static Status read_levels(const Reading *r, const Dimension *d, FieldVariableFacts *v)
{
    double *values;
    int64_t count;
    Status st = read_coordinate(r, d, FIELD_COORDINATES, false, &values, &count);
    v->levels = (int)count;
    if (count > 0) memcpy(v->level, values, (size_t)count * sizeof *values);
    mem_free(&values);
    return st;
}

/* Sets *axis to the coordinate of rows or columns, unless *axis has values already, or there are
 * more than FIELD_ROWS values. */
static Status set_axis(const Reading *r, const Dimension *d, bool rows, const double *values,
                       int64_t count, FieldAxis *axis)
{
    char units[FIELD_UNITS] = "";
    if (axis->count > 0 || count > FIELD_ROWS) return OK;
    axis->count = (int)count;
    for (int i = 0; i < count; ++i) axis->value[i] = (float)values[i];
    TRY(attr_text(r, d->scale, "units", units));
    axis->degrees =
        is_word(units, rows ? "degrees_north degree_north degrees_n degree_n degreen degreesn"
                            : "degrees_east degree_east degrees_e degree_e degreee degreese");
    for (int i = 0; rows && axis->degrees && i < count; ++i)
        if (fabs(values[i]) > 90.01)
            return fail(ERR_DATA, "%s: %s has the latitude %g, in %s: there is none beyond 90",
                        r->path, d->name, values[i], units);
    return OK;
}

/* Reads the coordinate of rows or columns, and hashes it. */
static Status read_grid(const Reading *r, const Dimension *d, bool rows, int variable)
{
    FieldFacts *facts = r->facts;
    FieldVariableFacts *v = &facts->variable[variable];
    const int roles = r->request->roles[variable];
    double *values;
    int64_t count;
    Status st = read_coordinate(r, d, 1 << 20, false, &values, &count);
    if (st == OK && count > 0)
        v->grid_hash = XXH3_64bits_withSeed(values, (size_t)count * sizeof *values,
                                            v->grid_hash + (uint64_t)rows);
    if (st == OK && count > 0 && roles & ~(1 << FIELD_TARGET))
        st = set_axis(r, d, rows, values, count, rows ? &facts->rows : &facts->columns);
    if (st == OK && count > 0 && rows && roles & 1 << FIELD_TARGET)
        st = set_axis(r, d, rows, values, count, &facts->target_rows);
    mem_free(&values);
    return st;
}

static Status read_dimensions(Reading *r, hid_t dataset, int variable)
{
    FieldVariableFacts *v = &r->facts->variable[variable];
    Dimension d[SHAPE_DIMS];
    hid_t scale[SHAPE_DIMS];
    const int ndim = v->array.ndim;
    Status st = scales_open(dataset, ndim, scale) ? OK : scales_fail(r, v);
    for (int i = 0; st == OK && i < ndim; ++i) {
        d[i] = (Dimension){.scale = scale[i], .length = v->array.dim[i]};
        st = scale_name(scale[i], d[i].name, sizeof d[i].name) ? find_role(r, &d[i], &v->dim[i])
                                                               : scales_fail(r, v);
    }
    if (st == OK) st = place_rest(r, v, r->request->is_scalar[variable]);
    for (int i = 0; st == OK && i < ndim; ++i) {
        if (v->dim[i] == FIELD_TIME && !r->request->is_static[variable])
            st = read_times(r, &d[i], v);
        else if (v->dim[i] == FIELD_LEVEL)
            st = read_levels(r, &d[i], v);
        else if (v->dim[i] != FIELD_TIME)
            st = read_grid(r, &d[i], v->dim[i] == FIELD_ROW, variable);
    }
    scales_close(scale);
    return st;
}

/* ---- values ---- */

/* Adds values to a hash. They are unpacked as readers do it, and rounded to single precision. */
static void hash_numbers(HashPieces *hash, const FieldPacking *p, const double *value,
                         int64_t count)
{
    for (int64_t i = 0; i < count; ++i) {
        bool missing = isnan(value[i]) != 0;
        for (int m = 0; m < p->missing_count; ++m) missing |= value[i] == p->missing[m];
        /* + 0.0F turns -0 into 0; all NaNs have the bits of NAN */
        const float number = missing ? NAN : (float)(value[i] * p->scale + p->add) + 0.0F;
        hash_add(hash, &number, sizeof number);
    }
}

/* Hashes the values of a variable or, if it has times, its values at the first time. */
static Status hash_values(const Reading *r, hid_t dataset, FieldVariableFacts *v)
{
    enum { PIECE_VALUES = 4 << 20 };
    hsize_t start[SHAPE_DIMS] = {0}, count[SHAPE_DIMS];
    const int ndim = v->array.ndim;
    int along = 0;
    int64_t inner = 1;
    for (int i = 0; i < ndim; ++i)
        count[i] = v->dim[i] == FIELD_TIME ? 1 : (hsize_t)v->array.dim[i];
    while (along < ndim - 1 && count[along] == 1) ++along;
    for (int i = along + 1; i < ndim; ++i) inner *= (int64_t)count[i];
    const int64_t length = (int64_t)count[along];
    int64_t each = inner < PIECE_VALUES ? PIECE_VALUES / inner : 1;
    if (each > length) each = length;
    double *value = mem_new((size_t)(each * inner) * sizeof *value);
    HashPieces *hash = hash_begin();
    Status st = OK;
    for (int64_t at = 0; st == OK && at < length; at += each) {
        const int64_t n = length - at < each ? length - at : each;
        start[along] = (hsize_t)at;
        count[along] = (hsize_t)n;
        hid_t space = H5Dget_space(dataset), memory = H5Screate_simple(ndim, count, NULL);
        if (H5Sselect_hyperslab(space, H5S_SELECT_SET, start, NULL, count, NULL) < 0 ||
            H5Dread(dataset, H5T_NATIVE_DOUBLE, memory, space, H5P_DEFAULT, value) < 0)
            st = fail(ERR_DATA, "%s: %s cannot be read: %s", r->path, v->array.name,
                      h5_error_text());
        H5Sclose(memory);
        H5Sclose(space);
        if (st == OK) hash_numbers(hash, &v->packing, value, n * inner);
    }
    v->value_hash = hash_end(&hash);
    mem_free(&value);
    return st;
}

/* Reads the values of the label field that have a name, and the names (attributes flag_values and
 * flag_meanings: CF conventions, section 3.5). */
static Status read_flags(const Reading *r, hid_t dataset, const FieldVariableFacts *v)
{
    FieldFacts *facts = r->facts;
    TRY(h5_attr_text(dataset, r->path, "flag_meanings", facts->meanings, sizeof facts->meanings));
    for (char *c = facts->meanings; *c; ++c)
        if ((unsigned char)*c < ' ' || *c == 127) *c = '?';
    if (!*facts->meanings) return OK;
    return scale_attr_numbers(dataset, r->path, v->array.name, "flag_values", FIELD_CLASSES,
                              facts->flag, &facts->flag_count);
}

static Status read_variable(Reading *r, int i)
{
    FieldVariableFacts *v = &r->facts->variable[i];
    hid_t dataset;
    const char *key = i == r->request->mask ? "data.mask" : "data.variables";
    TRY(facts_read_array(&r->file, &v->array, r->request->name[i], key));
    TRY(h5_dataset(&dataset, r->file.file, r->path, v->array.name, NULL));
    h5_layout_hash(dataset, r->layout);
    Status st = read_packing(r, dataset, v);
    if (st == OK) st = attr_text(r, dataset, "units", v->units);
    if (st == OK) st = read_dimensions(r, dataset, i);
    if (st == OK && i == r->request->labels) st = read_flags(r, dataset, v);
    if (st == OK && r->request->hash_values &&
        (r->request->is_static[i] || !memchr(v->dim, FIELD_TIME, (size_t)v->array.ndim)))
        st = hash_values(r, dataset, v);
    H5Dclose(dataset);
    return st;
}

void field_facts_read(const FieldFactsRequest *request, const char *path, FieldFacts *facts,
                      double **times)
{
    Reading r = {.request = request, .path = path, .facts = facts, .layout = hash_begin()};
    *facts = (FieldFacts){0};
    hdf5_lock();
    facts->status = facts_file_open(&r.file, path);
    for (int i = 0; facts->status == OK && i < request->count; ++i)
        facts->status = read_variable(&r, i);
    if (facts->status != OK) snprintf(facts->why, sizeof facts->why, "%s", fail_message());
    if (r.file.file >= 0) H5Fclose(r.file.file);
    hdf5_unlock();
    facts->stat = r.file.stat;
    facts->layout = hash_end(&r.layout);
    if (!r.times) facts->times = 0;
    *times = r.times;
}
