/* constant: the learning rate does not change after the warm-up. */
#include "curves.h"

static double rate(const CurveAt *at)
{
    return at->keys->lr;
}

const Curve curve_constant = {
    {.word = "constant", .help = "constant rate"},
    .if_end_moves = "the learning rate stays as it is",
    .rate = rate,
};
