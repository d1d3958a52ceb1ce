/* Non-maximum suppression against its definition, written as two loops over pairs, and by hand. */
#include "harness.h"
#include "detect.h"

#include <math.h>

static const NmsOptions usual = {0.5, 30000, 300};

static void by_hand(void)
{
    /* IoU of the first two: 50 / 150 = 1/3; of the first and third: 80 / 120 = 2/3 */
    DetectedBox box[] = {{{0, 0, 10, 10}, 0.5, 0, 0},
                         {{5, 0, 10, 10}, 0.75, 0, 0},
                         {{0, 2, 10, 10}, 0.25, 0, 0},
                         {{0, 2, 10, 10}, 0.25, 0, 1}};
    DetectedBox copy[4];
    int64_t kept;
    memcpy(copy, box, sizeof box);
    CHECK_OK(nms(copy, 4, &usual, &kept));
    CU_ASSERT_EQUAL_FATAL(kept, 3);
    CU_ASSERT_EQUAL(copy[0].box[0], 5);
    CU_ASSERT_EQUAL(copy[1].score, 0.5);
    CU_ASSERT_EQUAL(copy[2].category, 1);
    /* an IoU that equals the threshold is kept */
    memcpy(copy, box, sizeof box);
    CHECK_OK(nms(copy, 4, &(NmsOptions){50.0 / 150, 30000, 300}, &kept));
    CU_ASSERT_EQUAL(kept, 3);
    memcpy(copy, box, sizeof box);
    CHECK_OK(nms(copy, 4, &(NmsOptions){0.33, 30000, 300}, &kept));
    /* the second is dropped now, and the third, which only the second overlapped enough, is kept */
    CU_ASSERT_EQUAL(kept, 3);
    CU_ASSERT_EQUAL(copy[1].score, 0.25);
    memcpy(copy, box, sizeof box);
    CHECK_OK(nms(copy, 4, &(NmsOptions){0.5, 30000, 1}, &kept));
    CU_ASSERT_EQUAL(kept, 1);
    CU_ASSERT_EQUAL(copy[0].score, 0.75);
    memcpy(copy, box, sizeof box);
    CHECK_OK(nms(copy, 4, &(NmsOptions){0.5, 2, 300}, &kept));
    CU_ASSERT_EQUAL(kept, 2);
    CHECK_OK(nms(copy, 0, &usual, &kept));
    CU_ASSERT_EQUAL(kept, 0);
}

/* Boxes without area never overlap anything, themselves included. */
static void no_area(void)
{
    DetectedBox box[] = {{{0, 0, 0, 10}, 0.5, 0, 0}, {{0, 0, 0, 10}, 0.5, 0, 0}};
    int64_t kept;
    CHECK_OK(nms(box, 2, &usual, &kept));
    CU_ASSERT_EQUAL(kept, 2);
}

static void bad_input(void)
{
    DetectedBox box[] = {{{0, 0, 10, 10}, 0.5, 0, 0}, {{0, 0, 10, 10}, NAN, 0, 0}};
    int64_t kept;
    CHECK_FAILS(nms(box, 2, &usual, &kept), ERR_DATA, "box 1 of 2");
    box[1].score = 0;
    box[0].box[3] = INFINITY;
    CHECK_FAILS(nms(box, 2, &usual, &kept), ERR_DATA, "box 0 of 2");
}

enum { RANDOM_BOXES = 200 };

/* Is a better than b? index: place in the input */
static bool is_better(const DetectedBox *box, int a, int b)
{
    return box[a].score > box[b].score || (box[a].score == box[b].score && a < b);
}

/* By the definition: the best box that is not decided is kept, and decides all that it overlaps. */
static int keep_by_definition(const DetectedBox *box, int count, double iou, int *kept)
{
    bool decided[RANDOM_BOXES] = {false};
    int n = 0;
    for (;;) {
        int best = -1;
        for (int i = 0; i < count; ++i)
            if (!decided[i] && (best < 0 || is_better(box, i, best))) best = i;
        if (best < 0) return n;
        kept[n++] = best;
        decided[best] = true;
        for (int i = 0; i < count; ++i) {
            const double *a = box[best].box, *b = box[i].box;
            double w = fmin(a[0] + a[2], b[0] + b[2]) - fmax(a[0], b[0]);
            double h = fmin(a[1] + a[3], b[1] + b[3]) - fmax(a[1], b[1]);
            double both = w > 0 && h > 0 ? w * h : 0;
            if (box[i].category == box[best].category &&
                both / (a[2] * a[3] + b[2] * b[3] - both) > iou)
                decided[i] = true;
        }
    }
}

static void by_definition(void)
{
    DetectedBox box[RANDOM_BOXES], sorted[RANDOM_BOXES];
    int expected[RANDOM_BOXES], dropped = 0;
    uint32_t state = 12345;
    for (int round = 0; round < 50; ++round) {
        double iou = 0.3 + 0.01 * round;
        for (int i = 0; i < RANDOM_BOXES; ++i) {
            double v[6];
            for (int k = 0; k < 6; ++k) {
                state = state * 1664525 + 1013904223;
                v[k] = (state >> 16) % 64;
            }
            /* 16 scores and 3 classes, so that many are equal */
            box[i] = (DetectedBox){
                {v[0], v[1], 20 + v[2], 20 + v[3]}, floor(v[4] / 4), 0, (int32_t)v[5] % 3};
        }
        memcpy(sorted, box, sizeof box);
        int64_t kept;
        CHECK_OK(nms(sorted, RANDOM_BOXES, &(NmsOptions){iou, RANDOM_BOXES, RANDOM_BOXES}, &kept));
        int count = keep_by_definition(box, RANDOM_BOXES, iou, expected);
        CU_ASSERT_EQUAL_FATAL(kept, count);
        for (int i = 0; i < count; ++i)
            CU_ASSERT(memcmp(&sorted[i], &box[expected[i]], sizeof *box) == 0);
        dropped += RANDOM_BOXES - count;
    }
    CU_ASSERT(dropped > RANDOM_BOXES);
}

TEST_MAIN("nms", {"by hand", by_hand}, {"no area", no_area}, {"bad input", bad_input},
          {"by definition", by_definition})
