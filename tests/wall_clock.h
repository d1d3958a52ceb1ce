/* Makes the wall clock of a test program wrong: clock_gettime returns a time that is wall_ahead_s
 * seconds ahead of the kernel's clock. A time limit that is computed from such a time is then as
 * wrong as if the clock had been set back by wall_ahead_s afterwards (or set forward, if
 * wall_ahead_s is negative). Only one file of a program may include this header. */
#ifndef WEFT_TESTS_WALL_CLOCK_H
#define WEFT_TESTS_WALL_CLOCK_H

#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static time_t wall_ahead_s;

int clock_gettime(clockid_t id, struct timespec *now)
{
    int result = (int)syscall(SYS_clock_gettime, id, now);
    if (id == CLOCK_REALTIME) now->tv_sec += wall_ahead_s;
    return result;
}

#endif
