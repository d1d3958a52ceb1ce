/* The learning rate of a step: warm-up, then a curve. */
#include "optim.h"

#include <math.h>

static int64_t warmup_steps(const Config *config, int64_t steps_per_epoch)
{
    if (config->optim.warmup_steps > 0) return config->optim.warmup_steps;
    return llround(config->optim.warmup_epochs * (double)steps_per_epoch);
}

/* gamma for each milestone behind; milestones are epochs since the beginning, warm-up included. */
static double multistep(const Config *config, int64_t step, int64_t steps_per_epoch)
{
    double lr = config->optim.lr;
    for (int i = 0; i < config->optim.milestones.count; ++i)
        if (step >= llround(config->optim.milestones.value[i] * (double)steps_per_epoch))
            lr *= config->optim.gamma;
    return lr;
}

/* done: 0 at the end of warm-up, 1 after the last step. */
static double decayed(const Config *config, double done)
{
    static const double pi = 3.14159265358979323846;
    double left = 1 - done;
    switch ((LrSchedule)config->optim.lr_schedule) {
    case LR_COSINE:
        left = 0.5 * (1 + cos(pi * done));
        break;
    case LR_POLYNOMIAL:
        left = pow(left, config->optim.power);
        break;
    default:
        break;
    }
    return config->optim.lr_end + (config->optim.lr - config->optim.lr_end) * left;
}

double lr_at(const Config *config, int64_t step, int64_t steps, int64_t steps_per_epoch)
{
    int64_t warmup = warmup_steps(config, steps_per_epoch);
    if (step < warmup) return config->optim.lr * (double)(step + 1) / (double)warmup;
    if (config->optim.lr_schedule == LR_CONSTANT) return config->optim.lr;
    if (config->optim.lr_schedule == LR_MULTISTEP) return multistep(config, step, steps_per_epoch);
    double done = steps > warmup ? (double)(step - warmup) / (double)(steps - warmup) : 1;
    return decayed(config, done > 1 ? 1 : done);
}
