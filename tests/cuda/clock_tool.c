/* Gives a program the wrong wall clock of tests/wall_clock.h. Loaded with LD_PRELOAD, it sets the
 * clock back by an hour after each reading. */
#include "wall_clock.h"

__attribute__((constructor)) static void begin(void)
{
    wall_ahead_s = 3600;
}
