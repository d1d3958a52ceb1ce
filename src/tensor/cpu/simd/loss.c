/* Losses of one row. The softmax goes over a row in pieces that stay in the first-level cache, with a running maximum
 * (Milakov & Gimelshein 2018), so that even a vocabulary's row is read from memory once. */
#include "vector.h"

enum { PIECE = 2048 };

/* The first place of `value` in x, or n. */
static int64_t place_of(const float *x, int64_t n, float value)
{
    for (int64_t i = 0; i < n; ++i)
        if (x[i] == value) return i;
    return n;
}

/* The loops over one piece are functions of their own: in a loop over pieces that GCC cuts in two, the second half's
 * inner loops are scalar. */
#define APART static __attribute__((noinline))

/* The sum of x; *top rises to its maximum. */
APART float sum_top(const float *x, int64_t n, float *top)
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

/* Logits that beat the label's: larger, or equal and earlier. A label that is NaN is beaten by all. */
APART int beats_in(const float *x, int64_t n, int64_t first, int label, float truth)
{
    int beats = 0;
    int64_t before = label < first ? 0 : label - first < n ? label - first : n;
    int64_t after = label < first ? 0 : before + 1;
#pragma omp simd reduction(+ : beats)
    for (int64_t i = 0; i < before; ++i) beats += !(x[i] < truth);
#pragma omp simd reduction(+ : beats)
    for (int64_t i = after; i < n; ++i) beats += !(x[i] <= truth);
    return beats;
}

APART float exp_sum(const float *x, int64_t n, float top)
{
    float sum = 0.0f;
#pragma omp simd reduction(+ : sum)
    for (int64_t i = 0; i < n; ++i) sum += exp_fast(x[i] - top);
    return sum;
}

SoftmaxRow SIMD_NAME(softmax)(const float *x, int64_t n, int label)
{
    SoftmaxRow row = {.argmax = 0};
    float top = -INFINITY, total = 0.0f, sum = 0.0f;
    for (int64_t at = 0; at < n; at += PIECE) {
        const float *piece = x + at;
        int64_t count = n - at < PIECE ? n - at : PIECE;
        float high = top, plain = sum_top(piece, count, &high);
        if (high > top) {
            total *= expf(top - high);
            top = high;
            row.argmax = (int)(at + place_of(piece, count, high));
        }
        row.beats += beats_in(piece, count, at, label, x[label]);
        const bool masked = top == -INFINITY && plain == plain; /* nothing but -inf so far */
        if (!masked) total += exp_sum(piece, count, top);
        sum += plain;
    }
    row.lse = top + logf(total);
    row.sum = sum;
    return row;
}

/* dx may be x. */
void SIMD_NAME(softmax_grad)(float *dx, const float *x, int64_t n, float lse, float scale,
                             float base)
{
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) dx[i] = scale * (exp_fast(x[i] - lse) - base);
}

double SIMD_NAME(squared_error)(const float *x, const float *target, int64_t n)
{
    double total = 0.0;
    for (int64_t at = 0; at < n; at += PIECE) {
        int64_t end = n - at < PIECE ? n : at + PIECE;
        float part = 0.0f;
#pragma omp simd reduction(+ : part)
        for (int64_t i = at; i < end; ++i) part += (x[i] - target[i]) * (x[i] - target[i]);
        total += part;
    }
    return total;
}

void SIMD_NAME(scaled_difference)(float *out, const float *a, const float *b, float scale,
                                  int64_t n)
{
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) out[i] = scale * (a[i] - b[i]);
}
