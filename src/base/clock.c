/* The monotonic clock. */
#include "base.h"

#include <time.h>

double clock_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

void clock_sleep(double seconds)
{
    struct timespec rest = {(time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9)};
    nanosleep(&rest, NULL);
}

double clock_begin_s(void)
{
    static double begin_s = -1;
    if (begin_s < 0) begin_s = clock_s();
    return begin_s;
}
