/* Thresholds, and declarations that the files of COCO's evaluation share. */
#ifndef WEFT_DETECT_COCO_PRIVATE_H
#define WEFT_DETECT_COCO_PRIVATE_H

#include "detect.h"

/* number of recalls 0, 0.01, ..., 1 at which precision is read */
enum { COCO_RECALLS = 101 };
/* Returns the bit of a range of areas and a threshold in CocoMatch.matched and ignored. */
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

/* memory for matching an image, which is kept for the next images and grows as needed */
typedef struct CocoScratch CocoScratch;

struct CocoEval {
    int categories;
    /* number of matches, and number for which memory is allocated */
    int64_t count, room;
    /* owned */
    CocoMatch *match;
    /* owned: number of truths that count, [categories][COCO_AREAS] */
    int64_t *truths;
    /* owned; defined in coco_match.c */
    CocoScratch *scratch;
};
CocoScratch *coco_scratch_new(void);
void coco_scratch_free(CocoScratch **scratch);
/* Makes room for `more` matches. */
void coco_eval_reserve(CocoEval *eval, int64_t more);

/* Result of one class. Values are -1 in ranges of areas without truths. */
typedef struct CocoClass {
    /* average precision */
    double ap[COCO_AREAS][COCO_THRESHOLDS];
    /* recall: for each range of areas with COCO_DETECTIONS detections per image, then for all areas
     * with 1 and with 10 detections */
    double recall[COCO_AREAS + 2][COCO_THRESHOLDS];
} CocoClass;

#endif
