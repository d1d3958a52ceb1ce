/* Reads and writes attributes of CheckpointMeta that a file need not have. State: evaluations,
 * learning rate and hook, which later steps depend on. Input: the description of a sample, names of
 * classes, ranges of the data's values, files of a set that grows, and the record of algorithms. */
#include "meta.h"

#include <math.h>

enum { RANGE_NUMBERS = 4 };

bool meta_put_state(hid_t root, const CheckpointMeta *meta)
{
    bool good = meta->lr.lr <= 0 || attr_put_real(root, "lr", meta->lr.lr);
    if (meta->hook_stop) good = good && attr_put_int(root, "hook_stop", 1);
    if (meta->evaluation_due) good = good && attr_put_int(root, "evaluation_due", 1);
    if (meta->evaluations == 0) return good;
    return good && attr_put_int(root, "evaluations", meta->evaluations) &&
           attr_put_real(root, "plateau_best", meta->lr.best) &&
           attr_put_int(root, "plateau_bad", meta->lr.bad_evaluations) &&
           attr_put_int(root, "plateau_falls", meta->lr.falls) &&
           attr_put_real(root, "early_stop_best", meta->stop_best) &&
           attr_put_int(root, "early_stop_bad", meta->stop_bad_evaluations);
}

const char *meta_get_state(hid_t root, CheckpointMeta *meta)
{
    int64_t stop = 0, due = 0;
    if (H5Aexists(root, "lr") > 0 && !(attr_real(root, "lr", &meta->lr.lr) && meta->lr.lr > 0))
        return "lr";
    if (H5Aexists(root, "hook_stop") > 0 && !attr_int(root, "hook_stop", &stop)) return "hook_stop";
    meta->hook_stop = stop != 0;
    if (H5Aexists(root, "evaluation_due") > 0 && !attr_int(root, "evaluation_due", &due))
        return "evaluation_due";
    meta->evaluation_due = due != 0;
    if (H5Aexists(root, "evaluations") <= 0) return NULL;
    const struct {
        const char *name;
        int64_t *whole;
        double *real;
    } row[] = {{"evaluations", &meta->evaluations, NULL},
               {"plateau_best", NULL, &meta->lr.best},
               {"plateau_bad", &meta->lr.bad_evaluations, NULL},
               {"plateau_falls", &meta->lr.falls, NULL},
               {"early_stop_best", NULL, &meta->stop_best},
               {"early_stop_bad", &meta->stop_bad_evaluations, NULL}};
    for (size_t i = 0; i < sizeof row / sizeof *row; ++i) {
        bool good = row[i].real ? attr_real(root, row[i].name, row[i].real)
                                : attr_int(root, row[i].name, row[i].whole) && *row[i].whole >= 0;
        if (!good) return row[i].name;
    }
    return NULL;
}

static bool put_range(hid_t root, const char *name, const DataRange *range)
{
    const float value[RANGE_NUMBERS] = {(float)range->least, (float)range->most, (float)range->mean,
                                        (float)range->deviation};
    return attr_put_floats(root, name, value, range->count > 0 ? RANGE_NUMBERS : 0);
}

/* Reads a range. Returns false if the attribute is damaged. */
static bool get_range(hid_t root, const char *name, DataRange *range)
{
    float value[RANGE_NUMBERS];
    int count;
    if (!attr_floats(root, name, value, RANGE_NUMBERS, &count)) return false;
    if (count == 0) return true;
    for (int i = 0; i < count; ++i)
        if (!isfinite(value[i])) return false;
    *range =
        (DataRange){count, (double)value[0], (double)value[1], (double)value[2], (double)value[3]};
    return count == RANGE_NUMBERS && range->least <= range->most && range->deviation >= 0;
}

_Static_assert(sizeof(ColumnRange) == COLUMN_RANGE_NUMBERS * sizeof(float), "stored as floats");

/* Reads the ranges of columns. Returns false if the attribute is damaged. */
static bool get_columns(hid_t root, DataRanges *ranges)
{
    enum { MOST = DATA_COLUMNS_RANGED * COLUMN_RANGE_NUMBERS };
    int count;
    if (H5Aexists(root, "column_ranges") <= 0) return true;
    float *value = mem_new(MOST * sizeof *value);
    bool good = attr_floats(root, "column_ranges", value, MOST, &count) &&
                count % COLUMN_RANGE_NUMBERS == 0;
    for (int i = 0; good && i < count; ++i) good = isfinite(value[i]);
    if (good) {
        DataRanges all = {.columns = count / COLUMN_RANGE_NUMBERS, .column = (void *)value};
        DataRanges copy = data_ranges_copy(&all);
        ranges->columns = copy.columns;
        ranges->column = copy.column;
    }
    mem_free(&value);
    return good;
}

bool meta_put_input(hid_t root, const CheckpointMeta *meta)
{
    const CheckpointInput *input = &meta->input;
    bool good = !meta->classes || attr_put_text(root, "classes", meta->classes);
    good = good && (!meta->algorithms || attr_put_text(root, "algorithms", meta->algorithms));
    good = good && (!meta->data_files || attr_put_text(root, "data_files", meta->data_files));
    good = good && put_range(root, "input_range", &meta->ranges.inputs) &&
           put_range(root, "target_range", &meta->ranges.targets) &&
           attr_put_floats(root, "column_ranges", (const float *)meta->ranges.column,
                           (int)meta->ranges.columns * COLUMN_RANGE_NUMBERS);
    good = good && (input->classes == 0 || attr_put_int(root, "class_count", input->classes)) &&
           attr_put_floats(root, "mean", input->mean, input->stat_count) &&
           attr_put_floats(root, "std", input->std, input->stat_count) &&
           attr_put_floats(root, "target_mean", input->target_mean, input->target_count) &&
           attr_put_floats(root, "target_std", input->target_std, input->target_count);
    if (input->channels == 0) return good;
    return good && attr_put_int(root, "channels", input->channels) &&
           attr_put_int(root, "height", input->height) &&
           attr_put_int(root, "width", input->width) &&
           attr_put_int(root, "stored_height", input->stored_height) &&
           attr_put_int(root, "stored_width", input->stored_width) &&
           (input->classes > 0 || attr_put_int(root, "class_count", 0)) &&
           attr_put_int(root, "turned", input->turned) &&
           attr_put_int(root, "bicubic", input->bicubic) &&
           attr_put_floats(root, "scale", &input->scale, 1);
}

const char *meta_get_input(hid_t root, CheckpointMeta *meta)
{
    CheckpointInput *input = &meta->input;
    int scales, means, stds;
    meta->classes = attr_text(root, "classes");
    if (H5Aexists(root, "classes") > 0 && !meta->classes) return "classes";
    meta->algorithms = attr_text(root, "algorithms");
    if (H5Aexists(root, "algorithms") > 0 && !meta->algorithms) return "algorithms";
    meta->data_files = attr_text(root, "data_files");
    if (H5Aexists(root, "data_files") > 0 && !meta->data_files) return "data_files";
    if (!get_range(root, "input_range", &meta->ranges.inputs)) return "input_range";
    if (!get_range(root, "target_range", &meta->ranges.targets)) return "target_range";
    if (!get_columns(root, &meta->ranges)) return "column_ranges";
    bool counted = H5Aexists(root, "class_count") > 0;
    if (counted && (!attr_int(root, "class_count", &input->classes) || input->classes < 0))
        return "class_count";
    if (!attr_floats(root, "mean", input->mean, DATA_CHANNELS, &means)) return "mean";
    if (!attr_floats(root, "std", input->std, DATA_CHANNELS, &stds) || stds != means) return "std";
    input->stat_count = means;
    if (!attr_floats(root, "target_mean", input->target_mean, FIELD_CHANNELS, &input->target_count))
        return "target_mean";
    if (!attr_floats(root, "target_std", input->target_std, FIELD_CHANNELS, &stds) ||
        stds != input->target_count)
        return "target_std";
    if (H5Aexists(root, "channels") <= 0) return NULL;
    const struct {
        const char *name;
        int64_t *value, least;
    } row[] = {{"channels", &input->channels, 1},
               {"height", &input->height, 1},
               {"width", &input->width, 1},
               {"stored_height", &input->stored_height, 0},
               {"stored_width", &input->stored_width, 0}};
    for (size_t i = 0; i < sizeof row / sizeof *row; ++i)
        if (!attr_int(root, row[i].name, row[i].value) || *row[i].value < row[i].least)
            return row[i].name;
    if (H5Aexists(root, "turned") > 0 && !attr_int(root, "turned", &input->turned)) return "turned";
    if (H5Aexists(root, "bicubic") > 0 && !attr_int(root, "bicubic", &input->bicubic))
        return "bicubic";
    if (!attr_floats(root, "scale", &input->scale, 1, &scales) || scales != 1) return "scale";
    return counted ? NULL : "class_count";
}
