/* A wall clock that goes wrong: what the program reads of it is wall_ahead_s ahead of what the
 * kernel counts by. A limit that was made of it then lies as far away as when the clock had been
 * set back (or, below 0, forward) just afterwards. One file of a program includes this. */
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
