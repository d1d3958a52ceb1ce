/* Sums of x - shift and of its square in double-double arithmetic (Dekker 1971; the sum of two
 * doubles and its error: Knuth, TAOCP 2, 4.2.2). The variance is the mean of squares minus the
 * square of the mean, which loses digits if the mean is larger than the deviation; but shift is one
 * of the values, so its square is at most n times the variance, and a pair has digits to spare.
 * Differences whose squares would over- or underflow are first multiplied by a power of 2. */
#include "moments.h"

#include <math.h>
#include <stdbool.h>

/* Squares and products of numbers from 2^-RANGE to 2^RANGE are representable as doubles, and so are
 * their rounding errors. */
enum { RANGE = 400 };

/* Returns the sum: high is rounded, low the rounding error. |a| >= |b|, or a is 0. */
static Pair pair_of_ordered(double a, double b)
{
    double high = a + b;
    return (Pair){high, b - (high - a)};
}

static Pair pair_of_sum(double a, double b)
{
    double high = a + b, back = high - a;
    return (Pair){high, (a - (high - back)) + (b - back)};
}

static Pair pair_add(Pair a, Pair b)
{
    Pair high = pair_of_sum(a.high, b.high), low = pair_of_sum(a.low, b.low);
    high = pair_of_ordered(high.high, high.low + low.high);
    return pair_of_ordered(high.high, high.low + low.low);
}

static Pair pair_multiply(Pair a, Pair b)
{
    double high = a.high * b.high, low = fma(a.high, b.high, -high);
    return pair_of_ordered(high, low + (a.high * b.low + a.low * b.high));
}

static Pair pair_divide(Pair a, double b)
{
    double first = a.high / b;
    Pair back = pair_multiply((Pair){-first, 0}, (Pair){b, 0}), rest = pair_add(a, back);
    return pair_of_ordered(first, (rest.high + rest.low) / b);
}

/* Returns the exponent for sums of differences of this size; 0 if no scaling is needed. */
static int exponent_for(double difference)
{
    int exponent = isfinite(difference) ? ilogb(difference) : 1024;
    return exponent >= -RANGE && exponent <= RANGE ? 0 : exponent;
}

static Pair pair_scaled(Pair a, int exponent)
{
    return exponent == 0 ? a : (Pair){ldexp(a.high, exponent), ldexp(a.low, exponent)};
}

/* Changes the exponent of the sums. Sums that underflow are negligible against the values to
 * come. */
static void moments_scale(Moments *m, int exponent)
{
    m->sum = pair_scaled(m->sum, m->exponent - exponent);
    m->squares = pair_scaled(m->squares, 2 * (m->exponent - exponent));
    m->exponent = exponent;
}

static bool moments_spread(const Moments *m)
{
    return m->least != m->most;
}

/* Computes (x - shift) / 2^exponent. */
static Pair difference(double x, double shift, int exponent)
{
    if (exponent == 0) return pair_of_sum(x, -shift);
    return pair_of_sum(ldexp(x, -exponent), -ldexp(shift, -exponent));
}

void moments_add(Moments *m, double x)
{
    if (m->count == 0) m->shift = m->least = m->most = x;
    if (x != m->shift) {
        int exponent = exponent_for(x - m->shift);
        if (!moments_spread(m) || exponent > m->exponent + RANGE) moments_scale(m, exponent);
    }
    Pair d = difference(x, m->shift, m->exponent);
    m->count += 1;
    m->least = fmin(m->least, x);
    m->most = fmax(m->most, x);
    m->sum = pair_add(m->sum, d);
    m->squares = pair_add(m->squares, pair_multiply(d, d));
}

/* Returns an exponent for the sums of both, whose shifts may be further apart than their values. */
static int exponent_of_both(const Moments *m, const Moments *other)
{
    bool known = moments_spread(m), apart = m->shift != other->shift;
    int exponent = m->exponent;
    if (moments_spread(other) && (!known || other->exponent > exponent))
        exponent = other->exponent, known = true;
    int between = apart ? exponent_for(other->shift - m->shift) : exponent;
    if (apart && (!known || between > exponent + RANGE)) exponent = between;
    return exponent;
}

/* Uses sum of (x - s)^2 = sum of (x - t)^2 + 2 d sum of (x - t) + n d^2, with d = t - s. */
void moments_join(Moments *m, const Moments *more)
{
    Moments other = *more;
    if (other.count == 0) return;
    if (m->count == 0) {
        *m = other;
        return;
    }
    int exponent = exponent_of_both(m, &other);
    moments_scale(m, exponent);
    moments_scale(&other, exponent);
    Pair n = {other.count, 0}, d = difference(other.shift, m->shift, exponent);
    Pair moved = pair_multiply(n, d), twice = {2 * other.sum.high, 2 * other.sum.low};
    m->squares = pair_add(m->squares, other.squares);
    m->squares = pair_add(m->squares, pair_multiply(d, pair_add(twice, moved)));
    m->sum = pair_add(m->sum, pair_add(other.sum, moved));
    m->count += other.count;
    m->least = fmin(m->least, other.least);
    m->most = fmax(m->most, other.most);
}

double moments_mean(const Moments *m)
{
    if (m->count == 0) return 0;
    Pair mean = pair_scaled(pair_divide(m->sum, m->count), m->exponent);
    mean = pair_add((Pair){m->shift, 0}, mean);
    return mean.high + mean.low;
}

double moments_deviation(const Moments *m)
{
    if (m->count == 0 || m->least == m->most) return 1;
    Pair mean = pair_divide(m->sum, m->count), squares = pair_divide(m->squares, m->count);
    Pair square = pair_multiply(mean, mean);
    Pair variance = pair_add(squares, (Pair){-square.high, -square.low});
    return variance.high > 0 ? ldexp(sqrt(variance.high + variance.low), m->exponent) : 1;
}
