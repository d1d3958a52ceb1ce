/* weft predict with a detector: finds the boxes of a picture, prints them, and draws them into a
 * copy of the picture. */
#include "predict.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* The defaults of the function non_max_suppression of YOLOv5. --score replaces the score. */
static const DetectOptions DETECTION = {
    .score = 0.25, .nms = {.iou = 0.45, .candidates = 30000, .boxes_max = 300}};

/* Returns the path of a drawing: DIR/NAME.png for the file FOLDER/NAME.jpg, or DIR/NAME-7.png for
 * sample 7 of the data set FOLDER/NAME.h5. sample: -1 if the picture is a file. The caller owns the
 * result. */
static char *drawing_path(const char *dir, const char *path, int64_t sample)
{
    char number[24] = "";
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    const char *dot = strrchr(name, '.');
    if (sample >= 0) snprintf(number, sizeof number, "-%lld", (long long)sample);
    return mem_format("%s/%.*s%s.png", dir,
                      (int)(dot && dot > name ? dot - name : (int)strlen(name)), name, number);
}

/* Checks, before any picture is read, that each drawing gets a file of its own. The file must not
 * be an input; without --force it must not exist. Then makes the folder. */
static Status check_drawings(const Predict *p, int count, char *const *paths)
{
    const PredictOptions *o = p->options;
    struct stat folder;
    int64_t drawings = 0, n = 0;
    if (!*o->draw || (stat(o->draw, &folder) == 0 && !S_ISDIR(folder.st_mode)))
        return fail(ERR_USAGE, "--draw: '%s' is no folder", o->draw);
    for (int i = 0; i < count; ++i)
        drawings += p->set_of[i] ? predict_last(p, p->set_of[i]) - p->first_sample + 1 : 1;
    char **out = mem_new((size_t)drawings * sizeof *out);
    Status st = OK;
    for (int i = 0; i < count; ++i) {
        const int64_t first = p->set_of[i] ? p->first_sample : -1;
        const int64_t last = p->set_of[i] ? predict_last(p, p->set_of[i]) : -1;
        for (int64_t k = first; k <= last; ++k) out[n++] = drawing_path(o->draw, paths[i], k);
    }
    for (int64_t i = 0; i < drawings && st == OK; ++i) {
        st = file_check_not_input(out[i], (const char *const *)paths, count);
        if (st == OK) st = file_check_writable(out[i], o->force);
    }
    qsort(out, (size_t)drawings, sizeof *out, text_compare);
    for (int64_t i = 1; i < drawings && st == OK; ++i)
        if (!strcmp(out[i - 1], out[i]))
            st = fail(ERR_USAGE,
                      "--draw: two pictures would be drawn to %s; predict them in two calls, with "
                      "a folder each",
                      out[i]);
    for (int64_t i = 0; i < drawings; ++i) mem_free(&out[i]);
    mem_free(&out);
    return st == OK ? file_make_folders(o->draw) : st;
}

Status predict_check_options(const Predict *p, int count, char *const *paths)
{
    const PredictOptions *o = p->options;
    if (p->numbers && o->top > 0)
        return fail(ERR_USAGE, "--top: this model predicts numbers, not classes");
    if (!data_has_boxes(&p->set)) {
        if (isnan(o->score) && !o->draw) return OK;
        return fail(ERR_USAGE, "%s: this model finds no boxes; that needs train.loss: yolo",
                    o->draw ? "--draw" : "--score");
    }
    if (o->top > 0)
        return fail(ERR_USAGE,
                    "--top: this model finds boxes, each of one class; --score chooses among them");
    return o->draw ? check_drawings(p, count, paths) : OK;
}

static void put_boxes(const Predict *p, const PredictedPicture *picture, const DetectedBox *box,
                      int64_t count)
{
    char number[24];
    Json json = json_to(stdout, true);
    json_object(&json, NULL);
    json_text(&json, "image", picture->path);
    if (picture->sample >= 0) json_int(&json, "sample", picture->sample);
    json_int(&json, "width", picture->width);
    json_int(&json, "height", picture->height);
    json_array(&json, "boxes");
    for (int64_t i = 0; i < count; ++i) {
        json_object(&json, NULL);
        json_text(&json, "class", predict_label(p, box[i].category, number));
        json_int(&json, "index", box[i].category);
        json_fixed(&json, "score", 5, box[i].score);
        json_fixed(&json, "x", 3, box[i].box[0]);
        json_fixed(&json, "y", 3, box[i].box[1]);
        json_fixed(&json, "width", 3, box[i].box[2]);
        json_fixed(&json, "height", 3, box[i].box[3]);
        json_end(&json);
    }
    json_end(&json);
    json_end(&json);
}

static void print_boxes(const Predict *p, const PredictedPicture *picture, const DetectedBox *box,
                        int64_t count)
{
    char number[24];
    printf("%s", picture->path);
    if (picture->sample >= 0) printf(":%lld", (long long)picture->sample);
    printf(": %lld %s, %dx%d pixels\n", (long long)count, count == 1 ? "box" : "boxes",
           picture->width, picture->height);
    for (int64_t i = 0; i < count; ++i)
        printf("  %s %.3f: x %.1f, y %.1f, width %.1f, height %.1f\n",
               predict_label(p, box[i].category, number), box[i].score, box[i].box[0],
               box[i].box[1], box[i].box[2], box[i].box[3]);
}

/* Returns a copy of the picture that is --zoom times as wide and as high. Release with
 * image_fini. */
static Image zoomed(const Predict *p, const Image *picture)
{
    const int zoom = p->options->zoom > 0 ? (int)p->options->zoom : 1;
    const ImageBox all = {0, 0, picture->width, picture->height};
    ImageResampler *resampler = image_resampler_new();
    Image drawing = {0};
    image_set_size(&drawing, zoom * picture->width, zoom * picture->height);
    image_resample(resampler, picture, all, &drawing, IMAGE_BICUBIC);
    image_resampler_free(&resampler);
    return drawing;
}

/* Converts a box from pixels of a picture to pixels of its drawing. */
static void scale_box(double box[4], const PredictedPicture *picture, const Image *drawing)
{
    for (int i = 0; i < 4; i += 2) {
        box[i] *= (double)drawing->width / picture->width;
        box[i + 1] *= (double)drawing->height / picture->height;
    }
}

/* Writes a copy of the picture with its boxes to the folder of --draw. Converts `box`, [count], to
 * pixels of the copy. */
static Status draw_boxes(const Predict *p, const PredictedPicture *picture, DetectedBox *box,
                         int64_t count)
{
    Image drawing = zoomed(p, picture->pixels);
    for (int64_t i = 0; i < picture->truths; ++i) {
        TruthBox truth = picture->truth[i];
        scale_box(truth.box, picture, &drawing);
        detect_draw_truths(&drawing, &truth, 1, (const char *const *)picture->names->name,
                           picture->names->count);
    }
    for (int64_t i = 0; i < count; ++i) scale_box(box[i].box, picture, &drawing);
    detect_draw(&drawing, box, count, (const char *const *)p->names.name, p->names.count);
    char *to = drawing_path(p->options->draw, picture->path, picture->sample);
    Status st = image_write_png(&drawing, to);
    image_fini(&drawing);
    mem_free(&to);
    return st;
}

Status predict_boxes(const Predict *p, const PredictedPicture *picture)
{
    const BoxFit fit = data_box_fit(&p->set, picture->width, picture->height);
    DetectOptions o = DETECTION;
    DetectedBox *box;
    int64_t count;
    if (!isnan(p->options->score)) o.score = p->options->score;
    TRY(detector_boxes_find(p->boxes, 0, &o, &box, &count));
    for (int64_t i = 0; i < count; ++i)
        detect_to_picture(&box[i], &fit, picture->width, picture->height);
    (p->options->json ? put_boxes : print_boxes)(p, picture, box, count);
    return p->options->draw ? draw_boxes(p, picture, box, count) : OK;
}
