/* Computes the learning rate of a step: first the warm-up, then a curve. The list below has the
 * curves in the order of the help, the default first. A new curve needs a file with its Curve, and
 * a line in the list. */
#include "curves.h"

#include <math.h>

/* clang-format off: one curve on each line; a new one goes above the last line */
#define CURVES(_)                                                                                  \
    _(constant)                                                                                    \
    _(multistep)                                                                                   \
    _(wsd)                                                                                         \
    _(onecycle)                                                                                    \
    _(cosine)                                                                                      \
    _(linear)                                                                                      \
    _(polynomial)                                                                                  \
    _(plateau)
/* clang-format on */

#define DECLARE(name) extern const Curve curve_##name;
#define ENTRY(name)   &curve_##name,

CURVES(DECLARE)
static const Curve *const curves[] = {CURVES(ENTRY)};
enum { CURVE_COUNT = sizeof curves / sizeof curves[0] };

const Curve *optim_curve_at(int i)
{
    return i < CURVE_COUNT ? curves[i] : NULL;
}

ConfigWord optim_curve_word(int i)
{
    return i < CURVE_COUNT ? curves[i]->word : (ConfigWord){0};
}

static int64_t warmup_steps(const OptimConfig *keys, int64_t steps_per_epoch)
{
    if (keys->warmup_steps > 0) return keys->warmup_steps;
    return llround(keys->warmup_epochs * (double)steps_per_epoch);
}

LrState lr_state_initial(void)
{
    return (LrState){.best = NAN};
}

double lr_base(const Config *config, const LrState *state)
{
    return state->lr > 0 ? state->lr : config->optim.lr;
}

const char *lr_text_if_end_moves(const Config *config)
{
    return curves[config->optim.lr_schedule]->if_end_moves;
}

bool lr_depends_on_evaluations(const Config *config)
{
    return curves[config->optim.lr_schedule]->evaluated != NULL;
}

Status lr_check(const Config *config)
{
    const Curve *curve = curves[config->optim.lr_schedule];
    return curve->check ? curve->check(config) : OK;
}

void lr_evaluated(const Config *config, LrState *state, const LrSteps *at, double value,
                  bool larger_is_better)
{
    const OptimConfig *keys = &config->optim;
    const Curve *curve = curves[keys->lr_schedule];
    if (curve->evaluated && at->step >= (double)warmup_steps(keys, at->steps_per_epoch))
        curve->evaluated(keys, state, value, larger_is_better);
}

/* Returns the keys of section optim with lr replaced by the learning rate in effect (LrState.lr).
 * lr_end and warmup_bias_lr are scaled in proportion. */
static OptimConfig keys_in_effect(const Config *config, const LrState *state)
{
    OptimConfig keys = config->optim;
    if (state->lr > 0) {
        keys.lr_end *= state->lr / keys.lr;
        keys.warmup_bias_lr *= state->lr / keys.lr;
        keys.lr = state->lr;
    }
    return keys;
}

Status warmup_check(const Config *config)
{
    const OptimConfig *keys = &config->optim;
    const bool momentum = keys->warmup_momentum > 0;
    bool has_momentum = !momentum;
    if (!momentum && keys->warmup_bias_lr < 0) return OK;
    if (keys->warmup_steps == 0 && keys->warmup_epochs == 0)
        return config_fail_key(config, momentum ? "optim.warmup_momentum" : "optim.warmup_bias_lr",
                               "has an effect during a warm-up only: set optim.warmup_steps or "
                               "optim.warmup_epochs");
    for (int i = 0; i < optim_rule_count(config); ++i) {
        const OptimRule rule = optim_rule(config, i);
        has_momentum = has_momentum || optim_momentum_at(&rule, 1) > 0;
    }
    if (has_momentum) return OK;
    return config_fail_key(config, "optim.warmup_momentum",
                           "needs a rule with momentum: set optim.momentum above 0, or choose "
                           "another optim.name");
}

UpdateRates rates_at(const Config *config, const LrState *state, const LrSteps *at)
{
    const OptimConfig keys = keys_in_effect(config, state);
    const double warmup = (double)warmup_steps(&keys, at->steps_per_epoch);
    const double lr = lr_at(config, state, at);
    UpdateRates rates = {.lr = lr, .bias_lr = lr, .warm = 1};
    if (at->step >= warmup) return rates;
    rates.warm = fmin(at->step + 1, warmup) / warmup;
    if (keys.warmup_bias_lr >= 0)
        rates.bias_lr = keys.warmup_bias_lr + (keys.lr - keys.warmup_bias_lr) * rates.warm;
    return rates;
}

double lr_at(const Config *config, const LrState *state, const LrSteps *at)
{
    const OptimConfig keys = keys_in_effect(config, state);
    double warmup = (double)warmup_steps(&keys, at->steps_per_epoch), left = at->steps - warmup;
    if (at->step < warmup) return keys.lr * fmin(at->step + 1, warmup) / warmup;
    double done = left > 0 ? (at->step - warmup) / left : 1;
    CurveAt curve_at = {.keys = &keys,
                        .state = state,
                        .data_position = at->step + at->data_ahead,
                        .steps_per_epoch = at->steps_per_epoch,
                        .step = at->step - warmup,
                        .steps = left,
                        .done = done > 1 ? 1 : done};
    return curves[keys.lr_schedule]->rate(&curve_at);
}
