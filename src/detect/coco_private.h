/* Declares the IoU thresholds, and data and functions that the files of COCO's evaluation share. */
#ifndef WEFT_DETECT_COCO_PRIVATE_H
#define WEFT_DETECT_COCO_PRIVATE_H

#include "detect.h"

/* number of the recalls 0, 0.01, ..., 1 at which precision is read */
enum { COCO_RECALLS = 101 };
/* Returns the bit of a range of areas and an IoU threshold in CocoMatch.matched and ignored. */
static inline uint64_t coco_bit(int area, int threshold)
{
    return (uint64_t)1 << (area * COCO_THRESHOLDS + threshold);
}
/* Returns IoU threshold t, with the bits of numpy.linspace(0.5, 0.95, 10)[t]. */
static inline double coco_threshold(int t)
{
    const double step = (0.95 - 0.5) / (COCO_THRESHOLDS - 1);
    return t == COCO_THRESHOLDS - 1 ? 0.95 : t * step + 0.5;
}

/* Scratch memory for matching an image (coco_match.c). It is kept for the next images and grows as
 * needed. */
typedef struct CocoScratch CocoScratch;

struct CocoEval {
    /* number of classes */
    int categories;
    /* number of matches */
    int64_t count;
    /* capacity of `match` */
    int64_t room;
    /* owned: matches of all images so far, [count] */
    CocoMatch *match;
    /* owned: number of truths that count (are not ignored), [categories][COCO_AREAS] */
    int64_t *truths;
    /* owned */
    CocoScratch *scratch;
};
CocoScratch *coco_scratch_new(void);
void coco_scratch_free(CocoScratch **scratch);
/* Allocates memory for `more` further matches. */
void coco_eval_reserve(CocoEval *eval, int64_t more);

/* Result of one class. A value is -1 if its range of areas has no truth that counts. */
typedef struct CocoClass {
    /* average precision */
    double ap[COCO_AREAS][COCO_THRESHOLDS];
    /* recall with the first COCO_DETECTIONS detections of each image, for each range of areas; then
     * recall for all areas with the first detection, and with the first 10 detections */
    double recall[COCO_AREAS + 2][COCO_THRESHOLDS];
} CocoClass;

#endif
