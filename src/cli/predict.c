/* weft predict: classes of pictures or rows, with probabilities. The checkpoint describes the
 * samples and names the classes; if it does not, the training set does. Runs in one process,
 * whatever the grid of the training. */
#include "predict.h"

#include "checkpoint.h"

#include <string.h>
#include <unistd.h>

/* Samples per forward pass. */
enum { PICTURES_TOGETHER = 16, ROWS_TOGETHER = 256 };

static const Flag flags[] = {
    FLAG_CHECKPOINT(PredictOptions),
    {"--top", FLAG_FIELD(PredictOptions, top), .value = "K", .lo = 1, .hi = INT32_MAX,
     .fallback = "5", .help = "number of classes printed for each sample, the likeliest first"},
    {"--json", FLAG_FIELD(PredictOptions, json), .help = "one JSON object per sample and line"},
    {"--schema", FLAG_FIELD(PredictOptions, schema), .value = "YAML",
     .help = "description of the columns of a text; by default that with which the training set "
             "was imported"},
};

/* ---- description of the samples ---- */

static void take_input(Predict *p, const CheckpointInput *is)
{
    p->set = (DataSet){.kind = DATA_IMAGE,
                       .samples = 1,
                       .channels = is->channels,
                       .height = is->height,
                       .width = is->width,
                       .stored_height = is->stored_height,
                       .stored_width = is->stored_width,
                       .encoded = is->stored_height == 0,
                       .classes = is->classes,
                       .turned = is->turned != 0,
                       .bicubic = is->bicubic != 0,
                       .has_stats = is->stats > 0,
                       .stats_count = is->stats,
                       .scale = is->scale};
    p->set.x.type = ELEM_U8;
    memcpy(p->set.mean, is->mean, sizeof p->set.mean);
    memcpy(p->set.std, is->std, sizeof p->set.std);
}

/* True if the fingerprint of a data set says that its samples are uint8, or does not give their
 * type. */
static bool trained_on_bytes(const char *fingerprint)
{
    const char *type = strchr(fingerprint, ' ');
    return !type || !data_fingerprint_known(fingerprint) || strncmp(type, " uint8,", 7) == 0;
}

/* Compares the values that pictures will have, 0 to 255 times data.scale and normalised, with those
 * of samples that were no bytes. */
static void warn_of_range(const Predict *p, const char *path)
{
    float ends[2 * DATA_CHANNELS] = {0, 255 * p->set.scale};
    DataSet *as = mem_new(sizeof *as);
    *as = p->set;
    as->x.type = ELEM_F32;
    for (int i = 0; i < as->stats_count; ++i) {
        ends[2 * i] = -as->mean[i] / as->std[i];
        ends[2 * i + 1] = (255 * as->scale - as->mean[i]) / as->std[i];
    }
    DataRanges now = {.inputs = data_values_range(ends, as->stats_count ? 2 * as->stats_count : 2)};
    char *line = data_ranges_difference("pictures", as, &now, p->training, &p->ranges);
    if (line)
        log_warn(
            "pictures are %.6g to %.6g after data.scale%s, and the samples that %s was trained "
            "on %.6g to %.6g: is data.scale right?",
            now.inputs.least, now.inputs.most, as->stats_count ? ", data.mean and data.std" : "",
            path, p->ranges.inputs.least, p->ranges.inputs.most);
    mem_free(&line);
    mem_free(&as);
}

/* Applies the configuration's keys that describe samples, as opening a data set does, but refuses
 * those that contradict the samples that the model was trained on. */
static Status apply_keys(Predict *p, const Config *config, const CheckpointInput *is,
                         const char *path)
{
    DataSet *set = &p->set;
    int64_t crop = config->data.center_crop;
    if (config->data.scale != 0) set->scale = (float)config->data.scale;
    if (config->data.scale == 0 && !trained_on_bytes(p->data_train))
        return fail(ERR_DATA,
                    "%s was trained on samples that were no bytes (%s), and pictures are 0 to 255: "
                    "set data.scale to the factor that makes them alike, such as 0.00392157 where "
                    "those were 0 to 1, or 1 where they were 0 to 255",
                    path, p->data_train);
    const int means = config->data.mean.count;
    if (means != config->data.std.count || (means > 1 && means != set->channels))
        return config_fail_key(config, means ? "data.mean" : "data.std",
                               "data.mean and data.std need one value each, or one for each of the "
                               "%lld channels that %s takes",
                               (long long)set->channels, path);
    if (!config->data.normalize) set->stats_count = 0;
    for (int i = 0; config->data.normalize && i < means; ++i) {
        set->mean[i] = (float)config->data.mean.value[i];
        set->std[i] = (float)config->data.std.value[i];
        set->stats_count = means;
    }
    set->has_stats = set->stats_count > 0;
    train_take_stats(set, config, is, path);
    if (!trained_on_bytes(p->data_train)) warn_of_range(p, path);
    if (!crop || (crop == set->height && crop == set->width)) return OK;
    return config_fail_key(config, "data.center_crop",
                           "is %lld, but the model in %s takes %lldx%lld", (long long)crop, path,
                           (long long)set->height, (long long)set->width);
}

/* Takes the class names from the data set unless the checkpoint has names: then these stay, in the
 * order of the model's classes. */
static Status take_names(Predict *p, const char *path)
{
    ClassNames set_names;
    char *line = NULL;
    TRY(data_set_class_names(&p->set, &set_names));
    Status st = data_set_use_classes(&p->set, &set_names, &p->names, path, &line);
    if (line) log_info("%s", line);
    if (p->names.count == 0) class_names_join(&p->names, &set_names);
    class_names_free(&set_names);
    mem_free(&line);
    return st;
}

/* Takes the description from the training set, because an imported checkpoint, or one of an earlier
 * version of weft, contains none. */
static Status take_data(Predict *p, const Config *config, const char *path)
{
    if (!config->data.train)
        return fail(ERR_DATA,
                    "%s does not say what its samples are: name the data set that it was "
                    "trained on with data.train",
                    path);
    TRY(data_set_open(&p->set, config, config->data.train));
    if (!data_kind(&p->set)->next_token) return take_names(p, path);
    return config_fail_key(config, "data.train",
                           "%s holds tokens, and predict takes pictures or rows of a table",
                           p->set.path);
}

static Status take_checkpoint(Predict *p, const Config *config, const char *path)
{
    CheckpointMeta meta;
    TRY(checkpoint_read_meta(path, &meta));
    bool known = meta.input.channels > 0;
    memcpy(p->data_train, meta.data_train, sizeof p->data_train);
    p->ranges = meta.ranges;
    meta.ranges = (DataRanges){0};
    p->training = mem_format("the training of %s", path);
    if (known) take_input(p, &meta.input);
    if (meta.classes) class_names_take(&p->names, meta.classes, strlen(meta.classes) + 1, '\n');
    meta.classes = NULL;
    checkpoint_meta_fini(&meta);
    TRY(known ? apply_keys(p, config, &meta.input, path) : take_data(p, config, path));
    if (p->names.count == 0) log_info("%s names no classes: their numbers are printed", path);
    if (loss_info(config)->reads == LOSS_READS_TARGETS)
        return config_fail_key(config, "train.loss", "has no classes to predict");
    if (!data_kind(&p->set)->augments) return OK;
    if (p->set.channels == 1 || p->set.channels == 3) return OK;
    return fail(ERR_DATA, "%s takes samples of %lld channels: pictures have 3, or 1 in grey", path,
                (long long)p->set.channels);
}

/* ---- printing ---- */

static void order(const double *share, int64_t classes, int top, int64_t *best)
{
    for (int k = 0; k < top; ++k) {
        best[k] = -1;
        for (int64_t c = 0; c < classes; ++c) {
            bool below = k == 0 || share[c] < share[best[k - 1]] ||
                         (share[c] == share[best[k - 1]] && c > best[k - 1]);
            if (below && (best[k] < 0 || share[c] > share[best[k]])) best[k] = c;
        }
    }
}

static int64_t *likeliest(const Predict *p, const double *share, int *top)
{
    int64_t classes = train_shares(p->trainer);
    *top = (int)(p->options->top < classes ? p->options->top : classes);
    int64_t *best = mem_new((size_t)*top * sizeof *best);
    order(share, classes, *top, best);
    return best;
}

/* Returns the name of a class, or its number as the labels count (data.label_base). */
static const char *label_of(const Predict *p, int64_t class, char number[24])
{
    int64_t base = trainer_config(p->trainer)->data.label_base;
    return class_name(&p->names, class < p->names.count ? class : class + base, number);
}

void predict_json(const Predict *p, Json *json, const double *share)
{
    char number[24];
    int top;
    int64_t *best = likeliest(p, share, &top);
    json_array(json, "classes");
    for (int k = 0; k < top; ++k) {
        json_object(json, NULL);
        json_text(json, "class", label_of(p, best[k], number));
        json_int(json, "index", best[k]);
        json_fixed(json, "probability", 6, share[best[k]]);
        json_end(json);
    }
    json_end(json);
    mem_free(&best);
}

void predict_text(const Predict *p, const double *share)
{
    char number[24];
    int top;
    int64_t *best = likeliest(p, share, &top);
    for (int k = 0; k < top; ++k)
        printf("%s %s %.2f %%", k ? "," : "", label_of(p, best[k], number), 100 * share[best[k]]);
    putchar('\n');
    mem_free(&best);
}

/* ---- the verb ---- */

static Status predict(Predict *p, const Job *job, const char *path, int count, char *const *files)
{
    TRY(take_checkpoint(p, job->config, path));
    bool pictures = data_kind(&p->set)->augments;
    int most = pictures ? PICTURES_TOGETHER : ROWS_TOGETHER;
    p->together = pictures && count < most ? count : most;
    job_alone(job->config, p->together);
    if (pictures && p->options->schema)
        return fail(ERR_USAGE, "--schema says what text is, but %s takes pictures", path);
    if (!pictures) TRY(predict_rows_check(p, job->config, count, files));
    TRY(trainer_new_to_load(&p->trainer, job->config, &job->world, &p->set, path));
    TRY(train_load(p->trainer, path, true));
    p->share = mem_new((size_t)(p->together * train_shares(p->trainer)) * sizeof *p->share);
    return pictures ? predict_pictures(p, count, files) : predict_rows(p, count, files);
}

static Status run_job(const Job *job, int count, char *const *files, const PredictOptions *o)
{
    Predict p = {.options = o};
    char *path = NULL;
    if (job->world.size > 1)
        return fail(ERR_USAGE, "weft predict works alone: start it without mpirun or srun");
    TRY(job_checkpoint(job, o->checkpoint, &path));
    train_take_widths(job->config, &job->world, path);
    Status st = predict(&p, job, path, count, files);
    trainer_free(&p.trainer);
    mem_free(&p.share);
    mem_free(&p.training);
    data_ranges_fini(&p.ranges);
    class_names_free(&p.names);
    mem_free(&path);
    return st;
}

/* True for key=value, unless a file has that name. */
static bool is_override(const char *word)
{
    const char *equal = strchr(word, '='), *dot = strchr(word, '.');
    return equal && dot && dot < equal && !memchr(word, '/', (size_t)(equal - word)) &&
           access(word, F_OK) != 0;
}

static Status run(int argc, char **argv, const void *options)
{
    Job job = {0};
    char **word = mem_new((size_t)(argc + 1) * sizeof *word);
    int first = argc > 0 ? 1 : 0, settings = first, count = 0;
    for (int i = first; i < argc; ++i) settings += is_override(argv[i]);
    for (int i = first, at = first; i < argc; ++i)
        word[is_override(argv[i]) ? at++ : settings + count++] = argv[i];
    if (argc > 0) word[0] = argv[0];
    Status st;
    if (argc > 0 && count == 0) {
        st = fail(ERR_USAGE, "missing files: weft predict CONFIG FILE ...");
    } else {
        hdf5_begin();
        st = job_open(&job, settings, word);
        if (st == OK) st = run_job(&job, count, word + settings, options);
        st = job_close(&job, st);
    }
    mem_free(&word);
    return st;
}

const Verb verb_predict = {
    .name = "predict",
    .words = "CONFIG FILE ... [key=value ...]",
    .help = "predicts classes of pictures or table rows, with probabilities; one process",
    .more = "Pictures (JPEG, PNG, WebP) need no data set: the checkpoint holds the names of the "
            "classes and the scaling of samples. A picture that cannot be read is named, the "
            "others are predicted, and the exit code is 65 (66 if files are missing and nothing "
            "else is wrong). Rows come from data sets or from text (.gz too), and need no "
            "labels; data.train holds the description of the text's columns.",
    VERB_FLAGS(PredictOptions, flags),
    .traits = VERB_THREADS,
    .run = run,
};
