/* plateau: the rate falls by gamma, down to lr_end, when evaluations have not improved for a while.
 * As PyTorch's ReduceLROnPlateau with threshold_mode rel, without cooldown and eps. A pure function
 * of the evaluations, which LrState summarizes. */
#include "curves.h"

#include <math.h>

static bool better(const OptimConfig *is, double value, double best, bool rises)
{
    if (isnan(best)) return !isnan(value);
    return rises ? value > best * (1 + is->threshold) : value < best * (1 - is->threshold);
}

static void evaluated(const OptimConfig *is, LrState *state, double value, bool rises)
{
    if (better(is, value, state->best, rises)) {
        state->best = value;
        state->bad = 0;
    } else if (++state->bad > is->patience) {
        state->bad = 0;
        ++state->falls;
    }
}

/* Multiplies once per fall, in the same order as they happened. */
static double rate(const CurveAt *at)
{
    double lr = at->is->lr;
    for (int64_t i = 0; i < at->state->falls && lr > at->is->lr_end; ++i)
        lr = fmax(lr * at->is->gamma, at->is->lr_end);
    return lr;
}

static Status check(const Config *config)
{
    const OptimConfig *is = &config->optim;
    if (is->gamma >= 1)
        return config_fail_key(config, "optim.gamma",
                               "with optim.lr_schedule: plateau must be below 1: the rate falls");
    if (is->lr_end > is->lr)
        return config_fail_key(config, "optim.lr_end", "is above optim.lr (%g)", is->lr);
    return OK;
}

const Curve curve_plateau = {
    {.word = "plateau",
     .help = "falls by gamma when evaluations stop improving",
     .uses = "gamma patience threshold lr_end"},
    .longer = "the learning rate goes by evaluations, as before",
    .rate = rate,
    .evaluated = evaluated,
    .check = check,
};
