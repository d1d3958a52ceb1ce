/* Evaluates arrays of boxes of many images: groups the boxes by image, matches a part of the images
 * on each thread, and joins the parts. */
#include "coco_private.h"

#include <string.h>

/* Boxes sorted by image. */
typedef struct Grouped {
    const CocoBoxes *boxes;
    /* owned: true boxes, sorted */
    TruthBox *truth;
    /* owned: detections, sorted */
    DetectedBox *detected;
    /* owned: index of the first true box of each image, [images + 1] */
    int64_t *truth_begin;
    /* owned: index of the first detection of each image, [images + 1] */
    int64_t *detected_begin;
} Grouped;

/* Plans a sort of `count` boxes by image. Returns the index of the first box of each image after
 * the sort, [images + 1]; *place: index of each box after the sort, [count]. The caller owns both.
 * image: address of the field `image` of the first box; boxes are `stride` bytes apart. */
static int64_t *count_images(const void *image, size_t stride, int64_t count, int64_t images,
                             int64_t **place)
{
    int64_t *begin = mem_new((size_t)(images + 1) * sizeof *begin);
    int64_t *next = mem_new((size_t)(images + 1) * sizeof *next), at;
    *place = mem_new((size_t)(count + 1) * sizeof **place);
    for (int64_t i = 0; i < count; ++i) {
        memcpy(&at, (const char *)image + (size_t)i * stride, sizeof at);
        ++begin[at + 1];
    }
    for (int64_t i = 0; i < images; ++i) begin[i + 1] += begin[i];
    memcpy(next, begin, (size_t)(images + 1) * sizeof *next);
    for (int64_t i = 0; i < count; ++i) {
        memcpy(&at, (const char *)image + (size_t)i * stride, sizeof at);
        (*place)[i] = next[at]++;
    }
    mem_free(&next);
    return begin;
}

static Status check_images(const CocoBoxes *b)
{
    for (int64_t i = 0; i < b->truths; ++i)
        if (b->truth[i].image < 0 || b->truth[i].image >= b->images)
            return fail(ERR_DATA, "box %lld is of image %lld, which is not one of %lld",
                        (long long)b->truth[i].id, (long long)b->truth[i].image,
                        (long long)b->images);
    for (int64_t i = 0; i < b->detections; ++i)
        if (b->detected[i].image < 0 || b->detected[i].image >= b->images)
            return fail(ERR_DATA, "detection %lld is of image %lld, which is not one of %lld",
                        (long long)i, (long long)b->detected[i].image, (long long)b->images);
    return OK;
}

static void group(Grouped *g, const CocoBoxes *b)
{
    int64_t *place;
    *g = (Grouped){.boxes = b,
                   .truth = mem_new((size_t)(b->truths + 1) * sizeof *g->truth),
                   .detected = mem_new((size_t)(b->detections + 1) * sizeof *g->detected)};
    g->truth_begin = count_images(b->truths ? &b->truth->image : NULL, sizeof *b->truth, b->truths,
                                  b->images, &place);
    for (int64_t i = 0; i < b->truths; ++i) g->truth[place[i]] = b->truth[i];
    mem_free(&place);
    g->detected_begin = count_images(b->detections ? &b->detected->image : NULL,
                                     sizeof *b->detected, b->detections, b->images, &place);
    for (int64_t i = 0; i < b->detections; ++i) g->detected[place[i]] = b->detected[i];
    mem_free(&place);
}

static Status match_part(CocoEval *eval, const Grouped *g, int64_t first, int64_t end)
{
    for (int64_t i = first; i < end; ++i) {
        int64_t t = g->truth_begin[i], d = g->detected_begin[i];
        TRY(coco_eval_add_image(eval, i, g->truth + t, g->truth_begin[i + 1] - t, g->detected + d,
                                g->detected_begin[i + 1] - d));
    }
    return OK;
}

Status coco_evaluate(const CocoBoxes *boxes, int threads, CocoResult *result)
{
    Grouped g;
    TRY(check_images(boxes));
    group(&g, boxes);
    const int parts = threads < 1 ? 1 : threads;
    CocoEval **part = mem_new((size_t)parts * sizeof *part);
    char **why = mem_new((size_t)parts * sizeof *why);
#pragma omp parallel for num_threads(parts) if (parts > 1)
    for (int p = 0; p < parts; ++p) {
        part[p] = coco_eval_new(boxes->categories);
        if (match_part(part[p], &g, boxes->images * p / parts, boxes->images * (p + 1) / parts) !=
            OK)
            why[p] = mem_text(fail_message());
    }
    Status st = OK;
    for (int p = 0; p < parts; ++p) {
        if (st == OK && why[p]) st = fail(ERR_DATA, "%s", why[p]);
        if (p > 0) coco_eval_add_matches(part[0], part[p]->match, part[p]->count, part[p]->truths);
        if (p > 0) coco_eval_free(&part[p]);
        mem_free(&why[p]);
    }
    if (st == OK) st = coco_eval_finish(part[0], parts, result);
    coco_eval_free(&part[0]);
    mem_free(&part);
    mem_free(&why);
    mem_free(&g.truth);
    mem_free(&g.detected);
    mem_free(&g.truth_begin);
    mem_free(&g.detected_begin);
    return st;
}
