/* Interface of a learning-rate curve: one const Curve in its own file, curve_NAME.c, and one line
 * in the list of curves.c. */
#ifndef WEFT_OPTIM_CURVES_H
#define WEFT_OPTIM_CURVES_H

#include "rules.h"

typedef struct CurveAt {
    /* keys of optim, with the learning rate in effect */
    const OptimConfig *keys;
    /* state of the run so far */
    const LrState *state;
    /* Amount of data since the start of the run, warm-up included. One unit is as many samples as
     * the run's first batch had; steps_per_epoch units are an epoch. If train.steps sets the length
     * of the run, data_position differs from LrSteps.step once the batch size has changed. */
    double data_position;
    int64_t steps_per_epoch;
    /* steps made since the end of warm-up, and steps from there to the end of the run; both may be
     * fractions, as in LrSteps */
    double step, steps;
    /* fraction of the curve: 0 at the end of warm-up, 1 after the last step */
    double done;
} CurveAt;

typedef struct Curve {
    ConfigWord word;
    /* Effect on the rate if a resumed run has another end (train.steps, train.epochs), for the log:
     * "the line stretches to the new end". */
    const char *if_end_moves;
    /* rate after the warm-up */
    double (*rate)(const CurveAt *at);
    /* Records the value of an evaluation after the warm-up; rises: larger values are better. NULL
     * if the curve does not use evaluations. */
    void (*evaluated)(const OptimConfig *keys, LrState *state, double value, bool rises);
    /* ERR_CONFIG if the curve's keys contradict each other; NULL if they cannot */
    Status (*check)(const Config *config);
} Curve;

/* Curve number i of the list, or NULL after the last. */
const Curve *optim_curve_at(int i);
/* ERR_BUG if a required field of the curve is not set; in row_check.c. */
Status curve_check(const Curve *curve);

/* Interpolates between optim.lr (left 1) and optim.lr_end (left 0). left is 1 at the first step
 * after the warm-up and 0 at the step after the last, which is not made: the last of n steps has
 * `done` (n - 1)/n, as in PyTorch's CosineAnnealingLR(T_max=n). */
static inline double curve_between(const CurveAt *at, double left)
{
    return at->keys->lr_end + (at->keys->lr - at->keys->lr_end) * left;
}

#endif
