/* The learning rate of a step: warm-up, then a curve. A curve is a row: its word, and the rate
 * after the warm-up. */
#include "curves.h"

#include <math.h>

static double constant(const CurveAt *at)
{
    return at->is->lr;
}

/* Multiplies by gamma for each milestone passed; milestones are in epochs from the beginning. */
static double multistep(const CurveAt *at)
{
    double lr = at->is->lr;
    for (int i = 0; i < at->is->milestones.count; ++i)
        if (at->data_step >=
            (double)llround(at->is->milestones.value[i] * (double)at->steps_per_epoch))
            lr *= at->is->gamma;
    return lr;
}

/* Interpolates between lr_end and lr. left: 1 at the first step after the warm-up, 0 at the step
 * after the last: the last of n steps has 1/n of the way left, as in PyTorch's
 * CosineAnnealingLR(T_max=n). */
static double between(const CurveAt *at, double left)
{
    return at->is->lr_end + (at->is->lr - at->is->lr_end) * left;
}

/* Loshchilov & Hutter 2017, "SGDR", without restarts. */
static double cosine(const CurveAt *at)
{
    static const double pi = 3.14159265358979323846;
    return between(at, 0.5 * (1 + cos(pi * at->done)));
}

static double linear(const CurveAt *at)
{
    return between(at, 1 - at->done);
}

static double polynomial(const CurveAt *at)
{
    return between(at, pow(1 - at->done, at->is->power));
}

static const Curve curve_constant = {{.word = "constant", .help = "stays"},
                                     .longer = "the learning rate stays as it is",
                                     .rate = constant};
static const Curve curve_multistep = {
    {.word = "multistep", .help = "falls by gamma at milestones", .uses = "milestones gamma"},
    .longer = "the learning rate falls at its milestones, as before",
    .rate = multistep};
static const Curve curve_cosine = {
    {.word = "cosine", .help = "half a cosine towards lr_end", .uses = "lr_end"},
    .longer = "the cosine stretches to the new end",
    .rate = cosine};
static const Curve curve_linear = {
    {.word = "linear", .help = "a line towards lr_end", .uses = "lr_end"},
    .longer = "the line stretches to the new end",
    .rate = linear};
static const Curve curve_polynomial = {
    {.word = "polynomial", .help = "(what is left)^power, towards lr_end", .uses = "lr_end power"},
    .longer = "the curve stretches to the new end",
    .rate = polynomial};

/* in the order of the help, the default first */
static const Curve *const curves[] = {&curve_constant, &curve_multistep,  &curve_cosine,
                                      &curve_linear,   &curve_polynomial, &curve_plateau};
enum { CURVE_COUNT = sizeof curves / sizeof curves[0] };

ConfigWord optim_curve_word(int i)
{
    return i < CURVE_COUNT ? curves[i]->word : (ConfigWord){0};
}

static int64_t warmup_steps(const OptimConfig *is, int64_t steps_per_epoch)
{
    if (is->warmup_steps > 0) return is->warmup_steps;
    return llround(is->warmup_epochs * (double)steps_per_epoch);
}

LrState lr_state(void)
{
    return (LrState){.best = NAN};
}

double lr_base(const Config *config, const LrState *state)
{
    return state->lr > 0 ? state->lr : config->optim.lr;
}

const char *lr_longer_text(const Config *config)
{
    return curves[config->optim.lr_schedule]->longer;
}

bool lr_by_evaluations(const Config *config)
{
    return curves[config->optim.lr_schedule]->evaluated != NULL;
}

Status lr_check(const Config *config)
{
    const Curve *curve = curves[config->optim.lr_schedule];
    return curve->check ? curve->check(config) : OK;
}

void lr_evaluated(const Config *config, LrState *state, const LrSteps *at, double value, bool rises)
{
    const OptimConfig *is = &config->optim;
    const Curve *curve = curves[is->lr_schedule];
    if (curve->evaluated && at->step >= (double)warmup_steps(is, at->steps_per_epoch))
        curve->evaluated(is, state, value, rises);
}

double lr_at(const Config *config, const LrState *state, const LrSteps *of)
{
    OptimConfig is = config->optim;
    if (state->lr > 0) {
        is.lr_end *= state->lr / is.lr;
        is.lr = state->lr;
    }
    double warmup = (double)warmup_steps(&is, of->steps_per_epoch), left = of->steps - warmup;
    if (of->step < warmup) return is.lr * fmin(of->step + 1, warmup) / warmup;
    double done = left > 0 ? (of->step - warmup) / left : 1;
    CurveAt at = {&is, state, of->step + of->data_ahead, of->steps_per_epoch, done > 1 ? 1 : done};
    return curves[is.lr_schedule]->rate(&at);
}
