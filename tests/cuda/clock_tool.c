/* The wrong wall clock of tests/wall_clock.h for a whole program: loaded through LD_PRELOAD, it is
 * as if the clock were set back by an hour after each look at it. */
#include "wall_clock.h"

__attribute__((constructor)) static void begin(void)
{
    wall_ahead_s = 3600;
}
