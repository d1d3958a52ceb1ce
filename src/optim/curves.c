/* The learning rate of a step: warm-up, then a curve. A curve is a row: its word, and the rate
 * behind the warm-up. */
#include "rules.h"

#include <math.h>

typedef struct CurveAt {
    const OptimConfig *is;
    /* step: since the beginning, warm-up included */
    int64_t step, steps_per_epoch;
    /* 0 at the end of warm-up, 1 after the last step */
    double done;
} CurveAt;

typedef struct Curve {
    ConfigWord word;
    double (*rate)(const CurveAt *at);
} Curve;

static double constant(const CurveAt *at)
{
    return at->is->lr;
}

/* gamma for each milestone behind; milestones are epochs since the beginning. */
static double multistep(const CurveAt *at)
{
    double lr = at->is->lr;
    for (int i = 0; i < at->is->milestones.count; ++i)
        if (at->step >= llround(at->is->milestones.value[i] * (double)at->steps_per_epoch))
            lr *= at->is->gamma;
    return lr;
}

/* left: 1 at the end of warm-up, 0 after the last step. */
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

/* In the order of the help, the default first. */
static const Curve curves[] = {
    {{.word = "constant", .help = "stays"}, constant},
    {{.word = "multistep", .help = "falls by gamma at milestones", .uses = "milestones gamma"},
     multistep},
    {{.word = "cosine", .help = "half a cosine, down to lr_end", .uses = "lr_end"}, cosine},
    {{.word = "linear", .help = "a line, down to lr_end", .uses = "lr_end"}, linear},
    {{.word = "polynomial", .help = "(what is left)^power, down to lr_end", .uses = "lr_end power"},
     polynomial},
};
enum { CURVE_COUNT = sizeof curves / sizeof curves[0] };

ConfigWord optim_curve_word(int i)
{
    return i < CURVE_COUNT ? curves[i].word : (ConfigWord){0};
}

static int64_t warmup_steps(const OptimConfig *is, int64_t steps_per_epoch)
{
    if (is->warmup_steps > 0) return is->warmup_steps;
    return llround(is->warmup_epochs * (double)steps_per_epoch);
}

double lr_at(const Config *config, int64_t step, int64_t steps, int64_t steps_per_epoch)
{
    const OptimConfig *is = &config->optim;
    int64_t warmup = warmup_steps(is, steps_per_epoch);
    if (step < warmup) return is->lr * (double)(step + 1) / (double)warmup;
    double done = steps > warmup ? (double)(step - warmup) / (double)(steps - warmup) : 1;
    CurveAt at = {is, step, steps_per_epoch, done > 1 ? 1 : done};
    return curves[is->lr_schedule].rate(&at);
}
