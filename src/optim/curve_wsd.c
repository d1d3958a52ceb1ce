/* wsd: warm-up, stable, decay (Hu et al. 2024, "MiniCPM", section 4). After the warm-up the rate is
 * lr; in the last decay_fraction of the steps after the warm-up it falls to lr_end. */
#include "curves.h"

#include <math.h>

/* Returns the rate at the fraction x of the decay: 0 is its beginning, 1 its end. */
static double decayed(const CurveAt *at, double x)
{
    static const double pi = 3.14159265358979323846;
    switch ((DecayShape)at->keys->decay_shape) {
    case DECAY_COSINE:
        return curve_between(at, 0.5 * (1 + cos(pi * x)));
    case DECAY_SQRT:
        return curve_between(at, 1 - sqrt(x));
    case DECAY_EXPONENTIAL:
        return at->keys->lr * pow(at->keys->lr_end / at->keys->lr, x);
    default:
        return curve_between(at, 1 - x);
    }
}

static double rate(const CurveAt *at)
{
    const double fraction = at->keys->decay_fraction, x = (at->done - (1 - fraction)) / fraction;
    return x > 0 ? decayed(at, x) : at->keys->lr;
}

static Status check(const Config *config)
{
    const OptimConfig *keys = &config->optim;
    if (keys->decay_shape != DECAY_EXPONENTIAL || keys->lr_end > 0) return OK;
    return config_fail_key(config, "optim.lr_end",
                           "is 0, which decay_shape exponential never reaches: set it, for example "
                           "to optim.lr / 10");
}

const Curve curve_wsd = {
    {.word = "wsd",
     .help = "is constant, then falls to lr_end in the last decay_fraction of the steps",
     .uses = "lr_end decay_fraction decay_shape"},
    .if_end_moves = "the decay moves with the end",
    .rate = rate,
    .check = check,
};
