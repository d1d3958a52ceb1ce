/* Mean and deviation of numbers of any magnitude, to the last digits of a double. */
#ifndef WEFT_DATA_MOMENTS_H
#define WEFT_DATA_MOMENTS_H

/* A number as the sum of two doubles that do not overlap: 106 bits (double-double). */
typedef struct Pair {
    double high, low;
} Pair;

/* Sums of differences from the first value, so that a large mean loses no digits. All zero: no
 * value yet. */
typedef struct Moments {
    /* number of values; the first value, the smallest, the largest */
    double count, shift, min, max;
    /* sums of (x - shift) / 2^exponent, and of its square */
    int exponent;
    Pair sum, squares;
} Moments;

void moments_add(Moments *m, double x);
/* Adds the values of `more`. Joining the same parts in the same order gives the same bits. */
void moments_join(Moments *m, const Moments *more);
/* Returns the mean; 0 if there is no value. */
double moments_mean(const Moments *m);
/* Returns the root of the mean squared difference from the mean, as numpy.std does; 1 if there is
 * no value or all are equal, so that dividing by it changes nothing. */
double moments_deviation(const Moments *m);

#endif
