/* weft predict on pictures: classifies picture files, or finds boxes in them. A picture is prepared
 * as a sample in an evaluation is. Data sets among the files are handled in predict_sets.c. */
#include "predict.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

/* largest size of a picture's file in bytes */
enum { FILE_BYTES_MAX = 1 << 28 };

typedef struct Pictures {
    Predict *predict;
    /* owned */
    ImageDecoder *decoder;
    /* prepares decoded pictures; owned */
    PictureConverter *converter;
    /* the picture that was decoded last; owned */
    Image picture;
    /* memory for rotating the picture; owned */
    Image spare;
    /* prepared pictures that are not predicted yet, (predict->batch,C,H,W); owned */
    MicroBatch batch;
    /* paths of the pictures in `batch`, [predict->batch]; the array is owned */
    const char **path;
    /* error of the pictures that could not be read: ERR_DATA if any had this error, else the error
     * of the last one. OK: all could be read. */
    Status status;
    /* number of pictures that could not be read */
    int unreadable;
} Pictures;

void predict_print_picture(const Predict *p, const char *path, int64_t sample, const double *result)
{
    if (p->options->json) {
        Json json = json_to(stdout, true);
        json_object(&json, NULL);
        json_text(&json, "image", path);
        if (sample >= 0) json_int(&json, "sample", sample);
        predict_put_result(p, &json, result);
        json_end(&json);
        return;
    }
    printf("%s", path);
    if (sample >= 0) printf(":%lld", (long long)sample);
    printf(":");
    predict_print_result(p, result);
}

/* Classifies the pictures in the batch, and prints the results. */
static Status classify_batch(const Pictures *p)
{
    const Predict *predict = p->predict;
    const int64_t count = train_result_count(predict->trainer);
    TRY(train_predict(predict->trainer, &p->batch, predict->result));
    for (int i = 0; i < p->batch.rows; ++i)
        predict_print_picture(predict, p->path[i], -1, predict->result + i * count);
    return OK;
}

/* Classifies the pictures in the batch or, with a detector, finds the boxes of the one picture in
 * it. Then empties the batch. */
static Status predict_batch(Pictures *p)
{
    const Predict *predict = p->predict;
    if (p->batch.rows == 0) return OK;
    if (predict->boxes) {
        TRY(train_detect(predict->trainer, &p->batch));
        /* a detector's batch has one picture (predict.c), which p->picture still holds */
        const PredictedPicture picture = {.path = p->path[0],
                                          .sample = -1,
                                          .width = p->picture.width,
                                          .height = p->picture.height,
                                          .pixels = &p->picture};
        TRY(predict_boxes(predict, &picture));
    } else {
        TRY(classify_batch(p));
    }
    p->batch.rows = 0;
    return OK;
}

static Status read_picture(Pictures *p, const char *path)
{
    char *bytes = NULL;
    size_t count;
    ImageHeader head;
    struct stat file;
    if (stat(path, &file) != 0)
        return fail(ERR_NOINPUT, "%s: cannot be opened: %s", path, strerror(errno));
    if (!S_ISREG(file.st_mode))
        return fail(ERR_DATA, "%s: is not a picture: it is not a regular file", path);
    TRY(file_text(path, FILE_BYTES_MAX, &bytes, &count));
    Status st = image_read_header(&head, bytes, count, path);
    if (st == OK) st = image_decode(p->decoder, &p->picture, bytes, count, path);
    if (st == OK && p->predict->set.orient_requested)
        image_apply_orientation(&p->picture, &p->spare, head.orientation);
    if (st == OK && p->predict->boxes && !p->predict->set.orient_requested && head.orientation != 1)
        log_info(
            "%s: its EXIF orientation, %d, is not applied, because the import of the training set "
            "applied none: boxes are in pixels of the picture as it is stored",
            path, head.orientation);
    mem_free(&bytes);
    return st;
}

/* Reports a picture that could not be read, on stderr and, with --json, also on stdout. */
static void report_unreadable(Pictures *p, const char *path)
{
    log_error("%s", fail_message());
    if (!p->predict->options->json) return;
    Json json = json_to(stdout, true);
    json_object(&json, NULL);
    json_text(&json, "image", path);
    json_text(&json, "error", fail_message());
    json_end(&json);
}

/* Adds a picture to the batch, and predicts the batch when it is full. A picture that cannot be
 * read is reported and counted, but is no failure. */
static Status add_picture(Pictures *p, const char *path)
{
    const DataSet *set = &p->predict->set;
    int64_t values = set->channels * set->height * set->width;
    Status st = read_picture(p, path);
    float *x = p->batch.x + p->batch.rows * values;
    if (st == OK) st = picture_prepare(p->converter, &p->picture, path, x);
    if (st != OK) {
        /* the batch is predicted first, so that results and errors are in the order of the files */
        TRY(predict_batch(p));
        report_unreadable(p, path);
        p->status = p->status == ERR_DATA ? p->status : st;
        ++p->unreadable;
        return OK;
    }
    p->path[p->batch.rows++] = path;
    return p->batch.rows == p->predict->batch ? predict_batch(p) : OK;
}

static Status predict_all(Pictures *p, int count, char *const *paths)
{
    const Predict *predict = p->predict;
    for (int i = 0; i < count; ++i) {
        if (!predict->set_of[i]) {
            TRY(add_picture(p, paths[i]));
            continue;
        }
        TRY(predict_batch(p));
        TRY(predict_set_pictures(predict, paths[i], predict->set_of[i]));
    }
    TRY(predict_batch(p));
    if (p->unreadable == 0) return OK;
    return fail(p->status, "%d of %d files could not be read", p->unreadable, count);
}

Status predict_pictures(Predict *predict, int count, char *const *paths)
{
    const DataSet *set = &predict->set;
    size_t batch = (size_t)predict->batch;
    size_t values = (size_t)(set->channels * set->height * set->width);
    Pictures p = {.predict = predict,
                  .decoder = image_decoder_new(),
                  .converter = picture_converter_new(set, trainer_config(predict->trainer)),
                  .path = mem_new(batch * sizeof *p.path)};
    p.batch.x = mem_new(batch * values * sizeof *p.batch.x);
    Status st = predict_all(&p, count, paths);
    picture_converter_free(&p.converter);
    image_decoder_free(&p.decoder);
    image_fini(&p.picture);
    image_fini(&p.spare);
    mem_free(&p.batch.x);
    mem_free(&p.path);
    return st;
}
