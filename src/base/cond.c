/* Condition variables with a timeout by the monotonic clock. By default POSIX uses the wall clock;
 * if that clock is set back, a thread sleeps longer. */
#include "base.h"

#include <errno.h>
#include <time.h>

void cond_init(pthread_cond_t *cond)
{
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(cond, &attr);
    pthread_condattr_destroy(&attr);
}

bool cond_wait_for(pthread_cond_t *cond, pthread_mutex_t *lock, double limit_s)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    int64_t ns = until.tv_nsec + (int64_t)(limit_s * 1e9);
    until.tv_sec += ns / 1000000000;
    until.tv_nsec = ns % 1000000000;
    return pthread_cond_timedwait(cond, lock, &until) != ETIMEDOUT;
}
