/* Writes predicted fields to a NetCDF-4 file, with the names, coordinates and attributes that the
 * first file of the set has:
 *
 *     time (T)  [lead (L)]  [lev (Z)]  lat (H)  lon (W)     coordinates
 *     t2m (time[, lead][, lev], lat, lon)                    predicted
 *     t2m_truth (...)                                        if FieldOutputPlan.writes_truth is set
 *     clouds (time, lat, lon)                                a label field: classes (int16)
 *     valid_time (time, lead)                                if there are several leads
 *
 * A lead is the time from the start of a forecast to the predicted fields. The first file of the
 * set is called the source. Attributes and coordinates that the source lacks are left out;
 * coordinates of two dimensions (curvilinear grids) are not copied. */
#include "data/field_output.h"

#include "calendar.h"
#include "fields_private.h"
#include "netcdf_write.h"
#include "scales.h"

#include <math.h>
#include <string.h>

enum {
    /* number of text attributes that are copied from the source */
    COPIED = 6,
    /* largest number of attributes of a variable */
    ATTRS = COPIED,
    /* bytes of an attribute's text */
    TEXT = 128,
    /* largest number of axes */
    AXES = 3 * FIELD_VARIABLES
};
static const char *const copied[COPIED] = {"units", "standard_name", "long_name",
                                           "axis",  "positive",      "calendar"};

/* Name and attributes of a variable or coordinate. */
typedef struct Described {
    char name[FIELD_NAME + 64];
    /* texts of the attributes */
    char text[COPIED][TEXT];
    /* attributes, [attrs]; they point to `text` */
    NetcdfAttr attr[ATTRS];
    int attrs;
} Described;

/* A dimension of the output. */
typedef struct Axis {
    /* true: the source has no name for the dimension */
    bool unnamed;
    Described is;
    /* FieldDim of the axis; -1: the axis is lead */
    int role;
    int64_t length;
    /* values of its coordinate, owned; NULL: it has none, or it is time */
    double *value;
} Axis;

/* A predicted variable: channels `first` to first + levels - 1 of each lead. */
typedef struct OutVar {
    int first, levels;
    /* for each FieldDim except time, the index of the axis; -1: the variable lacks the dimension */
    int axis[FIELD_DIMS];
    /* description of the prediction */
    Described is;
    /* description of the truth */
    Described truth;
    /* index of the prediction among the file's variables */
    int var;
    /* index of the truth among the file's variables; -1: not written */
    int truth_var;
} OutVar;

struct FieldOutput {
    FieldOutputPlan plan;
    /* owned copy of the plan's leads */
    int64_t *lead;
    NetcdfWriter *file;
    /* number of samples written so far */
    int64_t written;
    /* true: frames have times, which are written in `units` */
    bool timed;
    /* units of time in the source */
    TimeUnits units;
    /* number of entries of `axis` and of `var` */
    int axes, vars;
    Axis axis[AXES];
    /* predicted variables */
    OutVar var[FIELD_VARIABLES];
    /* index of the coordinate of time among the file's variables */
    int time_var;
    /* index of valid_time among the file's variables; -1: not written */
    int valid_var;
    /* owned: values of one variable of one sample, at all leads */
    float *row;
};

/* ---- descriptions of the source ---- */

static void add_text(Described *d, const char *name, const char *text)
{
    int at = d->attrs;
    if (!*text || at == ATTRS) return;
    snprintf(d->text[at], TEXT, "%s", text);
    d->attr[d->attrs++] = (NetcdfAttr){.name = name, .text = d->text[at]};
}

/* Copies the name, without its groups, and the text attributes of a data set of HDF5. */
static Status describe(Described *d, hid_t object, const char *name, const char *path)
{
    char text[TEXT];
    *d = (Described){.attrs = 0};
    snprintf(d->name, sizeof d->name, "%.*s", FIELD_NAME, name_in_group(name));
    for (int i = 0; i < COPIED; ++i) {
        TRY(h5_attr_text(object, path, copied[i], text, sizeof text));
        add_text(d, copied[i], text);
    }
    return OK;
}

static bool same_axis(const Axis *a, const Axis *b)
{
    return a->role == b->role && a->length == b->length && !strcmp(a->is.name, b->is.name) &&
           !a->value == !b->value &&
           (!a->value || !memcmp(a->value, b->value, (size_t)a->length * sizeof *a->value));
}

/* Adds an axis, or finds an equal axis, and returns its index. If another axis has the same name,
 * the new axis gets a number: "lat_2". Takes ownership of axis->value. */
static int add_axis(FieldOutput *o, Axis *axis)
{
    char name[sizeof axis->is.name];
    int number = 1;
    memcpy(name, axis->is.name, sizeof name);
    for (int i = 0; i < o->axes; ++i) {
        if (same_axis(&o->axis[i], axis)) {
            mem_free(&axis->value);
            return i;
        }
        if (strcmp(o->axis[i].is.name, axis->is.name) != 0) continue;
        snprintf(axis->is.name, sizeof axis->is.name, "%.*s_%d", FIELD_NAME, name, ++number);
        i = -1;
    }
    o->axis[o->axes] = *axis;
    return o->axes++;
}

/* Makes the axis of dimension i of a variable in `file`. scale: its dimension scale; -1: it has
 * none. */
static Status make_axis(const FieldOutput *o, hid_t file, const FieldVariable *v, hid_t scale,
                        int i, Axis *axis)
{
    static const char *const usual[] = {"time", "level", "y", "x"};
    const char *path = o->plan.set->path;
    char name[FIELD_NAME];
    const int role = v->dim[i];
    Status st = OK;
    *axis = (Axis){.role = role, .length = v->size[role]};
    if (scale_name(scale, name, sizeof name) && *name) st = describe(&axis->is, scale, name, path);
    axis->unnamed = !axis->is.name[0];
    if (axis->unnamed) snprintf(axis->is.name, sizeof axis->is.name, "%s", usual[role]);
    if (st == OK && role != FIELD_TIME && role != FIELD_LEVEL)
        st = scale_read(file, scale, path, axis->is.name, axis->length, false, &axis->value);
    if (role == FIELD_TIME) axis->length = o->plan.samples;
    if (role != FIELD_LEVEL) return st;
    axis->length = v->levels;
    if (isnan(v->level_value[0])) return st;
    axis->value = mem_new((size_t)v->levels * sizeof *axis->value);
    memcpy(axis->value, v->level_value, (size_t)v->levels * sizeof *axis->value);
    return st;
}

/* Describes a target's variable and adds its axes; the first axis is time. */
static Status add_variable(FieldOutput *o, hid_t file, int first)
{
    const FieldSet *f = &o->plan.set->field_set;
    const FieldVariable *v = &f->variable[f->target[first].variable];
    OutVar *out = &o->var[o->vars++];
    hid_t dataset, scale[SHAPE_DIMS];
    *out = (OutVar){.first = first, .levels = v->levels, .axis = {-1, -1, -1, -1}, .truth_var = -1};
    TRY(h5_dataset(&dataset, file, field_path(f, 0), v->name, NULL));
    scales_open(dataset, v->ndim, scale);
    Status st = describe(&out->is, dataset, v->name, field_path(f, 0));
    for (int i = 0; st == OK && i < v->ndim; ++i) {
        Axis axis;
        st = make_axis(o, file, v, scale[i], i, &axis);
        if (v->dim[i] == FIELD_TIME && o->axes > 0) continue;
        const int at = add_axis(o, &axis);
        if (v->dim[i] != FIELD_TIME) out->axis[v->dim[i]] = at;
    }
    scales_close(scale);
    H5Dclose(dataset);
    int number = 1;
    for (int i = 0; i < o->vars - 1; ++i)
        if (!strcmp(o->var[i].is.name, out->is.name)) ++number;
    char suffix[16] = "";
    if (number > 1) snprintf(suffix, sizeof suffix, "_%d", number);
    strcat(out->is.name, suffix);
    out->truth = out->is;
    for (int i = 0; i < out->truth.attrs; ++i) out->truth.attr[i].text = out->truth.text[i];
    strcat(out->truth.name, "_truth");
    return st;
}

/* Adds the axis of time as the first axis; the variables may have their dimensions in any order. */
static Status add_time(FieldOutput *o, hid_t file)
{
    const FieldSet *f = &o->plan.set->field_set;
    const FieldVariable *v = &f->variable[f->target[0].variable];
    char units[TEXT] = "", calendar[TEXT] = "";
    hid_t dataset, scale[SHAPE_DIMS];
    Axis axis;
    int at = 0;
    TRY(h5_dataset(&dataset, file, field_path(f, 0), v->name, NULL));
    while (v->dim[at] != FIELD_TIME) ++at;
    scales_open(dataset, v->ndim, scale);
    Status st = make_axis(o, file, v, scale[at], at, &axis);
    scales_close(scale);
    H5Dclose(dataset);
    TRY(st);
    for (int i = 0; i < axis.is.attrs; ++i) {
        if (!strcmp(axis.is.attr[i].name, "units")) snprintf(units, TEXT, "%s", axis.is.text[i]);
        if (!strcmp(axis.is.attr[i].name, "calendar"))
            snprintf(calendar, TEXT, "%s", axis.is.text[i]);
    }
    o->timed = f->step_s > 0 && time_units_read(units, calendar, &o->units) == OK;
    add_axis(o, &axis);
    return OK;
}

static bool has_variable(const FieldOutput *o, const char *name)
{
    int i = 0;
    while (i < o->vars && strcmp(o->var[i].is.name, name) != 0) ++i;
    return i < o->vars;
}

/* Renames an axis if it has no name in the source, and its usual name is also the name of a
 * variable. In NetCDF such a variable would be the coordinate of the axis. */
static void rename_axes(FieldOutput *o)
{
    for (int i = 0; i < o->axes; ++i) {
        char *name = o->axis[i].is.name;
        if (o->axis[i].unnamed && has_variable(o, name)) strcat(name, "_dim");
    }
}

static Status read_source(FieldOutput *o)
{
    const FieldSet *f = &o->plan.set->field_set;
    hid_t file;
    hdf5_lock();
    Status st = h5_open(&file, field_path(f, 0));
    if (st == OK) {
        st = add_time(o, file);
        for (int i = 0; st == OK && i < o->plan.channels; ++i)
            if (i == 0 || f->target[i].variable != f->target[i - 1].variable)
                st = add_variable(o, file, i);
        H5Fclose(file);
    }
    hdf5_unlock();
    rename_axes(o);
    return st;
}

/* ---- layout ---- */

/* Adds the dimension and coordinate lead. */
static void add_leads(FieldOutput *o)
{
    const double step_s = o->plan.set->field_set.step_s;
    Axis axis = {.role = -1, .length = o->plan.leads};
    snprintf(axis.is.name, sizeof axis.is.name, "lead");
    axis.value = mem_new((size_t)axis.length * sizeof *axis.value);
    for (int i = 0; i < o->plan.leads; ++i)
        axis.value[i] = step_s > 0 ? (double)o->lead[i] * step_s / 3600 : (double)o->lead[i];
    add_text(&axis.is, "units", step_s > 0 ? "hours" : "");
    add_text(&axis.is, "long_name", "time since the start of the forecast");
    add_axis(o, &axis);
}

typedef struct Layout {
    NetcdfDim dim[AXES];
    NetcdfVar var[AXES + 2 * FIELD_VARIABLES + 1];
    int vars;
} Layout;

static int add_var(Layout *l, const Described *is, ElementType type, int ndim, const int *dim)
{
    static const double missing = NAN, none = -1;
    NetcdfVar *v = &l->var[l->vars];
    *v = (NetcdfVar){.name = is->name,
                     .type = type,
                     .ndim = ndim,
                     .attr = is->attr,
                     .attrs = is->attrs,
                     .fill = type == ELEM_F32   ? &missing
                             : type == ELEM_I16 ? &none
                                                : NULL};
    memcpy(v->dim, dim, (size_t)ndim * sizeof *dim);
    return l->vars++;
}

/* Lists dimensions and variables. Axis 0 is time, axis 1 lead if there are several leads. */
static void list_all(FieldOutput *o, Layout *l, Described *valid)
{
    const bool leads = o->plan.leads > 1;
    for (int i = 0; i < o->axes; ++i) {
        l->dim[i] = (NetcdfDim){o->axis[i].is.name, o->axis[i].length};
        if (i == 0 || o->axis[i].value) add_var(l, &o->axis[i].is, ELEM_F64, 1, &i);
    }
    o->time_var = 0;
    *valid = o->axis[0].is;
    for (int i = 0; i < valid->attrs; ++i) valid->attr[i].text = valid->text[i];
    memcpy(valid->name, "valid_", sizeof "valid_");
    strcat(valid->name, o->axis[0].is.name);
    o->valid_var = leads ? add_var(l, valid, ELEM_F64, 2, (const int[]){0, 1}) : -1;
    for (int i = 0; i < o->vars; ++i) {
        OutVar *v = &o->var[i];
        int dim[NETCDF_VAR_DIMS_MAX], ndim = 0;
        dim[ndim++] = 0;
        if (leads) dim[ndim++] = 1;
        for (int d = FIELD_LEVEL; d < FIELD_DIMS; ++d)
            if (v->axis[d] >= 0) dim[ndim++] = v->axis[d];
        const int classes = o->plan.set->field_set.classes.count;
        const ElementType type = classes > 0 ? ELEM_I16 : ELEM_F32;
        v->var = add_var(l, &v->is, type, ndim, dim);
        /* Every pixel has a predicted class, so no fill value is needed. */
        if (classes > 0) l->var[v->var].fill = NULL;
        if (o->plan.writes_truth) v->truth_var = add_var(l, &v->truth, type, ndim, dim);
        for (int k = v->var; o->plan.meanings && k < l->vars; ++k) {
            l->var[k].classes = classes;
            l->var[k].flag_meanings = o->plan.meanings;
        }
    }
}

static Status make_file(FieldOutput *o)
{
    Layout *l = mem_new(sizeof *l);
    Described *valid = mem_new(sizeof *valid);
    list_all(o, l, valid);
    const NetcdfAttr attr[] = {{.name = "Conventions", .text = "CF-1.8"},
                               {.name = "title", .text = o->plan.title},
                               {.name = "source", .text = o->plan.source}};
    const NetcdfFile file = {.dim = l->dim,
                             .dims = o->axes,
                             .var = l->var,
                             .vars = l->vars,
                             .attr = attr,
                             .attrs = sizeof attr / sizeof *attr};
    Status st = netcdf_writer_new(&o->file, o->plan.path, o->plan.force, &file);
    for (int i = 1, var = 1; st == OK && i < o->axes; ++i)
        if (o->axis[i].value)
            st = netcdf_write(o->file, var++, 0, o->axis[i].length, o->axis[i].value);
    mem_free(&valid);
    mem_free(&l);
    return st;
}

static void output_free(FieldOutput **output)
{
    FieldOutput *o = *output;
    for (int i = 0; i < o->axes; ++i) mem_free(&o->axis[i].value);
    mem_free(&o->lead);
    mem_free(&o->row);
    mem_free(output);
}

Status field_output_new(FieldOutput **output, const FieldOutputPlan *plan)
{
    FieldOutput *o = *output = mem_new(sizeof *o);
    const DataSet *set = plan->set;
    const size_t pixels = (size_t)(set->y.dim[2] * set->y.dim[3]);
    o->plan = *plan;
    o->lead = mem_new((size_t)plan->leads * sizeof *o->lead);
    memcpy(o->lead, plan->lead, (size_t)plan->leads * sizeof *o->lead);
    Status st = read_source(o);
    int levels = 1;
    for (int i = 0; i < o->vars; ++i)
        if (o->var[i].levels > levels) levels = o->var[i].levels;
    o->row = mem_new((size_t)(plan->leads * levels) * pixels * sizeof *o->row);
    if (st == OK && plan->leads > 1) {
        /* add_leads appends the axis lead; it is then moved to index 1 */
        add_leads(o);
        const Axis lead = o->axis[o->axes - 1];
        memmove(&o->axis[2], &o->axis[1], (size_t)(o->axes - 2) * sizeof lead);
        o->axis[1] = lead;
        for (int i = 0; i < o->vars; ++i)
            for (int d = 0; d < FIELD_DIMS; ++d) o->var[i].axis[d] += o->var[i].axis[d] >= 0;
    }
    /* the structures have been copied, so attributes must point to the copied texts */
    for (int i = 0; i < o->axes; ++i)
        for (int k = 0; k < o->axis[i].is.attrs; ++k)
            o->axis[i].is.attr[k].text = o->axis[i].is.text[k];
    for (int i = 0; i < o->vars; ++i)
        for (int k = 0; k < o->var[i].is.attrs; ++k)
            o->var[i].is.attr[k].text = o->var[i].is.text[k];
    if (st == OK) st = make_file(o);
    if (st == OK) return OK;
    netcdf_drop(&o->file);
    output_free(output);
    return st;
}

/* ---- samples ---- */

/* Returns the time of a frame in the units of the file, or its number if frames have no times. */
static double time_of(const FieldOutput *o, int64_t frame)
{
    const double time = field_frame_time(&o->plan.set->field_set, frame);
    return o->timed ? (time - o->units.origin) / o->units.unit : (double)frame;
}

/* Writes the next sample of a predicted variable, or of its truth, as variable `var` of the file.
 * field: (leads, channels, H, W). */
static Status put_variable(FieldOutput *o, const OutVar *v, int var, const float *field)
{
    const DataSet *set = o->plan.set;
    const int64_t pixels = set->y.dim[2] * set->y.dim[3];
    for (int l = 0; l < o->plan.leads; ++l)
        memcpy(o->row + l * v->levels * pixels, field + (l * o->plan.channels + v->first) * pixels,
               (size_t)(v->levels * pixels) * sizeof *field);
    int16_t *label = (void *)o->row;
    for (int64_t i = 0; set->field_set.classes.count > 0 && i < pixels; ++i)
        label[i] = isnan(field[i]) ? -1 : (int16_t)field[i];
    return netcdf_write(o->file, var, o->written, 1, o->row);
}

Status field_output_put(FieldOutput *o, int64_t sample, const float *predicted, const float *truth)
{
    const int64_t frame = field_sample_frame(&o->plan.set->field_set, sample);
    const double start = time_of(o, frame), step = o->plan.set->field_set.step_s / o->units.unit;
    double *valid = mem_new((size_t)o->plan.leads * sizeof *valid);
    /* a lead may be beyond the set's last frame, so its time is computed from the start */
    for (int l = 0; l < o->plan.leads; ++l)
        valid[l] = start + (double)o->lead[l] * (o->timed ? step : 1);
    Status st =
        netcdf_write(o->file, o->time_var, o->written, 1, o->plan.leads > 1 ? &start : valid);
    if (st == OK && o->valid_var >= 0)
        st = netcdf_write(o->file, o->valid_var, o->written, 1, valid);
    mem_free(&valid);
    for (int i = 0; st == OK && i < o->vars; ++i) {
        const OutVar *v = &o->var[i];
        st = put_variable(o, v, v->var, predicted);
        if (st == OK && v->truth_var >= 0) st = put_variable(o, v, v->truth_var, truth);
    }
    ++o->written;
    return st;
}

Status field_output_finish(FieldOutput **output)
{
    Status st = netcdf_finish(&(*output)->file);
    output_free(output);
    return st;
}

void field_output_drop(FieldOutput **output)
{
    if (!*output) return;
    netcdf_drop(&(*output)->file);
    output_free(output);
}
