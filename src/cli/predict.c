/* weft predict: prints the classes of pictures or of a table's rows, with probabilities, or the
 * boxes that a detector finds in pictures. It also forecasts fields (predict_fields.c). The
 * checkpoint describes the samples and names the classes. A description or names that the
 * checkpoint lacks are taken from the training set. Runs in one process, whatever the grid of the
 * training was. */
#include "predict.h"

#include "checkpoint.h"

#include <string.h>
#include <unistd.h>

/* Largest numbers of samples per forward pass. A detector gets one picture at a time: the picture
 * is kept until its boxes have been drawn into a copy of it. */
enum { PICTURE_BATCH_MAX = 16, ROW_BATCH_MAX = 256, DETECTOR_BATCH = 1 };
/* value of --top if it is not given */
enum { TOP_DEFAULT = 5 };

static const Flag flags[] = {
    FLAG_CHECKPOINT(PredictOptions),
    FLAG_NO_EMA(PredictOptions),
    {"--top", FLAG_FIELD(PredictOptions, top), .value = "K", .lo = 1, .hi = INT32_MAX,
     .help = "number of classes printed for each sample, the likeliest first; 5 by default"},
    {"--score", FLAG_FIELD(PredictOptions, score), .value = "S", .lo = 0, .hi = 1,
     .help = "detectors: boxes with a score above it are printed; 0.25 by default"},
    {"--draw", FLAG_FIELD(PredictOptions, draw), .value = "DIR",
     .help = "detectors: also writes each picture with its boxes to this folder, as PNG"},
    {"-o", FLAG_FIELD(PredictOptions, out), .value = "FILE", .writes = true,
     .help = "fields: writes what is predicted to this NetCDF-4 file"},
    {"--truth", FLAG_FIELD(PredictOptions, truth), .needs = "-o",
     .help = "also writes the true fields, as NAME_truth"},
    {"--rollout", FLAG_FIELD(PredictOptions, rollout), .value = "N", .lo = 1, .hi = 1000000,
     .help = "fields: N steps from each sample, in which outputs become inputs; 1 by default"},
    {"--png", FLAG_FIELD(PredictOptions, png), .value = "DIR", .needs = "--samples",
     .help = "fields: also draws input, truth, prediction and difference, a file for each target"},
    FLAG_FORCE(PredictOptions, force),
    {"--zoom", FLAG_FIELD(PredictOptions, zoom), .value = "Z", .lo = 1, .hi = 16, .needs = "--draw",
     .help = "drawings are Z times as wide and high as their pictures; 1 by default"},
    {"--samples", FLAG_FIELD(PredictOptions, samples), .value = "A[-B]",
     .help = "data sets: only sample A, or samples A to B, from 0; by default all"},
    {"--json", FLAG_FIELD(PredictOptions, json), .help = "one JSON object per sample and line"},
    {"--schema", FLAG_FIELD(PredictOptions, schema), .value = "YAML",
     .help = "description of the columns of a text; by default that with which the training set "
             "was imported"},
};

/* ---- description of the samples ---- */

/* Sets p->set from the checkpoint's description of pictures. boxes: true: the model is a detector;
 * pictures are then fitted into squares of the size of the model's input. */
static void take_input(Predict *p, const CheckpointInput *input, bool boxes)
{
    p->set = (DataSet){.kind = boxes ? DATA_BOXES : DATA_IMAGE,
                       .samples = 1,
                       .channels = input->channels,
                       .height = input->height,
                       .width = input->width,
                       .stored_height = input->stored_height,
                       .stored_width = input->stored_width,
                       .encoded = input->stored_height == 0,
                       .classes = input->classes,
                       .orient_requested = input->turned != 0,
                       .bicubic = input->bicubic != 0,
                       .has_stats = input->stat_count > 0,
                       .stats_count = input->stat_count,
                       .scale = input->scale};
    p->set.x.type = ELEM_U8;
    memcpy(p->set.mean, input->mean, sizeof p->set.mean);
    memcpy(p->set.std, input->std, sizeof p->set.std);
}

/* Returns whether the samples of a data set are bytes (uint8), or their type is not known.
 * fingerprint: fingerprint of the set. */
static bool trained_on_bytes(const char *fingerprint)
{
    const char *type = strchr(fingerprint, ' ');
    return !type || !data_fingerprint_known(fingerprint) || strncmp(type, " uint8,", 7) == 0;
}

/* Returns the number of targets of a sample; 0: it is not known. fingerprint: fingerprint of the
 * training set. */
static int64_t trained_targets(const char *fingerprint)
{
    static const char before[] = ", targets ";
    long long rows, width = 1;
    int end = 0;
    const char *at = strstr(fingerprint, before);
    if (!at || !data_fingerprint_known(fingerprint)) return 0;
    at += sizeof before - 1;
    if (sscanf(at, "%lld%n", &rows, &end) == 1 && at[end] == 'x')
        if (sscanf(at, "%lldx%lld%n", &rows, &width, &end) != 2) return 0;
    return at[end] == ' ' ? width : 0;
}

/* Warns if pictures will have another range of values than the training samples. The values of
 * pictures are 0 to 255, multiplied by data.scale and normalised. path: path of the checkpoint. */
static void warn_of_range(const Predict *p, const char *path)
{
    float ends[2 * DATA_CHANNELS] = {0, 255 * p->set.scale};
    DataSet *floats = mem_new(sizeof *floats);
    *floats = p->set;
    floats->x.type = ELEM_F32;
    const int stats = floats->stats_count;
    for (int i = 0; i < stats; ++i) {
        ends[2 * i] = -floats->mean[i] / floats->std[i];
        ends[2 * i + 1] = (255 * floats->scale - floats->mean[i]) / floats->std[i];
    }
    DataRanges now = {.inputs = data_values_range(ends, stats ? 2 * stats : 2)};
    char *line = data_ranges_difference("pictures", floats, &now, p->training_name, &p->ranges);
    if (line)
        log_warn(
            "pictures have values from %.6g to %.6g after data.scale%s, and the samples that %s "
            "was trained on from %.6g to %.6g: is data.scale right?",
            now.inputs.least, now.inputs.most, stats ? ", data.mean and data.std" : "", path,
            p->ranges.inputs.least, p->ranges.inputs.most);
    mem_free(&line);
    mem_free(&floats);
}

/* Applies the keys of the configuration that describe samples, as data_set_open does for a data
 * set. Refuses values that contradict the samples on which the model was trained. path: path of the
 * checkpoint. */
static Status apply_keys(Predict *p, const Config *config, const CheckpointInput *input,
                         const char *path)
{
    DataSet *set = &p->set;
    const bool boxes = data_has_boxes(set);
    const int64_t side = boxes ? config->data.letterbox : config->data.center_crop;
    if (config->data.scale != 0) set->scale = (float)config->data.scale;
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
    train_use_stats(set, config, input, path);
    if (p->has_others && !trained_on_bytes(p->training_fingerprint)) warn_of_range(p, path);
    if (!side || (side == set->height && side == set->width)) return OK;
    return config_fail_key(config, boxes ? "data.letterbox" : "data.center_crop",
                           "is %lld, but the model in %s takes %lldx%lld", (long long)side, path,
                           (long long)set->height, (long long)set->width);
}

/* Takes the class names of the training set if the checkpoint has none. If the checkpoint has
 * names, they are kept, in the order of the model's classes. path: path of the checkpoint. */
static Status take_names(Predict *p, const char *path)
{
    ClassNames set_names;
    char *line = NULL;
    TRY(data_set_class_names(&p->set, &set_names));
    Status st = data_set_use_classes(&p->set, &set_names, &p->names, path, &line);
    if (line) log_info("%s", line);
    if (p->names.count == 0) class_names_merge(&p->names, &set_names);
    class_names_free(&set_names);
    mem_free(&line);
    return st;
}

/* Describes the samples by the training set. Called if the checkpoint has no description: its model
 * takes rows of a table, it was imported, or an earlier version of weft has written it. */
static Status take_training_set(Predict *p, const Config *config, const char *path)
{
    if (!config->data.train)
        return fail(ERR_DATA,
                    "%s does not describe its samples: set data.train to the data set that it was "
                    "trained on",
                    path);
    TRY(data_set_open(&p->set, config, config->data.train));
    const DataKindInfo *kind = data_kind(&p->set);
    if (kind->x == X_TOKENS)
        return config_fail_key(config, "data.train",
                               "%s holds tokens, and predict takes pictures or rows of a table",
                               p->set.path);
    const bool boxes = kind->labels == LABELS_BOXES;
    if (boxes != (loss_info(config)->reads == LOSS_READS_BOXES))
        return config_fail_key(config, "data.train",
                               "%s is %s, but train.loss is %s, which is %sfor boxes", p->set.path,
                               boxes ? "a set of boxes" : "no set of boxes", loss_name(config),
                               boxes ? "not " : "");
    TRY(data_set_check_size(&p->set, config));
    return take_names(p, path);
}

/* Checks that the model takes pictures from files. known: true if the checkpoint describes the
 * samples, false if the training set does. */
static Status check_pictures(const Predict *p, const Config *config, const char *path, bool known)
{
    if (p->set.channels != 1 && p->set.channels != 3)
        return fail(ERR_DATA, "%s takes samples of %lld channels: pictures have 3, or 1 in grey",
                    path, (long long)p->set.channels);
    const bool bytes = known ? trained_on_bytes(p->training_fingerprint) : p->set.x.type == ELEM_U8;
    if (config->data.scale != 0 || bytes) return OK;
    return fail(ERR_DATA,
                "%s was trained on samples that were not bytes (%s), and pictures have values from "
                "0 to 255: set data.scale to the factor that gives pictures the range of those "
                "samples: 0.00392157 for 0 to 1, or 1 for 0 to 255",
                path, p->training_fingerprint);
}

/* Describes the samples by the checkpoint or, if the checkpoint does not describe them, by the
 * training set. Takes the class names, and the fingerprint and ranges of the training set, from the
 * checkpoint. */
static Status take_checkpoint(Predict *p, const Config *config, const char *path)
{
    CheckpointMeta meta;
    TRY(checkpoint_read_meta(path, &meta));
    const LossReads reads = loss_info(config)->reads;
    const int64_t targets = trained_targets(meta.data_train);
    p->numbers = reads == LOSS_READS_TARGETS;
    const bool known = meta.input.channels > 0 && (targets > 0) == p->numbers;
    memcpy(p->training_fingerprint, meta.data_train, sizeof p->training_fingerprint);
    p->ranges = meta.ranges;
    meta.ranges = (DataRanges){0};
    p->training_name = mem_format("the training of %s", path);
    if (known) take_input(p, &meta.input, reads == LOSS_READS_BOXES);
    if (known) snprintf(p->set.path, sizeof p->set.path, "%s", path);
    if (known) p->set.target_width = targets;
    if (meta.classes) class_names_split(&p->names, meta.classes, strlen(meta.classes) + 1, '\n');
    meta.classes = NULL;
    checkpoint_meta_fini(&meta);
    TRY(known ? apply_keys(p, config, &meta.input, path) : take_training_set(p, config, path));
    if (p->names.count == 0 && !p->numbers)
        log_info("%s names no classes: their numbers are printed", path);
    return data_has_images(&p->set) && p->has_others ? check_pictures(p, config, path, known) : OK;
}

/* ---- printing ---- */

/* Returns the likeliest classes, [*top], which the caller owns. The likeliest is the first; equally
 * likely classes are in ascending order. *top: value of --top, but at most the number of
 * classes. */
static int64_t *likeliest(const Predict *p, const double *probability, int *top)
{
    int64_t classes = train_result_count(p->trainer);
    const int64_t wanted = p->options->top > 0 ? p->options->top : TOP_DEFAULT;
    *top = (int)(wanted < classes ? wanted : classes);
    int64_t *best = mem_new((size_t)*top * sizeof *best);
    for (int k = 0; k < *top; ++k) {
        const int64_t last = k > 0 ? best[k - 1] : -1;
        best[k] = -1;
        for (int64_t c = 0; c < classes; ++c) {
            bool is_after_last = last < 0 || probability[c] < probability[last] ||
                                 (probability[c] == probability[last] && c > last);
            if (is_after_last && (best[k] < 0 || probability[c] > probability[best[k]]))
                best[k] = c;
        }
    }
    return best;
}

const char *predict_label(const Predict *p, int64_t class, char number[24])
{
    int64_t base = trainer_config(p->trainer)->data.label_base;
    return class_name(&p->names, class < p->names.count ? class : class + base, number);
}

static void put_classes(const Predict *p, Json *json, const double *probability)
{
    char number[24];
    int top;
    int64_t *best = likeliest(p, probability, &top);
    json_array(json, "classes");
    for (int k = 0; k < top; ++k) {
        json_object(json, NULL);
        json_text(json, "class", predict_label(p, best[k], number));
        json_int(json, "index", best[k]);
        json_fixed(json, "probability", 6, probability[best[k]]);
        json_end(json);
    }
    json_end(json);
    mem_free(&best);
}

static void print_classes(const Predict *p, const double *probability)
{
    char number[24];
    int top;
    int64_t *best = likeliest(p, probability, &top);
    for (int k = 0; k < top; ++k)
        printf("%s %s %.2f %%", k ? "," : "", predict_label(p, best[k], number),
               100 * probability[best[k]]);
    mem_free(&best);
}

void predict_put_result(const Predict *p, Json *json, const double *result)
{
    if (!p->numbers) {
        put_classes(p, json, result);
        return;
    }
    json_array(json, "values");
    for (int64_t k = 0; k < train_result_count(p->trainer); ++k) json_real(json, NULL, result[k]);
    json_end(json);
}

void predict_print_result(const Predict *p, const double *result)
{
    if (!p->numbers) print_classes(p, result);
    for (int64_t k = 0; p->numbers && k < train_result_count(p->trainer); ++k)
        printf("%s %.9g", k ? "," : "", result[k]);
    putchar('\n');
}

/* ---- the verb ---- */

static Status predict(Predict *p, const Job *job, const char *path, int count, char *const *files)
{
    for (int i = 0; i < count; ++i) p->has_others |= !data_is_hdf5(files[i]);
    TRY(take_checkpoint(p, job->config, path));
    const bool pictures = data_has_images(&p->set), boxes = data_has_boxes(&p->set);
    const int batch_max = boxes ? DETECTOR_BATCH : pictures ? PICTURE_BATCH_MAX : ROW_BATCH_MAX;
    TRY(predict_open_sets(p, job->config, count, files));
    TRY(predict_check_options(p, count, files));
    p->batch = pictures && !p->has_sets && count < batch_max ? count : batch_max;
    job_use_one_rank(job->config, p->batch);
    if (pictures && p->options->schema)
        return fail(ERR_USAGE, "--schema describes text, but %s takes pictures", path);
    TRY(trainer_new_to_load(&p->trainer, job->config, &job->world, &p->set, path));
    TRY(train_load(p->trainer, path, p->options->no_ema ? LOAD_PARAMS : LOAD_AVERAGES));
    if (boxes) p->boxes = detector_boxes_new(p->trainer);
    p->result = mem_new((size_t)(p->batch * train_result_count(p->trainer)) * sizeof *p->result);
    return pictures ? predict_pictures(p, count, files) : predict_rows(p, count, files);
}

static Status run_job(const Job *job, int count, char *const *files, const PredictOptions *o)
{
    Predict p = {.options = o};
    char *path = NULL;
    const bool fields = job->config->data.variables.count > 0;
    const char *other = o->out ? "-o" : o->png ? "--png" : o->rollout > 0 ? "--rollout" : NULL;
    if (count == 0 && !fields)
        return fail(ERR_USAGE, "missing files: weft predict CONFIG FILE ...");
    if (o->force && !o->draw && !o->out && !o->png)
        return fail(ERR_USAGE, "--force needs --draw, -o or --png");
    if (other && !fields)
        return fail(ERR_USAGE, "%s: the samples are no fields; that needs data.variables", other);
    if (job->world.size > 1)
        return fail(ERR_USAGE, "weft predict runs as one process: start it without mpirun or srun");
    TRY(job_find_checkpoint(job, o->checkpoint, &path));
    train_use_widths(job->config, &job->world, path);
    /* forecasts are made for whole fields, not for patches */
    job->config->data.patch = (ConfigPatch){0};
    Status st =
        fields ? predict_fields(&p, job, path, count, files) : predict(&p, job, path, count, files);
    detector_boxes_free(&p.boxes);
    trainer_free(&p.trainer);
    mem_free(&p.result);
    mem_free(&p.training_name);
    for (int i = 0; i < p.files; ++i) {
        if (p.set_of[i]) data_set_fini(p.set_of[i]);
        mem_free(&p.set_of[i]);
    }
    data_set_fini(&p.set);
    mem_free(&p.set_of);
    data_ranges_fini(&p.ranges);
    class_names_free(&p.names);
    mem_free(&path);
    return st;
}

/* Returns whether a word is section.key=value and not the name of a file. */
static bool is_override(const char *word)
{
    const char *equal = strchr(word, '='), *dot = strchr(word, '.');
    return equal && dot && dot < equal && !memchr(word, '/', (size_t)(equal - word)) &&
           access(word, F_OK) != 0;
}

static Status run(int argc, char **argv, const void *options)
{
    Job job = {0};
    /* all arguments in the order CONFIG, key=value ..., FILE ... */
    char **word = mem_new((size_t)(argc + 1) * sizeof *word);
    int config = argc > 0 ? 1 : 0, settings = config, count = 0;
    for (int i = config; i < argc; ++i) settings += is_override(argv[i]);
    for (int i = config, at = config; i < argc; ++i)
        word[is_override(argv[i]) ? at++ : settings + count++] = argv[i];
    if (argc > 0) word[0] = argv[0];
    hdf5_begin();
    Status st = job_open(&job, settings, word);
    /* a prediction is one step of the model; --rollout repeats it */
    if (st == OK) job.config->train.rollout = 1;
    if (st == OK) st = run_job(&job, count, word + settings, options);
    st = job_close(&job, st);
    mem_free(&word);
    return st;
}

const Verb verb_predict = {
    .name = "predict",
    .words = "CONFIG [FILE ...] [key=value ...]",
    .help = "predicts classes or numbers for pictures or rows, boxes in pictures, or fields; one "
            "process",
    .more = "Pictures (JPEG, PNG, WebP) need no data set: the checkpoint holds the names of the "
            "classes and the scaling of samples. A picture that cannot be read is named, the "
            "others are predicted, and the exit code is 65 (66 if files are missing and nothing "
            "else is wrong). A detector (train.loss: yolo) prints boxes of each picture, by "
            "falling score: class, score, and x, y, width and height in the picture's pixels. "
            "Rows come from data sets or from text (.gz too), which needs no labels; data.train "
            "holds the description of the text's columns. A model with a loss for numbers "
            "(train.loss: mse and others) prints its outputs, those of a row as a line of CSV. "
            "--samples chooses samples of a data set, also of pictures; their drawings also have "
            "the true boxes, white and dashed. For fields (data.variables) the files are one "
            "data set, by default data.test; the RMSE at each lead is printed.",
    VERB_FLAGS(PredictOptions, flags),
    .traits = VERB_THREADS,
    .run = run,
};
