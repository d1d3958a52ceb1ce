/* Softmax of one row of logits, and the gradient of its loss. The row is processed in pieces that
 * fit the L1 cache, with a running maximum (Milakov & Gimelshein 2018), so that even a row as wide
 * as a vocabulary is read from memory only once. */
#include "vector.h"

enum { PIECE = 2048 };

/* Returns the first index of `value` in x, or n if x does not contain it. */
static int64_t place_of(const float *x, int64_t n, float value)
{
    for (int64_t i = 0; i < n; ++i)
        if (x[i] == value) return i;
    return n;
}

/* Loops over one piece are separate functions: if they were inlined, GCC would split the loop over
 * pieces in two, and not vectorise the inner loops of the second half. */
#define NOT_INLINED static __attribute__((noinline))

/* Returns the sum of x. Sets *top to the maximum of x if that is larger. */
NOT_INLINED float sum_top(const float *x, int64_t n, float *top)
{
    float high = *top, sum = 0.0f;
#pragma omp simd reduction(max : high) reduction(+ : sum)
    for (int64_t i = 0; i < n; ++i) {
        high = x[i] > high ? x[i] : high;
        sum += x[i];
    }
    *top = high;
    return sum;
}

/* Returns the number of logits in x that rank above the label's: larger ones, and equal ones of a
 * lower index. x is a piece of a row and begins at the row's index `first`; `label` is an index of
 * the row. If the label's logit is NaN, all other logits count. */
NOT_INLINED int label_rank_in(const float *x, int64_t n, int64_t first, int label,
                              float label_logit)
{
    int label_rank = 0;
    int64_t before = label < first ? 0 : label - first < n ? label - first : n;
    int64_t after = label < first ? 0 : before + 1;
#pragma omp simd reduction(+ : label_rank)
    for (int64_t i = 0; i < before; ++i) label_rank += !(x[i] < label_logit);
#pragma omp simd reduction(+ : label_rank)
    for (int64_t i = after; i < n; ++i) label_rank += !(x[i] <= label_logit);
    return label_rank;
}

NOT_INLINED float exp_sum(const float *x, int64_t n, float top)
{
    float sum = 0.0f;
#pragma omp simd reduction(+ : sum)
    for (int64_t i = 0; i < n; ++i) sum += exp_fast(x[i] - top);
    return sum;
}

SoftmaxRow SIMD_NAME(softmax)(const void *logits, int64_t n, int label)
{
    const Elem *x = logits;
    SoftmaxRow row = {.argmax = 0, .label_logit = value_of(x[label])};
    float top = -INFINITY, total = 0.0f, sum = 0.0f, room[PIECE];
    for (int64_t at = 0; at < n; at += PIECE) {
        int64_t count = n - at < PIECE ? n - at : PIECE;
        const float *piece = floats_of(x + at, count, room);
        float high = top, plain = sum_top(piece, count, &high);
        if (high > top) {
            total *= expf(top - high);
            top = high;
            row.argmax = (int)(at + place_of(piece, count, high));
        }
        row.label_rank += label_rank_in(piece, count, at, label, row.label_logit);
        /* all logits up to the end of this piece are -infinity, and the piece has no NaN */
        const bool masked = top == -INFINITY && plain == plain;
        if (!masked) total += exp_sum(piece, count, top);
        sum += plain;
    }
    row.lse = top + logf(total);
    row.sum = sum;
    return row;
}

int SIMD_NAME(softmax_label_rank)(const void *logits, int64_t n, int label, float label_logit)
{
    const Elem *x = logits;
    float room[PIECE];
    int label_rank = 0;
    for (int64_t at = 0; at < n; at += PIECE) {
        int64_t count = n - at < PIECE ? n - at : PIECE;
        label_rank += label_rank_in(floats_of(x + at, count, room), count, at, label, label_logit);
    }
    return label_rank;
}

void SIMD_NAME(softmax_grad)(const SoftmaxGrad *args)
{
    const SoftmaxGrad a = *args;
    const Elem *x = a.x;
    Elem *dx = a.dx;
    const float label_logit = a.label < 0 ? 0 : value_of(x[a.label]), other = value_of(x[a.other]);
    const int64_t n = a.n;
    /* separate loops, because a compiler may compute 0 - base as -base, which is -0 if base is 0 */
    if (a.base == 0) {
        EACH(dx, a.scale * exp_fast(value_of(x[i]) - a.lse))
    } else {
        EACH(dx, a.scale * (exp_fast(value_of(x[i]) - a.lse) - a.base))
    }
    if (a.label >= 0)
        dx[a.label] = elem_of(a.scale * (exp_fast(label_logit - a.lse) - a.base) - a.hit);
    if (a.hit_other == 0) return;
    const float hit = a.other == a.label ? a.hit + a.hit_other : a.hit_other;
    dx[a.other] = elem_of(a.scale * (exp_fast(other - a.lse) - a.base) - hit);
}
