/* Checks and reads label fields. A label field is a target whose pixels have classes. Checks the
 * configuration, names the classes, and converts values to classes. A pixel that is missing, or has
 * the value `ignore`, has no label: it becomes -1, which losses and metrics leave out. */
#include "field_facts.h"
#include "field_patch.h"
#include "fields_private.h"

#include <math.h>
#include <string.h>

_Static_assert((int)FIELD_CLASSES == (int)CONFIG_CLASSES_MOST, "a set has as many classes");

const ConfigVariable *data_label_target(const Config *config)
{
    const ConfigVariables *list = &config->data.variables;
    for (int i = 0; i < list->count; ++i)
        if (list->item[i].classes > 0) return &list->item[i];
    return NULL;
}

Status field_labels_check(const Config *config)
{
    const ConfigVariables *list = &config->data.variables;
    const ConfigVariable *labels = data_label_target(config);
    if (!labels) return OK;
    for (int i = 0; i < list->count; ++i)
        if (list->item[i].role == FIELD_TARGET && &list->item[i] != labels)
            return config_fail_key(config, "data.variables",
                                   "%s has labels, so the model's outputs are its classes and it "
                                   "must be the only target: remove %s",
                                   labels->name, list->item[i].name);
    if (config->data.window.targets.count > 1)
        return config_fail_key(config, "data.window",
                               "%s has labels, and a sample has one field of labels: give one "
                               "offset of targets",
                               labels->name);
    if (config->data.predict == PREDICT_CHANGE)
        return config_fail_key(config, "data.predict",
                               "%s has labels, whose change is no number: set it to value",
                               labels->name);
    if (config->train.rollout > 1)
        return config_fail_key(config, "train.rollout",
                               "%s has labels, and a step cannot read the outputs for them as "
                               "inputs: set it to 1",
                               labels->name);
    if (labels->weights.count > 0)
        return config_fail_key(config, "data.variables",
                               "%s has labels, whose losses weight classes: remove its weight, and "
                               "set train.class_weights",
                               labels->name);
    if (*config->data.mask || config->train.latitude_weights)
        return config_fail_key(config, *config->data.mask ? "data.mask" : "train.latitude_weights",
                               "%s has labels, and losses on labels do not weight pixels: remove "
                               "this key; a pixel with the value `ignore` does not count",
                               labels->name);
    if (config->data.label_base != 0)
        return config_fail_key(config, "data.label_base",
                               "%s is a label field, whose labels count from 0: remove it",
                               labels->name);
    return OK;
}

Status field_labels_set(DataSet *set, const Config *config)
{
    FieldSet *f = &set->field_set;
    const ConfigVariable *labels = data_label_target(config);
    if (!labels) return OK;
    if (f->targets > 1)
        return config_fail_key(config, "data.variables",
                               "%s has labels at %d levels, of which a sample can have one: select "
                               "it, levels: [...]",
                               labels->name, f->targets);
    f->classes.count = (int)labels->classes;
    f->classes.has_ignore = labels->has_ignore;
    f->classes.ignore = labels->ignore;
    return OK;
}

/* ---- names ---- */

void field_labels_name(const FieldFacts *facts, int count, FieldClasses *classes)
{
    const char *word = facts->meanings;
    classes->named = false;
    for (int c = 0; c < count; ++c) snprintf(classes->name[c], sizeof classes->name[c], "%d", c);
    for (int i = 0; i < facts->flag_count; ++i) {
        word += strspn(word, " ");
        const int length = (int)strcspn(word, " ");
        const double value = facts->flag[i];
        if (length > 0 && value >= 0 && value < count && value == floor(value)) {
            snprintf(classes->name[(int)value], sizeof classes->name[0], "%.*s", length, word);
            classes->named = true;
        }
        word += length;
    }
}

/* ---- values ---- */

static Status value_fail(const DataSet *set, double value, int64_t frame, int64_t at)
{
    const FieldSet *f = &set->field_set;
    const FieldVariable *v = &f->variable[f->target[0].variable];
    const char *path = field_path(f, field_find_file(f, frame));
    const int64_t columns = v->size[FIELD_COLUMN];
    const double last = f->classes.count - 1;
    char when[FIELD_TIME_TEXT], time[FIELD_TIME_TEXT + 8];
    field_time_text(f, field_frame_time(f, frame), when);
    snprintf(time, sizeof time, "%s%s", f->step_s > 0 ? "" : "frame ", when);
    if (value >= 0 && value <= last && value == floor(value))
        return fail(ERR_DATA,
                    "%s: %s has class %s at %s, which the model does not have: train with that "
                    "class",
                    path, v->name, f->classes.name[(int)value], time);
    return fail(ERR_DATA,
                "%s: %s is %.9g at %s, row %lld, column %lld, but labels are whole numbers from 0 "
                "to %g: correct the data or classes in data.variables; if it means 'no label', add "
                "ignore: %.9g there",
                path, v->name, value, time, (long long)(at / columns), (long long)(at % columns),
                last, value);
}

/* Converts the values of the label field in a window of a frame to classes. ERR_DATA: a value is
 * not one of the classes. */
static Status classify(const DataSet *set, int64_t frame, const FieldRect *window,
                       const double *value, int32_t *label)
{
    const FieldSet *f = &set->field_set;
    const FieldClasses *classes = &f->classes;
    const int64_t columns = f->variable[f->target[0].variable].size[FIELD_COLUMN];
    for (int64_t i = 0; i < window->rows * window->columns; ++i) {
        const double v = value[i];
        const bool none = isnan(v) || (classes->has_ignore && v == classes->ignore);
        const bool good = v >= 0 && v < classes->count && v == floor(v);
        const int64_t row = window->row + i / window->columns;
        label[i] = none ? -1 : good ? (int32_t)label_class(set, (int64_t)v) : -2;
        if (label[i] < 0 && !none)
            return value_fail(set, v, frame, row * columns + window->column + i % window->columns);
    }
    return OK;
}

Status field_read_labels(FieldReader *reader, const DataSet *set, int64_t frame, int32_t *label)
{
    const int variable = set->field_set.target[0].variable;
    const FieldVariable *v = &set->field_set.variable[variable];
    const FieldRect whole = {.rows = v->size[FIELD_ROW], .columns = v->size[FIELD_COLUMN]};
    double *value = mem_new((size_t)(whole.rows * whole.columns) * sizeof *value);
    Status st = field_read_variable(reader, variable, frame, value);
    if (st == OK) st = classify(set, frame, &whole, value, label);
    mem_free(&value);
    return st;
}

Status field_read_sample_labels(FieldReader *reader, const DataSet *set, int64_t epoch,
                                int64_t sample, int32_t *label)
{
    const FieldSet *f = &set->field_set;
    const FieldPlace place = field_place(f, epoch, sample);
    const FieldRect *window = &place.target;
    const int64_t frame = place.frame + f->offset[FIELD_TARGET][0];
    double *value = mem_new((size_t)(window->rows * window->columns) * sizeof *value);
    Status st = field_read_window(reader, f->target[0].variable, frame, window, value);
    field_patch_leave_out(&place, value);
    if (st == OK) st = classify(set, frame, window, value, label);
    mem_free(&value);
    return st;
}
