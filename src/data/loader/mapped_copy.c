/* Copies from a mapped file and survives errors of the file. A page of a mapped file that has been
 * truncated, or that a network file system cannot deliver, raises SIGBUS in the thread that touches
 * it. The handler here makes mapped_copy return false if that thread is inside it; any other SIGBUS
 * goes to the earlier handler. The signal is synchronous and the guarded code is a plain memcpy
 * that holds no lock, so the jump is safe. */
#include "../data_private.h"

#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <string.h>

/* jump target of the copy this thread is in, or NULL */
static _Thread_local sigjmp_buf *guard;
static struct sigaction earlier;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void on_sigbus(int signal_number, siginfo_t *info, void *context)
{
    (void)context;
    if (guard) siglongjmp(*guard, 1);
    /* The access is repeated, and then fails into the earlier handler. */
    sigaction(SIGBUS, &earlier, NULL);
    if (info->si_code <= 0) raise(signal_number);
}

static void install(void)
{
    struct sigaction action = {.sa_sigaction = on_sigbus, .sa_flags = SA_SIGINFO | SA_NODEFER};
    sigemptyset(&action.sa_mask);
    if (sigaction(SIGBUS, &action, &earlier) != 0) die("sigaction for SIGBUS failed");
}

void mapped_copy_init(void)
{
    pthread_once(&once, install);
}

bool mapped_copy(void *to, const void *from, size_t n)
{
    sigjmp_buf here;
    if (sigsetjmp(here, 0) != 0) {
        guard = NULL;
        return false;
    }
    guard = &here;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    memcpy(to, from, n);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    guard = NULL;
    return true;
}
