/* Mean and deviation of numbers of any magnitude, to the last digits of a double. */
#ifndef WEFT_DATA_MOMENTS_H
#define WEFT_DATA_MOMENTS_H

/* A number as the sum of two doubles that do not overlap: 106 bits. */
typedef struct Pair {
    double high, low;
} Pair;

/* Sums about the first value, so that a large mean costs no digits. All zero: no value yet. */
typedef struct Moments {
    double count, shift, least, most;
    /* sums of (x - shift) / 2^exponent, and of its square */
    int exponent;
    Pair sum, squares;
} Moments;

void moments_add(Moments *m, double x);
/* Adds the values of `more`: the same bits for the same parts in the same order. */
void moments_join(Moments *m, const Moments *more);
double moments_mean(const Moments *m);
/* Root of the mean square about the mean, as numpy.std's. 1 where all values are the same, which
 * dividing by it then leaves as they are. */
double moments_deviation(const Moments *m);

#endif
