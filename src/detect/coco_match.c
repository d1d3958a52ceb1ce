/* Matches the detections of an image with its truths, class by class, for each range of areas and
 * each IoU threshold. The rules are those of pycocotools' function evaluateImg.
 *
 * The first COCO_DETECTIONS detections of a class by falling score are matched one after the
 * other. A detection is matched with the free truth whose IoU is largest, if the IoU reaches the
 * threshold; if IoUs are equal, with the later truth. A truth is free until a detection is
 * matched with it; a crowd stays free. A truth is ignored if it is a crowd or its area is out of
 * range. A detection is matched with an ignored truth only if no free truth that counts reaches
 * the threshold. A detection is ignored if its truth is ignored, or if it has no truth and its
 * own area is out of range. */
#include "coco_private.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The sort key of a box: keys are sorted by class, then by falling score, then by index. */
typedef struct Key {
    double score;
    /* index of the box in the image's truths or detections */
    int64_t index;
    int32_t category;
} Key;

struct CocoScratch {
    /* owned: keys of the truths and of the detections of an image, sorted */
    Key *truth_key, *detection_key;
    /* capacity of truth_key and of detection_key */
    int64_t truth_room, detection_room;
    /* owned: IoUs of one class, [detections][truths] */
    double *iou;
    /* capacity of `iou` */
    int64_t iou_room;
    /* capacity of each of the arrays `order`, `ignored` and `taken` */
    int64_t order_room;
    /* owned: indices of the truths of one class; those of the truths that count come first */
    int64_t *order;
    /* owned: [t] is 1 if truth t is ignored */
    uint8_t *ignored;
    /* owned: [t] is 1 if a detection is matched with truth t */
    uint8_t *taken;
};

/* The truths and detections of one class of an image. */
typedef struct Group {
    /* truths and detections of the image; the index of a Key is an index here */
    const TruthBox *truth;
    const DetectedBox *detected;
    /* keys of the class, [truths] and [detections] */
    const Key *truth_key, *detection_key;
    int64_t truths, detections;
} Group;

/* smallest and largest area of each range, in square pixels */
static const double area_range[COCO_AREAS][2] = {
    {0, 1e10}, {0, 32 * 32}, {32 * 32, 96 * 96}, {96 * 96, 1e10}};

CocoScratch *coco_scratch_new(void)
{
    return mem_new(sizeof(CocoScratch));
}

void coco_scratch_free(CocoScratch **scratch)
{
    CocoScratch *s = *scratch;
    mem_free(&s->truth_key);
    mem_free(&s->detection_key);
    mem_free(&s->iou);
    mem_free(&s->order);
    mem_free(&s->ignored);
    mem_free(&s->taken);
    mem_free(scratch);
}

static int by_class_and_score(const void *left, const void *right)
{
    const Key *a = left, *b = right;
    if (a->category != b->category) return a->category < b->category ? -1 : 1;
    if (a->score != b->score) return a->score > b->score ? -1 : 1;
    return a->index < b->index ? -1 : a->index > b->index;
}

static bool out_of_range(double area, int range)
{
    return area < area_range[range][0] || area > area_range[range][1];
}

static bool box_is_usable(const double box[4])
{
    for (int i = 0; i < 4; ++i)
        if (!isfinite(box[i])) return false;
    return box[2] >= 0 && box[3] >= 0;
}

/* ---- sorting ---- */

static Key *keys_reserve(Key **key, int64_t *room, int64_t count)
{
    if (*room < count) {
        *room = 2 * count;
        *key = mem_resize(*key, (size_t)*room * sizeof **key);
    }
    return *key;
}

/* Checks the truths, and sorts their keys by class. ERR_DATA: a truth is not valid. */
static Status sort_truths(const CocoEval *eval, int64_t image, const TruthBox *truth, int64_t n)
{
    CocoScratch *s = eval->scratch;
    Key *key = keys_reserve(&s->truth_key, &s->truth_room, n);
    for (int64_t i = 0; i < n; ++i) {
        const TruthBox *t = &truth[i];
        if (t->category < 0 || t->category >= eval->categories)
            return fail(ERR_DATA, "image %lld: box %lld: class %d is not one of %d",
                        (long long)image, (long long)t->id, t->category, eval->categories);
        if (!box_is_usable(t->box) || !isfinite(t->area) || t->area < 0)
            return fail(ERR_DATA, "image %lld: box %lld: a number is not finite, or is negative",
                        (long long)image, (long long)t->id);
        key[i] = (Key){0, i, t->category};
    }
    if (n > 1) qsort(key, (size_t)n, sizeof *key, by_class_and_score);
    return OK;
}

/* Checks the detections, and sorts their keys by class and score. ERR_DATA: a detection is not
 * valid. */
static Status sort_detections(const CocoEval *eval, int64_t image, const DetectedBox *detected,
                              int64_t n)
{
    CocoScratch *s = eval->scratch;
    Key *key = keys_reserve(&s->detection_key, &s->detection_room, n);
    for (int64_t i = 0; i < n; ++i) {
        const DetectedBox *d = &detected[i];
        if (d->category < 0 || d->category >= eval->categories)
            return fail(ERR_DATA, "image %lld: detection %lld: class %d is not one of %d",
                        (long long)image, (long long)i, d->category, eval->categories);
        if (!box_is_usable(d->box) || !isfinite(d->score))
            return fail(ERR_DATA,
                        "image %lld: detection %lld: a number is not finite, or a side "
                        "is negative",
                        (long long)image, (long long)i);
        key[i] = (Key){d->score, i, d->category};
    }
    if (n > 1) qsort(key, (size_t)n, sizeof *key, by_class_and_score);
    return OK;
}

/* ---- matching ---- */

/* Computes s->iou. Returns true if any IoU reaches the lowest threshold. */
static bool compute_iou(CocoScratch *s, const Group *g)
{
    bool any = false;
    if (s->iou_room < g->truths * g->detections) {
        s->iou_room = 2 * g->truths * g->detections;
        s->iou = mem_resize(s->iou, (size_t)s->iou_room * sizeof *s->iou);
    }
    double *iou = s->iou;
    for (int64_t d = 0; d < g->detections; ++d)
        for (int64_t t = 0; t < g->truths; ++t, ++iou) {
            const TruthBox *truth = &g->truth[g->truth_key[t].index];
            *iou = box_iou(g->detected[g->detection_key[d].index].box, truth->box, truth->crowd);
            any |= *iou >= coco_threshold(0);
        }
    return any;
}

/* Sets s->ignored and s->order for a range of areas. Returns the number of truths that count. */
static int64_t order_truths(CocoScratch *s, const Group *g, int area)
{
    int64_t counting = 0, n = 0;
    if (s->order_room < g->truths) {
        s->order_room = 2 * g->truths;
        s->order = mem_resize(s->order, (size_t)s->order_room * sizeof *s->order);
        s->ignored = mem_resize(s->ignored, (size_t)s->order_room);
        s->taken = mem_resize(s->taken, (size_t)s->order_room);
    }
    for (int64_t t = 0; t < g->truths; ++t) {
        const TruthBox *truth = &g->truth[g->truth_key[t].index];
        s->ignored[t] = truth->crowd || out_of_range(truth->area, area);
        if (!s->ignored[t]) s->order[counting++] = t;
    }
    n = counting;
    for (int64_t t = 0; t < g->truths; ++t)
        if (s->ignored[t]) s->order[n++] = t;
    return counting;
}

/* Returns the index of the truth with which detection d is matched at a threshold; -1: none. */
static int64_t choose_truth(const CocoScratch *s, const Group *g, int64_t d, double threshold)
{
    const double *iou = s->iou + d * g->truths;
    double best = threshold;
    int64_t chosen = -1;
    for (int64_t i = 0; i < g->truths; ++i) {
        int64_t t = s->order[i];
        if (s->taken[t] && !g->truth[g->truth_key[t].index].crowd) continue;
        if (chosen >= 0 && !s->ignored[chosen] && s->ignored[t]) break;
        if (iou[t] < best) continue;
        best = iou[t];
        chosen = t;
    }
    return chosen;
}

static void match_at(CocoScratch *s, const Group *g, CocoMatch *match, int area, int threshold)
{
    uint64_t bit = coco_bit(area, threshold);
    memset(s->taken, 0, (size_t)g->truths);
    for (int64_t d = 0; d < g->detections; ++d) {
        int64_t t = choose_truth(s, g, d, coco_threshold(threshold));
        if (t < 0) continue;
        s->taken[t] = 1;
        if (s->ignored[t]) match[d].ignored |= bit;
        if (g->truth[g->truth_key[t].index].id != 0) match[d].matched |= bit;
    }
}

/* Matches the detections of one class, and appends their CocoMatches. */
static void match_group(CocoEval *eval, int64_t image, const Group *g)
{
    CocoScratch *s = eval->scratch;
    CocoMatch *match = eval->match + eval->count;
    const uint64_t thresholds = coco_bit(1, 0) - 1;
    for (int64_t d = 0; d < g->detections; ++d) {
        const Key *key = &g->detection_key[d];
        match[d] = (CocoMatch){key->score, image, 0, 0, key->category, (int32_t)d};
    }
    bool any = g->detections > 0 && g->truths > 0 && compute_iou(s, g);
    for (int a = 0; a < COCO_AREAS; ++a) {
        if (g->truths)
            eval->truths[g->truth_key[0].category * COCO_AREAS + a] += order_truths(s, g, a);
        for (int t = 0; any && t < COCO_THRESHOLDS; ++t) match_at(s, g, match, a, t);
        for (int64_t d = 0; d < g->detections; ++d) {
            const double *box = g->detected[g->detection_key[d].index].box;
            if (out_of_range(box[2] * box[3], a))
                match[d].ignored |= ~match[d].matched & thresholds << (a * COCO_THRESHOLDS);
        }
    }
    eval->count += g->detections;
}

/* Returns the index after the last key of a class. The keys of the class begin at index `at`; if
 * there are none, returns `at`. */
static int64_t class_end(const Key *key, int64_t at, int64_t count, int32_t category)
{
    while (at < count && key[at].category == category) ++at;
    return at;
}

Status coco_eval_add_image(CocoEval *eval, int64_t image, const TruthBox *truth, int64_t truths,
                           const DetectedBox *detected, int64_t count)
{
    TRY(sort_truths(eval, image, truth, truths));
    TRY(sort_detections(eval, image, detected, count));
    coco_eval_reserve(eval, count);
    const Key *t = eval->scratch->truth_key, *d = eval->scratch->detection_key;
    for (int64_t i = 0, j = 0; i < truths || j < count;) {
        int32_t category = i == truths                                   ? d[j].category
                           : j == count || t[i].category < d[j].category ? t[i].category
                                                                         : d[j].category;
        int64_t i_end = class_end(t, i, truths, category);
        int64_t j_end = class_end(d, j, count, category), n = j_end - j;
        Group group = {truth, detected,  t + i,
                       d + j, i_end - i, n < COCO_DETECTIONS ? n : COCO_DETECTIONS};
        match_group(eval, image, &group);
        i = i_end;
        j = j_end;
    }
    return OK;
}
