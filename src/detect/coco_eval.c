/* Computes the twelve numbers of COCO's evaluation from the matches of all images (coco_match.c).
 * The matches of a class are sorted by falling score, then by image, then by place in the image.
 * This order is total, so the order in which images were added changes no bit. For each range of
 * areas and each IoU threshold, the precision after each true positive is computed, made
 * monotonically falling, and read at 101 recalls. The rules are those of pycocotools' functions
 * accumulate and summarize. */
#include "coco_private.h"

#include <float.h>
#include <stdlib.h>
#include <string.h>

const char *coco_number_name(CocoNumber number)
{
    static const char *const name[COCO_NUMBERS] = {COCO_NUMBERS_LIST(LIST_NAME)};
    return name[number];
}

CocoEval *coco_eval_new(int categories)
{
    CocoEval *eval = mem_new(sizeof *eval);
    eval->categories = categories;
    eval->truths = mem_new((size_t)categories * COCO_AREAS * sizeof *eval->truths);
    eval->scratch = coco_scratch_new();
    return eval;
}

void coco_eval_free(CocoEval **eval)
{
    if (!*eval) return;
    mem_free(&(*eval)->match);
    mem_free(&(*eval)->truths);
    coco_scratch_free(&(*eval)->scratch);
    mem_free(eval);
}

void coco_eval_reserve(CocoEval *eval, int64_t more)
{
    if (eval->count + more <= eval->room) return;
    eval->room = 2 * eval->room + more;
    eval->match = mem_resize(eval->match, (size_t)eval->room * sizeof *eval->match);
}

const CocoMatch *coco_eval_matches(const CocoEval *eval, int64_t *count, const int64_t **truths)
{
    *count = eval->count;
    *truths = eval->truths;
    return eval->match;
}

void coco_eval_add_matches(CocoEval *eval, const CocoMatch *match, int64_t count,
                           const int64_t *truths)
{
    coco_eval_reserve(eval, count);
    if (count) memcpy(eval->match + eval->count, match, (size_t)count * sizeof *match);
    eval->count += count;
    for (int i = 0; i < eval->categories * COCO_AREAS; ++i) eval->truths[i] += truths[i];
}

/* ---- one class ---- */

static int by_score(const void *left, const void *right)
{
    const CocoMatch *a = left, *b = right;
    if (a->score != b->score) return a->score > b->score ? -1 : 1;
    if (a->image != b->image) return a->image < b->image ? -1 : 1;
    return a->rank_in_class < b->rank_in_class ? -1 : a->rank_in_class > b->rank_in_class;
}

/* Returns the mean of the precisions at 101 recalls. precision: precision after each true positive,
 * [found]; it is made monotonically falling here. truth_count: number of truths that count. */
static double mean_precision(double *precision, int64_t found, int64_t truth_count)
{
    double sum = 0;
    for (int64_t i = found - 1; i > 0; --i)
        if (precision[i] > precision[i - 1]) precision[i - 1] = precision[i];
    int64_t i = 0;
    for (int r = 0; r < COCO_RECALLS; ++r) {
        double recall = r == COCO_RECALLS - 1 ? 1 : r * 0.01;
        while (i < found && (double)(i + 1) / (double)truth_count < recall) ++i;
        if (i == found) break;
        sum += precision[i];
    }
    return sum / COCO_RECALLS;
}

/* Sets c->ap and c->recall for one range of areas and one threshold, from the sorted matches of the
 * class. precision: scratch memory, [count]. */
static void average_precision(CocoClass *c, const CocoMatch *match, int64_t count,
                              int64_t truth_count, int area, int threshold, double *precision)
{
    const uint64_t bit = coco_bit(area, threshold);
    int64_t found = 0, wrong = 0, found_1 = 0, found_10 = 0;
    for (int64_t i = 0; i < count; ++i) {
        if (match[i].ignored & bit) continue;
        if (!(match[i].matched & bit)) {
            ++wrong;
            continue;
        }
        ++found;
        found_1 += match[i].rank_in_class < 1;
        found_10 += match[i].rank_in_class < 10;
        precision[found - 1] = (double)found / ((double)wrong + (double)found + DBL_EPSILON);
    }
    c->ap[area][threshold] = mean_precision(precision, found, truth_count);
    c->recall[area][threshold] = (double)found / (double)truth_count;
    if (area > 0) return;
    c->recall[COCO_AREAS][threshold] = (double)found_1 / (double)truth_count;
    c->recall[COCO_AREAS + 1][threshold] = (double)found_10 / (double)truth_count;
}

/* Sorts the matches of a class and computes its result. If two matches of an image have equal score
 * and place, the image was added twice: sets *repeated_image to this image. Otherwise leaves
 * *repeated_image unchanged. truth_counts: number of truths that count in each range of areas. */
static void evaluate_class(CocoClass *c, CocoMatch *match, int64_t count,
                           const int64_t *truth_counts, int64_t *repeated_image)
{
    double *precision = mem_new((size_t)(count + 1) * sizeof *precision);
    if (count > 1) qsort(match, (size_t)count, sizeof *match, by_score);
    for (int64_t i = 1; i < count; ++i)
        if (by_score(&match[i - 1], &match[i]) == 0) *repeated_image = match[i].image;
    for (int a = 0; a < COCO_AREAS + 2; ++a)
        for (int t = 0; t < COCO_THRESHOLDS; ++t) c->recall[a][t] = -1;
    for (int a = 0; a < COCO_AREAS; ++a)
        for (int t = 0; t < COCO_THRESHOLDS; ++t) {
            c->ap[a][t] = -1;
            if (truth_counts[a] > 0)
                average_precision(c, match, count, truth_counts[a], a, t, precision);
        }
    mem_free(&precision);
}

/* ---- all classes ---- */

/* Sorts the matches by class. Returns the index of each class's first match, [categories + 1];
 * owned by the caller. */
static int64_t *sort_by_class(CocoEval *eval)
{
    size_t classes = (size_t)eval->categories;
    int64_t *begin = mem_new((classes + 1) * sizeof *begin);
    int64_t *next = mem_new((classes + 1) * sizeof *next);
    CocoMatch *sorted = mem_new((size_t)(eval->count + 1) * sizeof *sorted);
    for (int64_t i = 0; i < eval->count; ++i) ++begin[eval->match[i].category + 1];
    for (size_t c = 0; c < classes; ++c) begin[c + 1] += begin[c];
    memcpy(next, begin, (classes + 1) * sizeof *next);
    for (int64_t i = 0; i < eval->count; ++i)
        sorted[next[eval->match[i].category]++] = eval->match[i];
    mem_free(&eval->match);
    mem_free(&next);
    eval->match = sorted;
    eval->room = eval->count + 1;
    return begin;
}

/* Returns the mean of the values at thresholds `first` to `last` of all classes, without values of
 * -1; returns -1 if all values are -1. offset: offset in CocoClass, in bytes, of the row of
 * CocoClass.ap or CocoClass.recall that has the values. */
static double mean_of(const CocoClass *class, int classes, size_t offset, int first, int last)
{
    double sum = 0;
    int64_t count = 0;
    for (int c = 0; c < classes; ++c) {
        const double *value = (const double *)(const void *)((const char *)&class[c] + offset);
        for (int t = first; t <= last; ++t) {
            if (value[t] < 0) continue;
            sum += value[t];
            ++count;
        }
    }
    return count ? sum / (double)count : -1;
}

static void summarize(CocoResult *result, const CocoClass *class, const int64_t *truth_counts)
{
    const int last = COCO_THRESHOLDS - 1, classes = result->categories;
    const size_t ap_offset = offsetof(CocoClass, ap), recall_offset = offsetof(CocoClass, recall);
    const size_t row_bytes = sizeof class->ap[0];
    double *number = result->number;
    number[COCO_AP] = mean_of(class, classes, ap_offset, 0, last);
    number[COCO_AP50] = mean_of(class, classes, ap_offset, 0, 0);
    number[COCO_AP75] = mean_of(class, classes, ap_offset, 5, 5);
    number[COCO_AR100] = mean_of(class, classes, recall_offset, 0, last);
    number[COCO_AR1] = mean_of(class, classes, recall_offset + COCO_AREAS * row_bytes, 0, last);
    number[COCO_AR10] =
        mean_of(class, classes, recall_offset + (COCO_AREAS + 1) * row_bytes, 0, last);
    for (size_t a = 1; a < COCO_AREAS; ++a) {
        number[COCO_AP_SMALL + a - 1] = mean_of(class, classes, ap_offset + a * row_bytes, 0, last);
        number[COCO_AR_SMALL + a - 1] =
            mean_of(class, classes, recall_offset + a * row_bytes, 0, last);
    }
    for (int c = 0; c < classes; ++c) {
        result->ap[c] = mean_of(&class[c], 1, ap_offset, 0, last);
        result->ap50[c] = mean_of(&class[c], 1, ap_offset, 0, 0);
        result->truths[c] = truth_counts[c * COCO_AREAS];
    }
}

Status coco_eval_finish(CocoEval *eval, int threads, CocoResult *result)
{
    const int classes = eval->categories;
    const size_t n = (size_t)classes + 1;
    CocoClass *class = mem_new(n * sizeof *class);
    int64_t *begin = sort_by_class(eval), *repeated_image = mem_new(n * sizeof *repeated_image);
    *result = (CocoResult){.categories = classes,
                           .ap = mem_new(n * sizeof *result->ap),
                           .ap50 = mem_new(n * sizeof *result->ap50),
                           .truths = mem_new(n * sizeof *result->truths)};
    /* only the pragma uses `threads`, and compilers without OpenMP ignore the pragma */
    (void)threads;
#pragma omp parallel for schedule(dynamic) num_threads(threads) if (threads > 1)
    for (int c = 0; c < classes; ++c) {
        repeated_image[c] = -1;
        evaluate_class(&class[c], eval -> match + begin[c], begin[c + 1] - begin[c],
                       eval -> truths + c * COCO_AREAS, &repeated_image[c]);
    }
    Status st = OK;
    for (int c = 0; st == OK && c < classes; ++c)
        if (repeated_image[c] >= 0)
            st = fail(ERR_DATA, "image %lld was evaluated twice", (long long)repeated_image[c]);
    summarize(result, class, eval->truths);
    if (st != OK) coco_result_fini(result);
    mem_free(&repeated_image);
    mem_free(&begin);
    mem_free(&class);
    return st;
}

void coco_result_fini(CocoResult *result)
{
    mem_free(&result->ap);
    mem_free(&result->ap50);
    mem_free(&result->truths);
}
