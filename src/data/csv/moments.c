/* Computes mean and deviation from sums of x - shift and of its square, in double-double arithmetic
 * (Dekker 1971; the sum of two doubles and its error: Knuth, TAOCP 2, 4.2.2). The variance is the
 * mean of squares minus the square of the mean. This subtraction loses digits if the mean of x -
 * shift is much larger than the deviation; but shift is one of the n values, so the square of this
 * mean is at most n times the variance, and 106 bits are enough. Differences whose squares would
 * overflow or underflow are multiplied by a power of 2 first. */
#include "moments.h"

#include <math.h>
#include <stdbool.h>

/* Squares and products of numbers from 2^-RANGE to 2^RANGE are representable as doubles, and so are
 * their rounding errors. */
enum { RANGE = 400 };

/* Returns a + b exactly: high is the rounded sum, low the rounding error. Requires |a| >= |b|, or
 * that a is 0. */
static Pair pair_sum_ordered(double a, double b)
{
    double high = a + b;
    return (Pair){high, b - (high - a)};
}

/* Returns a + b exactly, for any a and b. */
static Pair pair_sum(double a, double b)
{
    double high = a + b, rounded_b = high - a;
    return (Pair){high, (a - (high - rounded_b)) + (b - rounded_b)};
}

static Pair pair_add(Pair a, Pair b)
{
    Pair high = pair_sum(a.high, b.high), low = pair_sum(a.low, b.low);
    high = pair_sum_ordered(high.high, high.low + low.high);
    return pair_sum_ordered(high.high, high.low + low.low);
}

static Pair pair_multiply(Pair a, Pair b)
{
    double high = a.high * b.high, low = fma(a.high, b.high, -high);
    return pair_sum_ordered(high, low + (a.high * b.low + a.low * b.high));
}

static Pair pair_divide(Pair a, double b)
{
    double quotient = a.high / b;
    Pair minus_product = pair_multiply((Pair){-quotient, 0}, (Pair){b, 0});
    Pair remainder = pair_add(a, minus_product);
    return pair_sum_ordered(quotient, (remainder.high + remainder.low) / b);
}

/* Returns the exponent (Moments.exponent) with which a difference of this size can be squared; 0:
 * it needs no scaling. */
static int exponent_for(double difference)
{
    int exponent = isfinite(difference) ? ilogb(difference) : 1024;
    return exponent >= -RANGE && exponent <= RANGE ? 0 : exponent;
}

/* Computes a * 2^exponent. */
static Pair pair_scale(Pair a, int exponent)
{
    return exponent == 0 ? a : (Pair){ldexp(a.high, exponent), ldexp(a.low, exponent)};
}

/* Changes the exponent of the sums. Sums that underflow are negligible against the differences that
 * need the new exponent. */
static void moments_scale(Moments *m, int exponent)
{
    m->sum = pair_scale(m->sum, m->exponent - exponent);
    m->squares = pair_scale(m->squares, 2 * (m->exponent - exponent));
    m->exponent = exponent;
}

/* Returns whether two values differ, so that the sum of squares is not 0. */
static bool moments_differ(const Moments *m)
{
    return m->min != m->max;
}

/* Computes (x - shift) / 2^exponent. */
static Pair difference(double x, double shift, int exponent)
{
    if (exponent == 0) return pair_sum(x, -shift);
    return pair_sum(ldexp(x, -exponent), -ldexp(shift, -exponent));
}

void moments_add(Moments *m, double x)
{
    if (m->count == 0) m->shift = m->min = m->max = x;
    if (x != m->shift) {
        int exponent = exponent_for(x - m->shift);
        if (!moments_differ(m) || exponent > m->exponent + RANGE) moments_scale(m, exponent);
    }
    Pair d = difference(x, m->shift, m->exponent);
    m->count += 1;
    m->min = fmin(m->min, x);
    m->max = fmax(m->max, x);
    m->sum = pair_add(m->sum, d);
    m->squares = pair_add(m->squares, pair_multiply(d, d));
}

/* Returns an exponent for the joined sums: the larger exponent of the sums that are not 0, or the
 * exponent of the difference of the shifts if this difference is much larger. */
static int joined_exponent(const Moments *m, const Moments *other)
{
    bool known = moments_differ(m), shifts_differ = m->shift != other->shift;
    int exponent = m->exponent;
    if (moments_differ(other) && (!known || other->exponent > exponent))
        exponent = other->exponent, known = true;
    int between = shifts_differ ? exponent_for(other->shift - m->shift) : exponent;
    if (shifts_differ && (!known || between > exponent + RANGE)) exponent = between;
    return exponent;
}

/* Converts the sums of `more`, whose shift is t, to the shift s of m. With d = t - s:
 *
 *     sum of (x - s)   = sum of (x - t) + n d
 *     sum of (x - s)^2 = sum of (x - t)^2 + 2 d sum of (x - t) + n d^2
 */
void moments_join(Moments *m, const Moments *more)
{
    Moments other = *more;
    if (other.count == 0) return;
    if (m->count == 0) {
        *m = other;
        return;
    }
    int exponent = joined_exponent(m, &other);
    moments_scale(m, exponent);
    moments_scale(&other, exponent);
    Pair n = {other.count, 0}, d = difference(other.shift, m->shift, exponent);
    Pair nd = pair_multiply(n, d), twice = {2 * other.sum.high, 2 * other.sum.low};
    m->squares = pair_add(m->squares, other.squares);
    m->squares = pair_add(m->squares, pair_multiply(d, pair_add(twice, nd)));
    m->sum = pair_add(m->sum, pair_add(other.sum, nd));
    m->count += other.count;
    m->min = fmin(m->min, other.min);
    m->max = fmax(m->max, other.max);
}

double moments_mean(const Moments *m)
{
    if (m->count == 0) return 0;
    Pair mean = pair_scale(pair_divide(m->sum, m->count), m->exponent);
    mean = pair_add((Pair){m->shift, 0}, mean);
    return mean.high + mean.low;
}

double moments_deviation(const Moments *m)
{
    if (m->count == 0 || m->min == m->max) return 1;
    Pair mean = pair_divide(m->sum, m->count), squares = pair_divide(m->squares, m->count);
    Pair square = pair_multiply(mean, mean);
    Pair variance = pair_add(squares, (Pair){-square.high, -square.low});
    return variance.high > 0 ? ldexp(sqrt(variance.high + variance.low), m->exponent) : 1;
}
