/* weft predict on samples of data sets: opens the data sets among the files, and reads the samples
 * of --samples as an evaluation reads samples. For sets of pictures, this file also classifies the
 * samples, or finds boxes in them. */
#include "predict.h"

#include <string.h>

Status predict_parse_samples(Predict *p)
{
    const char *text = p->options->samples, *at = text;
    p->last_sample = INT64_MAX;
    if (!text) return OK;
    bool good = whole_read(&at, 0, INT64_MAX, &p->first_sample);
    p->last_sample = p->first_sample;
    if (good && *at == '-') {
        ++at;
        good = whole_read(&at, p->first_sample, INT64_MAX, &p->last_sample);
    }
    if (good && !*at) return OK;
    return fail(ERR_USAGE,
                "--samples %s: expected the number of a sample, from 0, or the first and the last "
                "one, such as 0-7",
                text);
}

static Status open_set(const Predict *p, const Config *config, const char *path, DataSet *set)
{
    const char *samples = p->options->samples;
    TRY(data_set_open(set, config, path));
    TRY(data_set_check_size(set, config));
    TRY(train_prepare_set(set, &p->set));
    if (!samples || p->last_sample < set->samples) return OK;
    return fail(ERR_USAGE, "--samples %s: %s has %lld samples, and the first has number 0", samples,
                path, (long long)set->samples);
}

Status predict_open_sets(Predict *p, const Config *config, int count, char *const *paths)
{
    const DataKindInfo *kind = data_kind(&p->set);
    p->set_of = mem_new((size_t)count * sizeof(DataSet *));
    p->files = count;
    TRY(predict_parse_samples(p));
    for (int i = 0; i < count; ++i) {
        if (!data_is_hdf5(paths[i])) continue;
        DataSet *set = p->set_of[i] = mem_new(sizeof *set);
        TRY(open_set(p, config, paths[i], set));
        /* buffers are made for the largest number of ids that a sample of any file has */
        if (set->ids_per_sample_max > p->set.ids_per_sample_max)
            p->set.ids_per_sample_max = set->ids_per_sample_max;
        p->has_sets = true;
    }
    if (p->has_sets || !p->options->samples) return OK;
    return fail(ERR_USAGE, "--samples: chooses samples of data sets, and %s is %s", paths[0],
                kind->x == X_IMAGES ? "none" : "a text");
}

int64_t predict_last(const Predict *p, const DataSet *set)
{
    return p->last_sample < set->samples ? p->last_sample : set->samples - 1;
}

Status predict_each_batch(const Predict *p, const DataSet *set, PredictTake *take, void *user)
{
    const Config *config = trainer_config(p->trainer);
    const int64_t last = predict_last(p, set);
    Loader *loader = NULL;
    const MicroBatch *batch;
    LoaderPlan plan = {.batch = p->batch,
                       .micro_batch = p->batch,
                       .micro_count = 1,
                       .step = p->first_sample / p->batch,
                       .skips_labels = true,
                       .slots = (int)config->data.prefetch + 2,
                       .backend = trainer_backend(p->trainer),
                       .workers = train_workers(p->trainer, set)};
    Status st = loader_new(&loader, set, config, plan);
    while (st == OK && (st = loader_next(loader, &batch, NULL)) == OK && batch &&
           batch->sample[0] <= last) {
        st = take(user, batch);
        loader_release(loader);
    }
    loader_free(&loader);
    return st;
}

/* ---- sets of pictures ---- */

typedef struct SetPictures {
    const Predict *predict;
    const DataSet *set;
    /* path of the set */
    const char *path;
    /* The fields below are owned. They are set only for a detector. */
    /* true boxes */
    DataBoxes labels;
    /* names of the classes of the true boxes */
    ClassNames names;
    /* reads the pictures that are drawn */
    Reader *reader;
    /* decodes the pictures that are drawn */
    PictureConverter *converter;
} SetPictures;

/* Returns the true boxes of a sample, [*count]. The caller owns them. */
static TruthBox *truths_of(const SetPictures *s, int64_t sample, int64_t *count)
{
    const DataBoxes *b = &s->labels;
    const int64_t first = b->start[sample];
    *count = b->start[sample + 1] - first;
    TruthBox *truth = mem_new((size_t)(*count + 1) * sizeof *truth);
    for (int64_t i = 0; i < *count; ++i) {
        truth[i].category = b->class[first + i];
        truth[i].crowd = b->crowd[first + i];
        memcpy(truth[i].box, b->box + 4 * (first + i), sizeof truth[i].box);
    }
    return truth;
}

/* Finds the boxes of the one sample in a detector's batch. */
static Status find_boxes(SetPictures *s, const MicroBatch *batch)
{
    const int64_t sample = batch->sample[0];
    const int32_t *size = s->labels.size + 2 * sample;
    PredictedPicture picture = {
        .path = s->path, .sample = sample, .width = size[1], .height = size[0], .names = &s->names};
    TRY(train_detect(s->predict->trainer, batch));
    if (s->predict->options->draw)
        TRY(picture_read(s->converter, s->reader, &s->labels, sample, &picture.pixels));
    TruthBox *truth = truths_of(s, sample, &picture.truths);
    picture.truth = truth;
    Status st = predict_boxes(s->predict, &picture);
    mem_free(&truth);
    return st;
}

static Status take_batch(void *user, const MicroBatch *batch)
{
    SetPictures *s = user;
    const Predict *p = s->predict;
    const int64_t count = train_result_count(p->trainer);
    if (p->boxes) return find_boxes(s, batch);
    TRY(train_predict(p->trainer, batch, p->result));
    for (int i = 0; i < batch->rows; ++i) {
        const int64_t sample = batch->sample[i];
        if (sample < p->first_sample || sample > p->last_sample) continue;
        predict_print_picture(p, s->path, sample, p->result + i * count);
    }
    return OK;
}

Status predict_set_pictures(const Predict *predict, const char *path, const DataSet *set)
{
    SetPictures s = {.predict = predict, .set = set, .path = path};
    Status st = OK;
    if (predict->boxes) {
        s.converter = picture_converter_new(set, trainer_config(predict->trainer));
        st = data_boxes_read(&s.labels, set);
        if (st == OK) st = data_set_class_names(set, &s.names);
        if (st == OK) st = reader_new(&s.reader, set);
    }
    if (st == OK) st = predict_each_batch(predict, set, take_batch, &s);
    reader_free(&s.reader);
    picture_converter_free(&s.converter);
    class_names_free(&s.names);
    data_boxes_free(&s.labels);
    return st;
}
