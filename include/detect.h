/* detect: the parts of object detection that do not depend on a network: COCO's evaluation and file
 * of results, non-maximum suppression, and drawing of boxes. A box is (x, y, width, height) in
 * pixels; x and y are those of its top left corner. Everything is computed in double and gives the
 * same bits for any number of threads and ranks. The module uses neither MPI nor data sets. Not
 * collective. */
#ifndef WEFT_DETECT_H
#define WEFT_DETECT_H

#include "base.h"
#include "image.h"

/* A true box. */
typedef struct TruthBox {
    double box[4];
    /* area in square pixels, which decides to which ranges of areas the box belongs (COCO_AREAS);
     * in COCO's sets it is the area of the object's polygon, not of the box */
    double area;
    /* COCO's id of this box (annotation). It should be at least 1: a match with a box whose id is 0
     * counts as no match, as in pycocotools. */
    int64_t id;
    /* number of the image, counted from 0 in ascending order of COCO's image ids */
    int64_t image;
    /* class, counted from 0 */
    int32_t category;
    /* true: the box does not count, because it is around a group of objects or its object is marked
     * as difficult (VOC). Several detections may match the box, and these matches do not count. */
    bool crowd;
} TruthBox;

/* A box that a network found. image, category: see TruthBox. */
typedef struct DetectedBox {
    double box[4];
    double score;
    int64_t image;
    int32_t category;
} DetectedBox;

/* Returns the intersection over union (IoU) of two boxes, as pycocotools' function bbIou does; 0 if
 * they do not overlap. crowd: TruthBox.crowd of `truth`; if true, the intersection is divided by
 * the area of `box` alone. */
double box_iou(const double box[4], const double truth[4], bool crowd);

/* ---- COCO's evaluation, as pycocotools 2.0.11 does it for boxes ---- */

enum {
    /* IoU thresholds 0.50, 0.55, ..., 0.95 */
    COCO_THRESHOLDS = 10,
    /* ranges of areas: all, small (to 32 x 32 pixels), medium (to 96 x 96), large */
    COCO_AREAS = 4,
    /* largest number of detections of an image and class that are evaluated */
    COCO_DETECTIONS = 100
};
/* The twelve numbers that are printed, in pycocotools' order, with weft's names. */
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

/* The result of matching one detection. Plain bytes, which ranks may send to each other. */
typedef struct CocoMatch {
    double score;
    int64_t image;
    /* One bit for each range of areas and each threshold: bit area * COCO_THRESHOLDS + threshold.
     * matched: the detection matches a true box. ignored: the detection does not count. */
    uint64_t matched, ignored;
    int32_t category;
    /* index among the detections of its image and class, highest score first */
    int32_t rank_in_class;
} CocoMatch;

/* Collects the matches of images. Only one thread at a time may use it. */
typedef struct CocoEval CocoEval;
CocoEval *coco_eval_new(int categories);
void coco_eval_free(CocoEval **eval);
/* Matches the detections of one image with its truths; the field `image` of both is not read.
 * Detections are matched by falling score, and in the given order if scores are equal. The order of
 * the truths matters only if a detection has equal IoUs with several truths. ERR_DATA: a class is
 * not below the number of categories, a number is NaN or infinite, a width, height or area is
 * negative. */
Status coco_eval_add_image(CocoEval *eval, int64_t image, const TruthBox *truth, int64_t truths,
                           const DetectedBox *detected, int64_t count);
/* Returns the matches so far, [*count]. *truths: number of true boxes that count in each class and
 * range of areas, int64_t[categories][COCO_AREAS]. Both arrays are borrowed. */
const CocoMatch *coco_eval_matches(const CocoEval *eval, int64_t *count, const int64_t **truths);
/* Adds matches and truths that coco_eval_matches returned for other images, for example on another
 * rank. The order in which images are added changes no bit of the result. */
void coco_eval_add_matches(CocoEval *eval, const CocoMatch *match, int64_t count,
                           const int64_t *truths);

/* The result of an evaluation. */
typedef struct CocoResult {
    /* the numbers that are printed; -1 if there are no true boxes that count */
    double number[COCO_NUMBERS];
    int categories;
    /* ap, ap50: the numbers AP and AP50 of each class, [categories], owned; -1 if the class has no
     * true boxes that count */
    double *ap, *ap50;
    /* number of true boxes that count in each class, [categories]; owned */
    int64_t *truths;
} CocoResult;
/* Computes the result of all images that were added, on `threads` threads. Release with
 * coco_result_fini. ERR_DATA: the same detections of an image were added twice. */
Status coco_eval_finish(CocoEval *eval, int threads, CocoResult *result);
void coco_result_fini(CocoResult *result);

/* Boxes of many images. */
typedef struct CocoBoxes {
    int64_t images;
    int categories;
    /* true boxes, [truths], and detections, [detections]; borrowed. Images may be in any order; the
     * boxes of an image keep their order. */
    const TruthBox *truth;
    const DetectedBox *detected;
    int64_t truths, detections;
} CocoBoxes;
/* Evaluates all images of `boxes` on `threads` threads, by the functions of CocoEval above.
 * ERR_DATA: a function of CocoEval has failed, or the image of a box is not below boxes->images. */
Status coco_evaluate(const CocoBoxes *boxes, int threads, CocoResult *result);

/* Writes detections as COCO's file of results (JSON), with 3 decimals for boxes and 5 for scores.
 * An existing file is replaced. image_id[i]: COCO's id of image i; category_id[c]: COCO's id of
 * class c. ERR_IO: the file cannot be written. */
Status coco_results_write(const char *path, const DetectedBox *detected, int64_t count,
                          const int64_t *image_id, const int64_t *category_id);

/* ---- pictures ---- */

/* Draws boxes of one image, in pixels of this image, with the names of their classes and their
 * scores. The first boxes are on top. name[names]: names of the classes; a class without a name is
 * drawn as its number. */
void detect_draw(Image *image, const DetectedBox *box, int64_t count, const char *const *name,
                 int64_t names);

/* Draws true boxes as white dashed frames with their names at the lower edge. */
void detect_draw_truths(Image *image, const TruthBox *truth, int64_t count, const char *const *name,
                        int64_t names);

/* ---- non-maximum suppression ---- */

/* Limits of non-maximum suppression. */
typedef struct NmsOptions {
    /* Limit of the IoU. A box is dropped if its IoU with a kept box of the same class is above this
     * limit. Boxes are considered by falling score. */
    double iou;
    /* candidates: largest number of boxes that are considered, the highest scores first; boxes_max:
     * largest number of boxes that are kept. Both numbers are over all classes. */
    int64_t candidates, boxes_max;
} NmsOptions;
/* Performs non-maximum suppression of the boxes of one image. Moves the kept boxes to the front, by
 * falling score and, if scores are equal, in input order. *kept: number of kept boxes. The field
 * `image` is not read. ERR_DATA: a number is NaN or infinite. */
Status nms(DetectedBox *box, int64_t count, const NmsOptions *options, int64_t *kept);

#endif
