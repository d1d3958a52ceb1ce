/* plateau: the rate is multiplied by gamma when more than `patience` evaluations in a row were no
 * better than the best one; it does not fall below lr_end. The curve is PyTorch's ReduceLROnPlateau
 * with threshold_mode rel, without cooldown and eps. The rate is a pure function of the evaluations
 * so far, of which LrState keeps the best value and two counts. */
#include "curves.h"

#include <math.h>

static bool is_better(const OptimConfig *keys, double value, double best, bool rises)
{
    if (isnan(best)) return !isnan(value);
    return rises ? value > best * (1 + keys->threshold) : value < best * (1 - keys->threshold);
}

static void evaluated(const OptimConfig *keys, LrState *state, double value, bool rises)
{
    if (is_better(keys, value, state->best, rises)) {
        state->best = value;
        state->bad_evaluations = 0;
    } else if (++state->bad_evaluations > keys->patience) {
        state->bad_evaluations = 0;
        ++state->falls;
    }
}

/* Multiplies by gamma once for each fall, since a power of gamma could round differently. */
static double rate(const CurveAt *at)
{
    double lr = at->keys->lr;
    for (int64_t i = 0; i < at->state->falls && lr > at->keys->lr_end; ++i)
        lr = fmax(lr * at->keys->gamma, at->keys->lr_end);
    return lr;
}

static Status check(const Config *config)
{
    const OptimConfig *keys = &config->optim;
    if (keys->gamma >= 1)
        return config_fail_key(config, "optim.gamma",
                               "with optim.lr_schedule: plateau must be below 1: the rate falls");
    if (keys->lr_end > keys->lr)
        return config_fail_key(config, "optim.lr_end", "is above optim.lr (%g)", keys->lr);
    return OK;
}

const Curve curve_plateau = {
    {.word = "plateau",
     .help = "is multiplied by gamma when evaluations stop improving",
     .uses = "gamma patience threshold lr_end"},
    .if_end_moves = "the learning rate still depends on evaluations only",
    .rate = rate,
    .evaluated = evaluated,
    .check = check,
};
