/* weft predict: classes of pictures, with probabilities. All that it needs is in the checkpoint and
 * the configuration: what a sample is, how it is scaled, what classes are called. Pictures go
 * through what an evaluation does to its samples. One process does it, whatever grid trained. */
#include "private.h"

#include "checkpoint.h"
#include "train.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Pictures that go forward together; bytes of one at most. */
enum { TOGETHER = 16, PICTURE_MOST = 1 << 28 };

typedef struct PredictOptions {
    const char *checkpoint;
    int64_t top;
    bool json;
} PredictOptions;

static const Flag flags[] = {
    FLAG_CHECKPOINT(PredictOptions),
    {"--top", FLAG_FIELD(PredictOptions, top), .value = "K", .lo = 1, .hi = INT32_MAX,
     .fallback = "5", .help = "so many classes of each picture, the likeliest first"},
    {"--json", FLAG_FIELD(PredictOptions, json), .help = "one JSON object a line and picture"},
};

typedef struct Predict {
    const PredictOptions *options;
    Trainer *trainer;
    DataSet set;
    ClassNames names;
    ImageDecoder *decoder;
    PictureWork *work;
    Image picture, spare;
    /* owned: (TOGETHER,C,H,W); (TOGETHER, classes); pictures in it, borrowed */
    float *x;
    double *share;
    const char *path[TOGETHER];
    int rows;
    /* of the pictures that could not be read: the worst */
    Status status;
    int broken;
} Predict;

/* ---- what the checkpoint says ---- */

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

/* What the configuration says of samples counts, as where a data set is opened. */
static Status apply_keys(Predict *p, const Config *config, const char *path)
{
    DataSet *set = &p->set;
    int64_t crop = config->data.center_crop;
    if (!config->data.normalize) set->has_stats = false, set->stats_count = 0;
    if (config->data.scale != 0) set->scale = (float)config->data.scale;
    if (!crop || (crop == set->height && crop == set->width)) return OK;
    return config_fail_key(config, "data.center_crop",
                           "is %lld, but the model in %s takes %lldx%lld", (long long)crop, path,
                           (long long)set->height, (long long)set->width);
}

/* An imported file, or one of an earlier weft, does not know its samples: the data set does. */
static Status take_data(Predict *p, const Config *config, const char *path)
{
    if (!config->data.train)
        return fail(ERR_DATA,
                    "%s does not say what its samples are: name the data set that it was "
                    "trained on with data.train",
                    path);
    TRY(data_set_open(&p->set, config, config->data.train));
    TRY(class_names_read(&p->names, p->set.path));
    if (data_kind(&p->set)->augments) return OK;
    return config_fail_key(config, "data.train", "%s holds no pictures, and predict takes pictures",
                           p->set.path);
}

static Status take_checkpoint(Predict *p, const Config *config, const char *path)
{
    CheckpointMeta meta;
    TRY(checkpoint_read_meta(path, &meta));
    bool known = meta.input.channels > 0;
    if (known) {
        take_input(p, &meta.input);
        if (meta.classes) class_names_take(&p->names, meta.classes, strlen(meta.classes) + 1, '\n');
        meta.classes = NULL;
    }
    checkpoint_meta_fini(&meta);
    TRY(known ? apply_keys(p, config, path) : take_data(p, config, path));
    if (!loss_info(config)->best_class)
        return config_fail_key(config, "train.loss", "has no classes to predict");
    if (p->set.channels == 1 || p->set.channels == 3) return OK;
    return fail(ERR_DATA, "%s takes samples of %lld channels: pictures have 3, or 1 in grey", path,
                (long long)p->set.channels);
}

/* ---- what is printed ---- */

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

static void print_json(const Predict *p, const char *path, const double *share, const int64_t *best,
                       int top)
{
    char number[24];
    Json json = json_to(stdout, true);
    json_object(&json, NULL);
    json_text(&json, "image", path);
    json_array(&json, "classes");
    for (int k = 0; k < top; ++k) {
        json_object(&json, NULL);
        json_text(&json, "class", class_name(&p->names, best[k], number));
        json_int(&json, "index", best[k]);
        json_fixed(&json, "probability", 6, share[best[k]]);
        json_end(&json);
    }
    json_end(&json);
    json_end(&json);
}

static void print_text(const Predict *p, const char *path, const double *share, const int64_t *best,
                       int top)
{
    char number[24];
    printf("%s:", path);
    for (int k = 0; k < top; ++k)
        printf("%s %s %.2f %%", k ? "," : "", class_name(&p->names, best[k], number),
               100 * share[best[k]]);
    putchar('\n');
}

/* The pictures that wait. */
static Status flush(Predict *p)
{
    int64_t classes = trainer_graph(p->trainer)->classes;
    int top = (int)(p->options->top < classes ? p->options->top : classes);
    if (p->rows == 0) return OK;
    TRY(train_predict(p->trainer, p->x, p->rows, p->share));
    int64_t *best = mem_new((size_t)top * sizeof *best);
    for (int i = 0; i < p->rows; ++i) {
        const double *share = p->share + i * classes;
        order(share, classes, top, best);
        (p->options->json ? print_json : print_text)(p, p->path[i], share, best, top);
    }
    mem_free(&best);
    p->rows = 0;
    return OK;
}

/* ---- pictures ---- */

static Status read_picture(Predict *p, const char *path)
{
    char *bytes = NULL;
    size_t count;
    ImageHead head;
    struct stat is;
    if (stat(path, &is) != 0)
        return fail(ERR_NOINPUT, "%s: cannot be opened: %s", path, strerror(errno));
    if (!S_ISREG(is.st_mode))
        return fail(ERR_DATA, "%s: is no picture, nor any file of bytes", path);
    TRY(file_text(path, PICTURE_MOST, &bytes, &count));
    Status st = image_head(&head, bytes, count, path);
    if (st == OK) st = image_decode(p->decoder, &p->picture, bytes, count, path);
    if (st == OK && p->set.turned) image_turn(&p->picture, &p->spare, head.orientation);
    mem_free(&bytes);
    return st;
}

/* The others still get their answers. */
static void complain(Predict *p, const char *path)
{
    log_error("%s", fail_message());
    if (!p->options->json) return;
    Json json = json_to(stdout, true);
    json_object(&json, NULL);
    json_text(&json, "image", path);
    json_text(&json, "error", fail_message());
    json_end(&json);
}

static Status predict_one(Predict *p, const char *path)
{
    int64_t values = p->set.channels * p->set.height * p->set.width;
    Status st = read_picture(p, path);
    if (st == OK) st = picture_evaluate(p->work, &p->picture, path, p->x + p->rows * values);
    if (st != OK) {
        TRY(flush(p));
        complain(p, path);
        p->status = p->status == ERR_DATA ? p->status : st;
        ++p->broken;
        return OK;
    }
    p->path[p->rows++] = path;
    return p->rows == (int)trainer_config(p->trainer)->train.batch ? flush(p) : OK;
}

static Status predict_all(Predict *p, int count, char *const *paths)
{
    for (int i = 0; i < count; ++i) TRY(predict_one(p, paths[i]));
    TRY(flush(p));
    if (p->broken == 0) return OK;
    return fail(p->status, "%d of %d pictures could not be read", p->broken, count);
}

/* ---- the verb ---- */

static Status run_job(const Job *job, int count, char *const *paths, const PredictOptions *o)
{
    Predict p = {.options = o, .status = OK};
    char *path = NULL;
    if (job->world.size > 1)
        return fail(ERR_USAGE, "weft predict works alone: start it without mpirun or srun");
    TRY(job_checkpoint(job, o->checkpoint, &path));
    train_take_widths(job->config, &job->world, path);
    job_alone(job->config, count < TOGETHER ? count : TOGETHER);
    Status st = take_checkpoint(&p, job->config, path);
    if (st == OK) st = trainer_new_for(&p.trainer, job->config, &job->world, &p.set);
    if (st == OK) st = train_load(p.trainer, path, true);
    if (st == OK) {
        p.work = picture_work_new(&p.set, job->config);
        p.decoder = image_decoder_new();
        int64_t values = p.set.channels * p.set.height * p.set.width;
        p.x = mem_new((size_t)(TOGETHER * values) * sizeof *p.x);
        p.share = mem_new((size_t)(TOGETHER * trainer_graph(p.trainer)->classes) * sizeof *p.share);
        st = predict_all(&p, count, paths);
        picture_work_free(&p.work);
        image_decoder_free(&p.decoder);
    }
    image_fini(&p.picture);
    image_fini(&p.spare);
    trainer_free(&p.trainer);
    mem_free(&p.x);
    mem_free(&p.share);
    class_names_free(&p.names);
    mem_free(&path);
    return st;
}

/* key=value, and no picture of that name. */
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
        st = fail(ERR_USAGE, "missing pictures: weft predict CONFIG IMAGE ...");
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
    .words = "CONFIG IMAGE ... [key=value ...]",
    .help = "classes of pictures (JPEG, PNG, WebP) with probabilities; one process",
    .more =
        "The checkpoint knows what classes are called and how samples are scaled: no data set is "
        "needed. A picture that cannot be read is named, the others get their answers, and the "
        "exit code is 65 (66 where files are missing and nothing else is wrong).",
    VERB_FLAGS(PredictOptions, flags),
    .traits = VERB_THREADS,
    .run = run,
};
