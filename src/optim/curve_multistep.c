/* multistep: the learning rate is multiplied by gamma at each milestone, given in epochs from the
 * beginning. */
#include "curves.h"

#include <math.h>

static double rate(const CurveAt *at)
{
    double lr = at->keys->lr;
    for (int i = 0; i < at->keys->milestones.count; ++i)
        if (at->data_step >=
            (double)llround(at->keys->milestones.value[i] * (double)at->steps_per_epoch))
            lr *= at->keys->gamma;
    return lr;
}

const Curve curve_multistep = {
    {.word = "multistep", .help = "falls by gamma at milestones", .uses = "milestones gamma"},
    .longer = "the learning rate falls at its milestones, as before",
    .rate = rate,
};
