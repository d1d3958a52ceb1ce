/* Suppresses boxes around the same object (non-maximum suppression). Takes the boxes by falling
 * score, up to NmsOptions.candidates of them, until NmsOptions.boxes_max are kept. Drops a box if
 * its IoU with a kept box of the same class is above NmsOptions.iou. Boxes of different classes
 * never suppress each other. */
#include "detect.h"

#include <math.h>
#include <stdlib.h>

typedef struct Key {
    double score;
    int64_t index;
} Key;

static int by_score(const void *left, const void *right)
{
    const Key *a = left, *b = right;
    if (a->score != b->score) return a->score > b->score ? -1 : 1;
    return a->index < b->index ? -1 : a->index > b->index;
}

static bool is_dropped(const DetectedBox *box, const DetectedBox *kept, int64_t count, double iou)
{
    for (int64_t i = 0; i < count; ++i)
        if (kept[i].category == box->category && box_iou(kept[i].box, box->box, false) > iou)
            return true;
    return false;
}

Status nms(DetectedBox *box, int64_t count, const NmsOptions *options, int64_t *kept)
{
    *kept = 0;
    for (int64_t i = 0; i < count; ++i)
        if (!isfinite(box[i].box[0] + box[i].box[1] + box[i].box[2] + box[i].box[3]) ||
            !isfinite(box[i].score))
            return fail(ERR_DATA, "box %lld of %lld: a number is NaN or infinite", (long long)i,
                        (long long)count);
    Key *key = mem_new((size_t)(count + 1) * sizeof *key);
    DetectedBox *keep = mem_new((size_t)(count + 1) * sizeof *keep);
    for (int64_t i = 0; i < count; ++i) key[i] = (Key){box[i].score, i};
    if (count > 1) qsort(key, (size_t)count, sizeof *key, by_score);
    for (int64_t i = 0; i < count && i < options->candidates && *kept < options->boxes_max; ++i) {
        const DetectedBox *b = &box[key[i].index];
        if (!is_dropped(b, keep, *kept, options->iou)) keep[(*kept)++] = *b;
    }
    for (int64_t i = 0; i < *kept; ++i) box[i] = keep[i];
    mem_free(&keep);
    mem_free(&key);
    return OK;
}
