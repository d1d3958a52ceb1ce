/* weft predict on pictures: each is prepared like a sample in evaluation. */
#include "predict.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

/* largest file size in bytes */
enum { PICTURE_MOST = 1 << 28 };

typedef struct Pictures {
    Predict *of;
    ImageDecoder *decoder;
    PictureWork *work;
    Image picture, spare;
    /* batch: pictures that wait, (together,C,H,W), owned; path: their files, borrowed */
    Batch batch;
    const char **path;
    /* worst status of the pictures that could not be read */
    Status status;
    int broken;
} Pictures;

/* Classifies the pictures that wait, and prints the results. */
static Status flush(Pictures *p)
{
    int64_t shares = train_shares(p->of->trainer);
    if (p->batch.rows == 0) return OK;
    TRY(train_predict(p->of->trainer, &p->batch, p->of->share));
    for (int i = 0; i < p->batch.rows; ++i) {
        const double *share = p->of->share + i * shares;
        if (p->of->options->json) {
            Json json = json_to(stdout, true);
            json_object(&json, NULL);
            json_text(&json, "image", p->path[i]);
            predict_json(p->of, &json, share);
            json_end(&json);
        } else {
            printf("%s:", p->path[i]);
            predict_text(p->of, share);
        }
    }
    p->batch.rows = 0;
    return OK;
}

static Status read_picture(Pictures *p, const char *path)
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
    if (st == OK && p->of->set.turned) image_turn(&p->picture, &p->spare, head.orientation);
    mem_free(&bytes);
    return st;
}

/* Reports a picture that could not be read; the others are still classified. */
static void complain(Pictures *p, const char *path)
{
    log_error("%s", fail_message());
    if (!p->of->options->json) return;
    Json json = json_to(stdout, true);
    json_object(&json, NULL);
    json_text(&json, "image", path);
    json_text(&json, "error", fail_message());
    json_end(&json);
}

static Status predict_one(Pictures *p, const char *path)
{
    int64_t values = p->of->set.channels * p->of->set.height * p->of->set.width;
    Status st = read_picture(p, path);
    float *x = p->batch.x + p->batch.rows * values;
    if (st == OK) st = picture_evaluate(p->work, &p->picture, path, x);
    if (st != OK) {
        TRY(flush(p));
        complain(p, path);
        p->status = p->status == ERR_DATA ? p->status : st;
        ++p->broken;
        return OK;
    }
    p->path[p->batch.rows++] = path;
    return p->batch.rows == p->of->together ? flush(p) : OK;
}

static Status predict_all(Pictures *p, int count, char *const *paths)
{
    for (int i = 0; i < count; ++i) TRY(predict_one(p, paths[i]));
    TRY(flush(p));
    if (p->broken == 0) return OK;
    return fail(p->status, "%d of %d pictures could not be read", p->broken, count);
}

Status predict_pictures(Predict *of, int count, char *const *paths)
{
    const DataSet *set = &of->set;
    size_t values = (size_t)(set->channels * set->height * set->width);
    Pictures p = {.of = of,
                  .decoder = image_decoder_new(),
                  .work = picture_work_new(set, trainer_config(of->trainer)),
                  .path = mem_new((size_t)of->together * sizeof *p.path)};
    p.batch.x = mem_new((size_t)of->together * values * sizeof *p.batch.x);
    Status st = predict_all(&p, count, paths);
    picture_work_free(&p.work);
    image_decoder_free(&p.decoder);
    image_fini(&p.picture);
    image_fini(&p.spare);
    mem_free(&p.batch.x);
    mem_free(&p.path);
    return st;
}
