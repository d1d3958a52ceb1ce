/* constant: the learning rate stays as it is after the warm-up. */
#include "curves.h"

static double rate(const CurveAt *at)
{
    return at->keys->lr;
}

const Curve curve_constant = {
    {.word = "constant", .help = "constant rate"},
    .longer = "the learning rate stays as it is",
    .rate = rate,
};
