/* Sleeping and waking between processes by Linux's system call futex. */
#include "futex.h"

#include <errno.h>
#include <linux/futex.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

bool futex_sleep(_Atomic uint32_t *word, _Atomic uint32_t *sleepers, uint32_t seen, double limit_s)
{
    struct timespec limit = {.tv_nsec = (long)(limit_s * 1e9)};
    atomic_fetch_add(sleepers, 1);
    long result = syscall(SYS_futex, word, FUTEX_WAIT, seen, &limit, NULL, 0);
    bool late = result != 0 && errno == ETIMEDOUT;
    atomic_fetch_sub(sleepers, 1);
    return !late;
}

void futex_wake(_Atomic uint32_t *word, _Atomic uint32_t *sleepers)
{
    /* Pairs with futex_sleep: either the sleeper sees the new value, or this process sees the
     * sleeper in the count. */
    atomic_thread_fence(memory_order_seq_cst);
    if (atomic_load_explicit(sleepers, memory_order_relaxed) > 0)
        syscall(SYS_futex, word, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
}
