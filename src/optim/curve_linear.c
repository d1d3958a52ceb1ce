/* linear: the rate goes from lr to lr_end on a straight line. */
#include "curves.h"

static double rate(const CurveAt *at)
{
    return curve_between(at, 1 - at->done);
}

const Curve curve_linear = {
    {.word = "linear", .help = "falls linearly to lr_end", .uses = "lr_end"},
    .if_end_moves = "the line stretches to the new end",
    .rate = rate,
};
