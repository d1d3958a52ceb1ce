/* multistep: the learning rate is multiplied by gamma at each milestone. Milestones are in epochs
 * since the start of the run. */
#include "curves.h"

#include <math.h>

static double rate(const CurveAt *at)
{
    double lr = at->keys->lr;
    for (int i = 0; i < at->keys->milestones.count; ++i)
        if (at->data_position >=
            (double)llround(at->keys->milestones.value[i] * (double)at->steps_per_epoch))
            lr *= at->keys->gamma;
    return lr;
}

const Curve curve_multistep = {
    {.word = "multistep",
     .help = "is multiplied by gamma at milestones",
     .uses = "milestones gamma"},
    .if_end_moves = "the milestones stay where they were",
    .rate = rate,
};
