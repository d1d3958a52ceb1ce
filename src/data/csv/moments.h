/* Mean and deviation of numbers of any magnitude, to the last digits of a double. */
#ifndef WEFT_DATA_MOMENTS_H
#define WEFT_DATA_MOMENTS_H

/* A number as the sum of two doubles that do not overlap: 106 bits (double-double). */
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
/* Adds the values of `more`. The result has the same bits if the same parts are joined in the same
 * order. */
void moments_join(Moments *m, const Moments *more);
double moments_mean(const Moments *m);
/* Returns the root of the mean square about the mean, like numpy.std; 1 if all values are equal, so
 * that dividing by it is harmless. */
double moments_deviation(const Moments *m);

#endif
