/* Compares the scaling of raw values to the model's input, (value * factor - mean) / deviation, in
 * a checkpoint's training and in this run. Equal factors give equal inputs only if the ranges of
 * values are equal. The range of uint8 is 0 to 255; ranges of other types are in the checkpoint,
 * unless an earlier version wrote it. */
#include "scaling.h"
#include "meaning.h"

#include <math.h>
#include <string.h>

/* Scaling of a checkpoint's samples. */
typedef struct Scaling {
    /* factor of raw values; 0: not known */
    float factor;
    /* true: `type` is known */
    bool type_known;
    /* element type of raw values */
    ElementType type;
} Scaling;

/* Returns the factor of raw values; 0: it is not known. For data of kind table only the
 * configuration of the training has the factor. */
static float factor_of(const CheckpointMeta *meta, const Scaling *s, const char *path)
{
    if (meta->input.channels > 0) return meta->input.scale;
    if (!s->type_known) return 0;
    Config *then = meaning_config(meta, path);
    double scale = then ? then->data.scale : 0;
    config_free(&then);
    return scale != 0 ? (float)scale : s->type == ELEM_U8 ? 1.0F / 255 : 1.0F;
}

static Scaling scaling_of(const CheckpointMeta *meta, const char *path)
{
    Scaling s = {0};
    const char *type = strchr(meta->data_train, ' ');
    for (int i = ELEM_U8; type && data_fingerprint_known(meta->data_train) && i <= ELEM_F64; ++i) {
        const char *name = element_name((ElementType)i);
        size_t chars = strlen(name);
        if (strncmp(type + 1, name, chars) != 0 || type[1 + chars] != ',') continue;
        s.type = (ElementType)i;
        s.type_known = true;
    }
    s.factor = factor_of(meta, &s, path);
    return s;
}

static Status factor_fail(const DataSet *set, const Scaling *then, const char *path, bool is_set)
{
    return fail(ERR_DATA,
                "%s: its samples (%s) are multiplied by %.6g%s, but %s was trained on samples that "
                "were multiplied by %.6g%s%s: name data of the type that it was trained on, or set "
                "data.scale to the factor that these samples need",
                set->path, element_name(set->x.type), (double)set->scale,
                is_set ? ", as data.scale says" : "", path, (double)then->factor,
                then->type_known ? ", of type " : "",
                then->type_known ? element_name(then->type) : "");
}

/* Checks that the scaled range of the samples is similar to that of the training. Called if the
 * model was trained on uint8, and the samples have another type and a factor from data.scale. */
static Status check_range(const DataSet *set, const Scaling *then, const char *path)
{
    DataRange range;
    const double most = 255 * (double)then->factor;
    TRY(data_set_measure_scaled(set, &range));
    if (range.count == 0 || most <= 0) return OK;
    if (range.most > 1.01 * most || range.least < -0.01 * most)
        return fail(ERR_DATA,
                    "%s: its samples are %.6g to %.6g after data.scale, but %s was trained on "
                    "uint8 that became 0 to %.6g: set data.scale to the factor that makes them "
                    "alike",
                    set->path, range.least, range.most, path, most);
    if (range.most < most / 64)
        log_warn("%s: its samples are %.6g to %.6g after data.scale, and %s was trained on uint8 "
                 "that became 0 to %.6g: is data.scale right?",
                 set->path, range.least, range.most, path, most);
    return OK;
}

/* Checks another factor for the same element type, which data.scale sets. It is ERR_DATA for uint8,
 * for the same data as in the training, and without a data set. Values of other types may have
 * different ranges in different files, so that each file needs its own factor. If the checkpoint
 * has no ranges to compare, logs a warning. */
static Status check_factor(const Trainer *t, const CheckpointMeta *meta, const Scaling *then,
                           const char *path)
{
    const DataSet *set = &t->train_set;
    char now[DATA_FINGERPRINT];
    if (set->x.type == ELEM_U8 || t->substitute_set) return factor_fail(set, then, path, true);
    TRY(data_set_fingerprint(set, now));
    if (strcmp(now, meta->data_train) == 0) return factor_fail(set, then, path, true);
    if (meta->ranges.inputs.count > 0) return OK;
    log_warn("%s: its samples (%s) are multiplied by %.6g, as data.scale says, and those that %s "
             "was trained on were multiplied by %.6g",
             set->path, element_name(set->x.type), (double)set->scale, path, (double)then->factor);
    return OK;
}

/* Sets *alike to whether the ranges of values are known and similar in this run and in the
 * training. Compares the ends of the ranges more strictly than is done for equal types, because
 * different types suggest different scales. */
static Status find_alike(const Trainer *t, const DataRange *then, bool *alike)
{
    DataRange range = t->ranges.inputs;
    DataRanges now;
    *alike = false;
    if (then->count == 0 || t->substitute_set) return OK;
    /* in an evaluation the ranges have not been measured before */
    if (range.count == 0) {
        TRY(data_set_measure(&t->train_set, &now));
        range = now.inputs;
        data_ranges_fini(&now);
    }
    const DataRange *is = &range;
    const double most = 0.25 * (fmax(is->most, then->most) - fmin(is->least, then->least));
    *alike = is->count > 0 && fabs(is->least - then->least) <= most &&
             fabs(is->most - then->most) <= most;
    return OK;
}

Status scaling_check(const Trainer *t, const CheckpointMeta *meta, const char *path)
{
    const DataSet *set = &t->train_set;
    const bool is_set = t->config->data.scale != 0;
    if (data_has_tokens(set)) return OK;
    Scaling then = scaling_of(meta, path);
    if (then.factor == 0) return OK;
    if (then.type_known && then.type != set->x.type && is_set)
        return then.type == ELEM_U8 && !t->substitute_set ? check_range(set, &then, path) : OK;
    if (fabsf(then.factor - set->scale) <= 1e-5F * fabsf(then.factor)) return OK;
    bool alike = false;
    if (then.type_known && then.type != set->x.type)
        TRY(find_alike(t, &meta->ranges.inputs, &alike));
    if (alike) return OK;
    if (!is_set || !then.type_known) return factor_fail(set, &then, path, is_set);
    return check_factor(t, meta, &then, path);
}

/* ---- mean and deviation ---- */

static void stats_text(char text[64], int count, const float *mean, const float *std)
{
    if (count == 0)
        snprintf(text, 64, "without mean and deviation");
    else
        snprintf(text, 64, "by mean %.6g%s and deviation %.6g%s", (double)mean[0],
                 count > 1 ? ", ..." : "", (double)std[0], count > 1 ? ", ..." : "");
}

static bool same_stats(const DataSet *set, const CheckpointInput *input)
{
    const size_t bytes = (size_t)input->stat_count * sizeof *input->mean;
    return set->stats_count == input->stat_count && memcmp(set->mean, input->mean, bytes) == 0 &&
           memcmp(set->std, input->std, bytes) == 0;
}

void train_share_stats(DataSet *set, const DataSet *train)
{
    FieldSet *f = &set->field_set;
    set->has_stats = train->has_stats;
    set->stats_count = train->stats_count;
    memcpy(set->mean, train->mean, sizeof set->mean);
    memcpy(set->std, train->std, sizeof set->std);
    memcpy(f->target_mean, train->field_set.target_mean, sizeof f->target_mean);
    memcpy(f->target_std, train->field_set.target_std, sizeof f->target_std);
}

/* Sets the set's mean and deviation to those in a checkpoint. */
static void use_stats(DataSet *set, const CheckpointInput *input)
{
    set->stats_count = input->stat_count;
    set->has_stats = input->stat_count > 0;
    memcpy(set->mean, input->mean, sizeof set->mean);
    memcpy(set->std, input->std, sizeof set->std);
    memcpy(set->field_set.target_mean, input->target_mean, sizeof input->target_mean);
    memcpy(set->field_set.target_std, input->target_std, sizeof input->target_std);
}

void train_use_stats(DataSet *set, const Config *config, const CheckpointInput *input,
                     const char *path)
{
    const bool is_set =
        !config->data.normalize || config->data.mean.count > 0 || config->data.std.count > 0;
    const bool fields = data_has_fields(set);
    char now[64], then[64];
    if (input->channels == 0) return;
    if (input->channels != (fields ? set->field_set.step_inputs : set->channels)) return;
    if (fields && input->target_count != set->field_set.step_targets) return;
    if (same_stats(set, input)) return;
    stats_text(now, set->stats_count, set->mean, set->std);
    stats_text(then, input->stat_count, input->mean, input->std);
    if (is_set) {
        log_warn("samples are normalised %s, as the keys of data say, but those that %s was "
                 "trained on %s",
                 now, path, then);
        return;
    }
    /* There is no message if files of fields have no mean and deviation: they always use those of
     * the training. */
    if (set->stats_count > 0 || !fields)
        log_info("%s: samples are normalised %s, as those that %s was trained on, not %s",
                 set->path, then, path, now);
    use_stats(set, input);
    if (fields) data_fields_share_stats(set);
}

void scaling_log_stats(const Trainer *t, const CheckpointMeta *meta, const char *path)
{
    const DataSet *set = &t->train_set;
    char now[64], then[64];
    if (meta->input.channels == 0 || same_stats(set, &meta->input)) return;
    stats_text(now, set->stats_count, set->mean, set->std);
    stats_text(then, meta->input.stat_count, meta->input.mean, meta->input.std);
    log_info("%s: samples are normalised %s, those that %s was trained on were %s", set->path, now,
             path, then);
}

static char *ranges_difference(const DataSet *set, const DataRanges *ranges,
                               const CheckpointMeta *meta, const char *path)
{
    char *like = mem_format("the training of %s", path);
    char *line = data_ranges_difference(set->path, set, ranges, like, &meta->ranges);
    mem_free(&like);
    return line;
}

void scaling_warn_ranges(const Trainer *t, const CheckpointMeta *meta, const char *path,
                         const char *before)
{
    char *line = ranges_difference(&t->train_set, &t->ranges, meta, path);
    if (line) log_warn("%s%s", before, line);
    mem_free(&line);
}

void scaling_log_difference(const Trainer *t, const CheckpointMeta *meta, const char *path)
{
    if (scaling_check(t, meta, path) != OK)
        log_warn("model.init_from: %s", fail_message());
    else if (t->train_set.has_stats != (meta->input.stat_count > 0))
        scaling_log_stats(t, meta, path);
    scaling_warn_ranges(t, meta, path, "model.init_from: ");
}

/* Sets the mean and deviation of data of kind table to those in a checkpoint, or removes them if
 * the checkpoint has none; does nothing if the configuration sets others. A checkpoint for such
 * data has no channels; it has mean and deviation if its training used them. */
static void take_table_stats(const Config *config, const CheckpointInput *input, DataSet *train)
{
    const bool table = train->kind == DATA_TABLE && input->channels == 0;
    if (!table || !config->data.normalize || config->data.mean.count > 0) return;
    /* a checkpoint of an earlier version contains neither classes nor mean and deviation */
    if (input->classes == 0 && input->stat_count == 0) return;
    if (input->stat_count > 1 && input->stat_count != train->channels) return;
    use_stats(train, input);
}

/* In an evaluation without data.train, sets the scale and the number of classes, and for data of
 * kind table the mean and deviation, to those of the checkpoint's training. */
static void take_training(const Trainer *t, const CheckpointMeta *meta, DataSet *train)
{
    const Scaling then = scaling_of(meta, t->checkpoint);
    if (data_has_tokens(train)) return;
    if (then.factor != 0 && then.type_known && then.type == train->x.type &&
        t->config->data.scale == 0)
        train->scale = then.factor;
    if (train->target_width == 0 && meta->input.classes > train->classes)
        train->classes = meta->input.classes;
    take_table_stats(t->config, &meta->input, train);
    log_info(
        "%s is evaluated without data.train: scale, mean, deviation and classes are those in %s",
        train->path, t->checkpoint);
}

/* Ignores a file that cannot be read; the error is reported when the file is loaded. */
void scaling_take(Trainer *t)
{
    CheckpointMeta meta = {0};
    DataSet *train = &t->train_set, *test = &t->test_set;
    const char *from = t->checkpoint ? t->checkpoint : t->earlier;
    if (!from || checkpoint_read_meta(from, &meta) != OK) return;
    if (!t->config->data.train) take_training(t, &meta, train);
    train_use_stats(train, t->config, &meta.input, from);
    checkpoint_meta_fini(&meta);
    if (test->samples == 0) return;
    test->scale = train->scale;
    train_share_stats(test, train);
}

/* In an evaluation of a checkpoint, compares the ranges of the test set with those of the
 * checkpoint's training. */
static Status compare_checkpoint(const Trainer *t)
{
    CheckpointMeta meta = {0};
    DataRanges ranges;
    if (!t->checkpoint || checkpoint_read_meta(t->checkpoint, &meta) != OK) return OK;
    Status st = data_set_measure(&t->test_set, &ranges);
    if (st == OK) data_warn(ranges_difference(&t->test_set, &ranges, &meta, t->checkpoint));
    data_ranges_fini(&ranges);
    checkpoint_meta_fini(&meta);
    return st;
}

Status scaling_compare_sets(const Trainer *t)
{
    const DataSet *train = &t->train_set, *test = &t->test_set;
    char *line = NULL;
    if (data_has_tokens(train)) return OK;
    TRY(data_files_compare_ranges(train, &line));
    data_warn(line);
    if (test->samples == 0) return OK;
    TRY(data_files_compare_ranges(test, &line));
    data_warn(line);
    if (strcmp(train->path, test->path) != 0 || test->file_count != 0)
        TRY(data_sets_compare_ranges(test, train, &line));
    else
        line = NULL;
    if (!line) return compare_checkpoint(t);
    data_warn(line);
    return OK;
}
