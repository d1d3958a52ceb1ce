/* COCO's evaluation against pycocotools' numbers (tests/golden/coco_eval.txt, made by
 * tools/golden_coco_eval.py), and the same bits for any number of threads and parts, and any order
 * of images. */
#include "harness.h"
#include "detect.h"

#include <math.h>

enum { BOXES_MAX = 1000, CLASSES_MAX = 16 };
static const double tolerance = 1e-12;

typedef struct Case {
    char name[32];
    int images, categories, truths, detections;
    TruthBox truth[BOXES_MAX];
    DetectedBox detected[BOXES_MAX];
    double number[COCO_NUMBERS], ap[CLASSES_MAX], ap50[CLASSES_MAX];
} Case;

static void read_row(char *text, double *value, int count)
{
    for (int i = 0; i < count; ++i) value[i] = strtod(text, &text);
}

/* Reads the next case; false: there is none. */
static bool read_case(FILE *file, Case *c)
{
    char line[4096];
    double v[9];
    c->truths = c->detections = 0;
    while (fgets(line, sizeof line, file)) {
        if (sscanf(line, "case %31s %d %d", c->name, &c->images, &c->categories) == 3) continue;
        if (strncmp(line, "t ", 2) == 0) {
            read_row(line + 2, v, 9);
            c->truth[c->truths++] = (TruthBox){{v[2], v[3], v[4], v[5]},
                                               v[6],
                                               (int64_t)v[8],
                                               (int64_t)v[0],
                                               (int32_t)v[1],
                                               v[7] != 0};
        } else if (strncmp(line, "d ", 2) == 0) {
            read_row(line + 2, v, 7);
            c->detected[c->detections++] =
                (DetectedBox){{v[2], v[3], v[4], v[5]}, v[6], (int64_t)v[0], (int32_t)v[1]};
        } else if (strncmp(line, "numbers ", 8) == 0) {
            read_row(line + 8, c->number, COCO_NUMBERS);
        } else if (strncmp(line, "ap ", 3) == 0) {
            read_row(line + 3, c->ap, c->categories);
        } else if (strncmp(line, "ap50 ", 5) == 0) {
            read_row(line + 5, c->ap50, c->categories);
            return true;
        }
    }
    return false;
}

static CocoBoxes boxes_of(const Case *c)
{
    return (CocoBoxes){c->images, c->categories, c->truth, c->detected, c->truths, c->detections};
}

static void check_near(const char *name, const char *what, double got, double expected)
{
    if (!(fabs(got - expected) <= tolerance))
        printf("  %s: %s: %.17g, expected %.17g\n", name, what, got, expected);
    CU_ASSERT(fabs(got - expected) <= tolerance);
}

static void check_result(const Case *c, const CocoResult *r)
{
    for (int i = 0; i < COCO_NUMBERS; ++i)
        check_near(c->name, coco_number_name((CocoNumber)i), r->number[i], c->number[i]);
    for (int k = 0; k < c->categories; ++k) {
        check_near(c->name, "AP of a class", r->ap[k], c->ap[k]);
        check_near(c->name, "AP50 of a class", r->ap50[k], c->ap50[k]);
    }
}

static bool same_bits(const CocoResult *a, const CocoResult *b)
{
    size_t bytes = (size_t)a->categories * sizeof(double);
    return memcmp(a->number, b->number, sizeof a->number) == 0 &&
           memcmp(a->ap, b->ap, bytes) == 0 && memcmp(a->ap50, b->ap50, bytes) == 0;
}

/* Evaluates as `parts` ranks would, which add every parts-th image, the last rank first and each
 * image after those that follow it. */
static void evaluate_parts(const Case *c, int parts, CocoResult *result)
{
    CocoEval *all = coco_eval_new(c->categories);
    TruthBox *truth = mem_new(sizeof *truth * BOXES_MAX);
    DetectedBox *detected = mem_new(sizeof *detected * BOXES_MAX);
    for (int p = parts - 1; p >= 0; --p) {
        CocoEval *part = coco_eval_new(c->categories);
        for (int i = c->images - 1; i >= 0; --i) {
            if (i % parts != p) continue;
            int t = 0, d = 0;
            for (int k = 0; k < c->truths; ++k)
                if (c->truth[k].image == i) truth[t++] = c->truth[k];
            for (int k = 0; k < c->detections; ++k)
                if (c->detected[k].image == i) detected[d++] = c->detected[k];
            CHECK_OK(coco_eval_add_image(part, i, truth, t, detected, d));
        }
        int64_t count;
        const int64_t *truths;
        const CocoMatch *match = coco_eval_matches(part, &count, &truths);
        coco_eval_add_matches(all, match, count, truths);
        coco_eval_free(&part);
    }
    CHECK_OK(coco_eval_finish(all, 1, result));
    coco_eval_free(&all);
    mem_free(&truth);
    mem_free(&detected);
}

static void golden(void)
{
    FILE *file = fopen("tests/golden/coco_eval.txt", "r");
    Case *c = mem_new(sizeof *c);
    int cases = 0;
    CU_ASSERT_PTR_NOT_NULL_FATAL(file);
    for (; read_case(file, c); ++cases) {
        CocoBoxes boxes = boxes_of(c);
        CocoResult one, other;
        CHECK_OK(coco_evaluate(&boxes, 1, &one));
        check_result(c, &one);
        for (int threads = 2; threads <= 5; ++threads) {
            CHECK_OK(coco_evaluate(&boxes, threads, &other));
            CU_ASSERT(same_bits(&one, &other));
            coco_result_fini(&other);
        }
        for (int parts = 1; parts <= 4; ++parts) {
            evaluate_parts(c, parts, &other);
            CU_ASSERT(same_bits(&one, &other));
            coco_result_fini(&other);
        }
        coco_result_fini(&one);
    }
    CU_ASSERT_EQUAL(cases, 10);
    mem_free(&c);
    fclose(file);
}

/* One truth, found with IoU 1 by the better of two detections. */
static void by_hand(void)
{
    TruthBox truth[] = {{{10, 10, 20, 20}, 400, 1, 0, 0, false}};
    DetectedBox detected[] = {{{10, 10, 20, 20}, 0.5, 0, 0}, {{200, 10, 20, 20}, 0.25, 0, 0}};
    CocoBoxes boxes = {1, 2, truth, detected, 1, 2};
    CocoResult r;
    CHECK_OK(coco_evaluate(&boxes, 1, &r));
    CU_ASSERT_DOUBLE_EQUAL(r.number[COCO_AP], 1, tolerance);
    CU_ASSERT_DOUBLE_EQUAL(r.number[COCO_AP_SMALL], 1, tolerance);
    CU_ASSERT_EQUAL(r.number[COCO_AP_LARGE], -1);
    CU_ASSERT_EQUAL(r.ap[1], -1);
    CU_ASSERT_EQUAL(r.truths[0], 1);
    CU_ASSERT_EQUAL(r.truths[1], 0);
    coco_result_fini(&r);
    /* the wrong one is better: precision 1/2 at each recall */
    detected[1].score = 0.75;
    CHECK_OK(coco_evaluate(&boxes, 1, &r));
    CU_ASSERT_DOUBLE_EQUAL(r.number[COCO_AP], 0.5, tolerance);
    CU_ASSERT_DOUBLE_EQUAL(r.number[COCO_AR1], 0, tolerance);
    CU_ASSERT_DOUBLE_EQUAL(r.number[COCO_AR10], 1, tolerance);
    coco_result_fini(&r);
}

static void nothing(void)
{
    TruthBox truth[] = {{{10, 10, 20, 20}, 400, 1, 0, 0, false}};
    CocoBoxes boxes = {1, 2, truth, NULL, 1, 0};
    CocoResult r;
    CHECK_OK(coco_evaluate(&boxes, 2, &r));
    CU_ASSERT_EQUAL(r.number[COCO_AP], 0);
    CU_ASSERT_EQUAL(r.number[COCO_AR100], 0);
    coco_result_fini(&r);
    boxes.truths = 0;
    CHECK_OK(coco_evaluate(&boxes, 2, &r));
    CU_ASSERT_EQUAL(r.number[COCO_AP], -1);
    coco_result_fini(&r);
    boxes.images = 0;
    CHECK_OK(coco_evaluate(&boxes, 2, &r));
    CU_ASSERT_EQUAL(r.number[COCO_AR1], -1);
    coco_result_fini(&r);
}

static void bad_input(void)
{
    TruthBox truth[] = {{{10, 10, 20, 20}, 400, 17, 0, 0, false}};
    DetectedBox detected[] = {{{10, 10, 20, 20}, 0.5, 0, 0}};
    CocoBoxes boxes = {1, 2, truth, detected, 1, 1};
    CocoResult r;
    truth[0].category = 2;
    CHECK_FAILS(coco_evaluate(&boxes, 1, &r), ERR_DATA, "image 0: box 17: class 2 is not one of 2");
    truth[0].category = 0;
    truth[0].box[2] = -1;
    CHECK_FAILS(coco_evaluate(&boxes, 1, &r), ERR_DATA, "image 0: box 17: a number is not finite");
    truth[0].box[2] = 20;
    truth[0].image = 1;
    CHECK_FAILS(coco_evaluate(&boxes, 1, &r), ERR_DATA, "box 17 is of image 1");
    truth[0].image = 0;
    detected[0].score = NAN;
    CHECK_FAILS(coco_evaluate(&boxes, 1, &r), ERR_DATA, "image 0: detection 0: a number is not");
    detected[0].score = 0.5;
    detected[0].box[0] = INFINITY;
    CHECK_FAILS(coco_evaluate(&boxes, 3, &r), ERR_DATA, "image 0: detection 0: a number is not");
    detected[0].box[0] = 10;
    detected[0].image = -1;
    CHECK_FAILS(coco_evaluate(&boxes, 1, &r), ERR_DATA, "detection 0 is of image -1");
    detected[0].image = 0;
    CocoEval *eval = coco_eval_new(2);
    CHECK_OK(coco_eval_add_image(eval, 5, truth, 1, detected, 1));
    CHECK_OK(coco_eval_add_image(eval, 5, truth, 1, detected, 1));
    CHECK_FAILS(coco_eval_finish(eval, 1, &r), ERR_DATA, "image 5 was evaluated twice");
    coco_eval_free(&eval);
}

TEST_MAIN("coco_eval", {"golden", golden}, {"by hand", by_hand}, {"nothing", nothing},
          {"bad input", bad_input})
