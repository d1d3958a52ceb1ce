/* Computes mean and deviation of numbers of any magnitude, to the last digits of a double. */
#ifndef WEFT_DATA_MOMENTS_H
#define WEFT_DATA_MOMENTS_H

/* A number as the sum of two doubles that do not overlap: 106 bits (double-double). */
typedef struct Pair {
    double high, low;
} Pair;

/* Sums of differences from the first value, so that a large mean loses no digits. If all members
 * are 0, there is no value yet. */
typedef struct Moments {
    /* number of values */
    double count;
    /* the first value */
    double shift;
    /* the smallest and the largest value */
    double min, max;
    /* scale of the differences: d = (x - shift) / 2^exponent */
    int exponent;
    /* sum of d */
    Pair sum;
    /* sum of d^2 */
    Pair squares;
} Moments;

void moments_add(Moments *m, double x);
/* Adds the values of `more`. The result has the same bits whenever the same parts are joined in the
 * same order. */
void moments_join(Moments *m, const Moments *more);
/* Returns the mean; 0 if there is no value. */
double moments_mean(const Moments *m);
/* Returns the root of the mean squared difference from the mean, as numpy.std does; 1 if there is
 * no value or all are equal, so that dividing by it changes nothing. */
double moments_deviation(const Moments *m);

#endif
