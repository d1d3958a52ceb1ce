/* multistep: the learning rate is multiplied by gamma at each milestone, given in epochs from the
 * beginning. */
#include "curves.h"

#include <math.h>

static double rate(const CurveAt *at)
{
    double lr = at->is->lr;
    for (int i = 0; i < at->is->milestones.count; ++i)
        if (at->data_step >=
            (double)llround(at->is->milestones.value[i] * (double)at->steps_per_epoch))
            lr *= at->is->gamma;
    return lr;
}

const Curve curve_multistep = {
    {.word = "multistep", .help = "falls by gamma at milestones", .uses = "milestones gamma"},
    .longer = "the learning rate falls at its milestones, as before",
    .rate = rate,
};
