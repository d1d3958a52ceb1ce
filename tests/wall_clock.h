/* A wrong wall clock: the program reads a time that is wall_ahead_s seconds ahead of the kernel's
 * clock. A time limit computed from it is then as wrong as if the clock had been set back by
 * wall_ahead_s just after the reading (set forward, if it is negative). Only one file of a program
 * includes this header. */
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
