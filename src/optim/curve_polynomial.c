/* polynomial: the rate falls from lr to lr_end in proportion to a power of the remaining fraction
 * of the curve. */
#include "curves.h"

#include <math.h>

static double rate(const CurveAt *at)
{
    return curve_between(at, pow(1 - at->done, at->keys->power));
}

const Curve curve_polynomial = {
    {.word = "polynomial",
     .help = "falls to lr_end as (remaining fraction of the steps)^power",
     .uses = "lr_end power"},
    .if_end_moves = "the curve stretches to the new end",
    .rate = rate,
};
