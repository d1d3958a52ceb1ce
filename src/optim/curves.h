/* What the files of the curves share: a curve is a row. */
#ifndef WEFT_OPTIM_CURVES_H
#define WEFT_OPTIM_CURVES_H

#include "rules.h"

typedef struct CurveAt {
    const OptimConfig *is;
    /* of the run so far */
    const LrState *state;
    /* steps since the beginning, counted by the data, warm-up included */
    double data_step;
    int64_t steps_per_epoch;
    /* 0 at the end of warm-up, 1 after the last step */
    double done;
} CurveAt;

typedef struct Curve {
    ConfigWord word;
    /* effect on the rate where the run's end is moved, in words */
    const char *longer;
    /* rate after the warm-up */
    double (*rate)(const CurveAt *at);
    /* An evaluation behind the warm-up gave that value, of which more (rises) or less is better.
     * NULL: the curve does not go by evaluations. */
    void (*evaluated)(const OptimConfig *is, LrState *state, double value, bool rises);
    /* ERR_CONFIG where its keys are of no use together; NULL: they always are */
    Status (*check)(const Config *config);
} Curve;

/* plateau.c */
extern const Curve curve_plateau;

#endif
