/* Interface of a learning-rate curve. A curve is one const Curve in its own file, curve_NAME.c, and
 * a line in the list of curves.c. */
#ifndef WEFT_OPTIM_CURVES_H
#define WEFT_OPTIM_CURVES_H

#include "rules.h"

/* A position on a curve. The pointers are borrowed for the call. */
typedef struct CurveAt {
    /* keys of section optim, with the learning rate in effect (LrState.lr) */
    const OptimConfig *keys;
    /* state of the run so far */
    const LrState *state;
    /* Amount of data since the start of the run, warm-up included. The unit is the batch of the
     * run's start, so steps_per_epoch units are an epoch. If train.steps sets the length of the
     * run, data_position differs from LrSteps.step once the batch size has changed. */
    double data_position;
    /* length of an epoch, in steps of the batch size at the start */
    int64_t steps_per_epoch;
    /* number of steps made since the end of the warm-up; may be a fraction, as in LrSteps */
    double step;
    /* number of steps from the end of the warm-up to the end of the run; may be a fraction */
    double steps;
    /* step / steps: 0 at the first step after the warm-up, 1 after the last step */
    double done;
} CurveAt;

typedef struct Curve {
    ConfigWord word;
    /* text for the log: the effect on the rate if a resumed run has another end (train.steps,
     * train.epochs), such as "the line stretches to the new end" */
    const char *if_end_moves;
    /* Returns the rate of a step after the warm-up. */
    double (*rate)(const CurveAt *at);
    /* Records the value of an evaluation after the warm-up. rises: true if larger values are
     * better. NULL if the curve does not use evaluations. */
    void (*evaluated)(const OptimConfig *keys, LrState *state, double value, bool rises);
    /* Returns ERR_CONFIG if the curve's keys contradict each other or other keys. NULL if no such
     * check is needed. */
    Status (*check)(const Config *config);
} Curve;

/* Returns curve number i of the list, or NULL after the last. */
const Curve *optim_curve_at(int i);
/* Returns ERR_BUG if a required field of the curve is not set (row_check.c). */
Status curve_check(const Curve *curve);

/* Interpolates between the rates lr and lr_end. left: fraction of the way that is left, 1 for lr
 * and 0 for lr_end. The curves compute it from CurveAt.done, which for the last of n steps is (n -
 * 1)/n, as in PyTorch's CosineAnnealingLR(T_max=n): lr_end would be the rate of the step after the
 * last. */
static inline double curve_between(const CurveAt *at, double left)
{
    return at->keys->lr_end + (at->keys->lr - at->keys->lr_end) * left;
}

#endif
