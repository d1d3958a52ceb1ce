/* The parts of object detection that do not depend on a network: COCO's evaluation and file of
 * results, non-maximum suppression, and drawing of boxes. A box is (x, y, width, height) in pixels,
 * x and y of its top left corner. Everything is computed in double and gives the same bits for any
 * number of threads and ranks. The module uses neither MPI nor data sets. Not collective. */
#ifndef WEFT_DETECT_H
#define WEFT_DETECT_H

#include "base.h"
#include "image.h"

/* A true box. */
typedef struct TruthBox {
    double box[4];
    /* decides to which range of areas the box belongs; in COCO's sets the area of the polygon, not
     * of the box */
    double area;
    /* number of the annotation, from 1: COCO treats a match with annotation 0 as no match */
    int64_t id;
    /* image: number of the image, from 0, in ascending order of COCO's image ids; category: class,
     * from 0 */
    int64_t image;
    int32_t category;
    /* true: the box is around a group of objects; it may be matched several times, and its matches
     * do not count */
    bool crowd;
} TruthBox;

/* A box that a network found. */
typedef struct DetectedBox {
    double box[4];
    double score;
    int64_t image;
    int32_t category;
} DetectedBox;

/* Returns intersection over union of two boxes (pycocotools' bbIou), 0 if they do not overlap.
 * crowd: true if `truth` is around a group; the intersection is then divided by the area of `box`
 * alone. */
double box_iou(const double box[4], const double truth[4], bool crowd);

/* ---- COCO's evaluation, as pycocotools 2.0.11 does it for boxes ---- */

enum {
    /* IoU thresholds 0.50, 0.55, ..., 0.95 */
    COCO_THRESHOLDS = 10,
    /* ranges of areas: all, small (to 32 x 32 pixels), medium (to 96 x 96), large */
    COCO_AREAS = 4,
    /* the most detections per image and class that are evaluated */
    COCO_DETECTIONS = 100
};
/* the printed numbers, in pycocotools' order, with the names that weft gives them */
#define COCO_NUMBERS_LIST(W)                                                                       \
    W(COCO_AP, "AP")                                                                               \
    W(COCO_AP50, "AP50")                                                                           \
    W(COCO_AP75, "AP75")                                                                           \
    W(COCO_AP_SMALL, "AP_small")                                                                   \
    W(COCO_AP_MEDIUM, "AP_medium")                                                                 \
    W(COCO_AP_LARGE, "AP_large")                                                                   \
    W(COCO_AR1, "AR_1")                                                                            \
    W(COCO_AR10, "AR_10")                                                                          \
    W(COCO_AR100, "AR_100")                                                                        \
    W(COCO_AR_SMALL, "AR_small")                                                                   \
    W(COCO_AR_MEDIUM, "AR_medium")                                                                 \
    W(COCO_AR_LARGE, "AR_large")
typedef enum CocoNumber { COCO_NUMBERS_LIST(LIST_CONSTANT) COCO_NUMBERS } CocoNumber;
/* Returns the name of a number, for example "AP50". Static. */
const char *coco_number_name(CocoNumber number);

/* The part of a detection that evaluation needs once its image is matched. Plain bytes, which ranks
 * may send to each other. */
typedef struct CocoMatch {
    double score;
    int64_t image;
    /* bit area * COCO_THRESHOLDS + threshold is set in `matched` if the detection has a truth in
     * this range of areas at this threshold, and in `ignored` if the detection does not count
     * there */
    uint64_t matched, ignored;
    int32_t category;
    /* index among the detections of its image and class, by falling score */
    int32_t place;
} CocoMatch;

/* Collects the matches of images. Used by one thread at a time. */
typedef struct CocoEval CocoEval;
CocoEval *coco_eval_new(int categories);
void coco_eval_free(CocoEval **eval);
/* Matches the detections of one image with its truths; the field `image` of both is not read.
 * Truths, and detections of equal scores, are matched in the given order. ERR_DATA: a class is not
 * below `categories`, a number is NaN or infinite, a width, height or area is negative. */
Status coco_eval_add_image(CocoEval *eval, int64_t image, const TruthBox *truth, int64_t truths,
                           const DetectedBox *detected, int64_t count);
/* Returns the matches so far; borrowed. *truths: number of truths that count in each class and
 * range of areas, int64_t[categories][COCO_AREAS]. */
const CocoMatch *coco_eval_matches(const CocoEval *eval, int64_t *count, const int64_t **truths);
/* Adds matches and truths that coco_eval_matches returned for other images, for example on another
 * rank. The order in which images are added changes no bit of the result. */
void coco_eval_add_matches(CocoEval *eval, const CocoMatch *match, int64_t count,
                           const int64_t *truths);

typedef struct CocoResult {
    /* -1 if there are no truths that count */
    double number[COCO_NUMBERS];
    int categories;
    /* owned, [categories]. ap, ap50: AP and AP50 of each class, -1 if the class has no truths that
     * count; truths: number of truths that count */
    double *ap, *ap50;
    int64_t *truths;
} CocoResult;
/* Computes the result of all images that were added, on `threads` threads. Release with
 * coco_result_fini. ERR_DATA: an image with detections was added twice. */
Status coco_eval_finish(CocoEval *eval, int threads, CocoResult *result);
void coco_result_fini(CocoResult *result);

/* Boxes of many images. */
typedef struct CocoBoxes {
    int64_t images;
    int categories;
    /* borrowed; images may be in any order; the boxes of an image keep the given order */
    const TruthBox *truth;
    const DetectedBox *detected;
    int64_t truths, detections;
} CocoBoxes;
/* Evaluates all images of `boxes` on `threads` threads: coco_eval_new to coco_eval_finish in one
 * call. ERR_DATA as from these functions, or if an image is not below `images`. */
Status coco_evaluate(const CocoBoxes *boxes, int threads, CocoResult *result);

/* Writes detections as COCO's file of results (JSON), replacing an existing file: boxes with 3
 * decimals, scores with 5. image_id[i], category_id[i]: COCO's ids of image i and of class i.
 * ERR_IO. */
Status coco_results_write(const char *path, const DetectedBox *detected, int64_t count,
                          const int64_t *image_id, const int64_t *category_id);

/* ---- pictures ---- */

/* Draws boxes of one image, given in pixels of this image, with names of classes and scores; the
 * first boxes are on top. name[names]: names of the classes; a class without a name is drawn as its
 * number. */
void detect_draw(Image *image, const DetectedBox *box, int64_t count, const char *const *name,
                 int64_t names);

/* Draws true boxes as white dashed frames with their names at the lower edge. */
void detect_draw_truths(Image *image, const TruthBox *truth, int64_t count, const char *const *name,
                        int64_t names);

/* ---- non-maximum suppression ---- */

typedef struct NmsOptions {
    /* a box is dropped if its IoU with a kept box of the same class is larger than this */
    double iou;
    /* candidates: number of boxes that are considered, the highest scores first; most: maximum
     * number of boxes that are kept; both over all classes */
    int64_t candidates, most;
} NmsOptions;
/* Non-maximum suppression of the boxes of one image. Moves the kept boxes to the front, by falling
 * score, equal scores in input order, and sets *kept to their number. The field `image` is not
 * read. ERR_DATA: a number is NaN or infinite. */
Status nms(DetectedBox *box, int64_t count, const NmsOptions *options, int64_t *kept);

#endif
