/* onecycle: the rate rises from lr / div_factor to lr, then falls to lr / div_factor /
 * final_div_factor (Smith & Topin 2018, "Super-Convergence"). Its values are those of PyTorch's
 * OneCycleLR with two phases. The curve contains a warm-up, so optim.warmup_steps and
 * optim.warmup_epochs are refused. */
#include "curves.h"

#include <math.h>

/* Returns the rate after the fraction `part` of the way between two rates. */
static double anneal(const OptimConfig *keys, double from, double to, double part)
{
    static const double pi = 3.14159265358979323846;
    if (keys->anneal_strategy == ANNEAL_LINEAR) return from + (to - from) * part;
    return to + (from - to) / 2 * (1 + cos(pi * part));
}

static double rate(const CurveAt *at)
{
    const OptimConfig *keys = at->keys;
    const double first = keys->lr / keys->div_factor, last = first / keys->final_div_factor;
    /* top: the step with the highest rate; end: the last step; both are counted from 0 and may be
     * fractions */
    const double top = keys->pct_start * at->steps - 1, end = at->steps - 1;
    if (top > 0 && at->step <= top) return anneal(keys, first, keys->lr, at->step / top);
    return anneal(keys, keys->lr, last, fmin((at->step - top) / (end - top), 1));
}

static Status check(const Config *config)
{
    const OptimConfig *keys = &config->optim;
    if (keys->warmup_steps == 0 && keys->warmup_epochs == 0) return OK;
    return config_fail_key(config,
                           keys->warmup_steps > 0 ? "optim.warmup_steps" : "optim.warmup_epochs",
                           "onecycle rises by itself, in optim.pct_start of the steps: remove it");
}

const Curve curve_onecycle = {
    {.word = "onecycle",
     .help = "rises to lr in pct_start of the steps, then falls to lr / div_factor / "
             "final_div_factor",
     .uses = "pct_start div_factor final_div_factor anneal_strategy"},
    .if_end_moves = "the curve stretches to the new end",
    .rate = rate,
    .check = check,
};
