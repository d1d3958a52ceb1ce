/* cosine: the rate falls from lr to lr_end along half a cosine (Loshchilov & Hutter 2017, "SGDR",
 * without restarts). */
#include "curves.h"

#include <math.h>

static double rate(const CurveAt *at)
{
    static const double pi = 3.14159265358979323846;
    return curve_between(at, 0.5 * (1 + cos(pi * at->done)));
}

const Curve curve_cosine = {
    {.word = "cosine", .help = "half a cosine down to lr_end", .uses = "lr_end"},
    .if_end_moves = "the cosine stretches to the new end",
    .rate = rate,
};
