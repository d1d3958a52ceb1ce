/* Copies from a mapped file, and reports errors of the file instead of crashing. A page beyond the
 * end of a truncated file, or a page that a network file system cannot deliver, raises SIGBUS in
 * the thread that reads it. The handler here makes mapped_copy return false if that thread is
 * inside mapped_copy; any other SIGBUS goes to the earlier handler. The signal is synchronous and
 * the interrupted code is a plain memcpy that holds no lock, so the jump out of the handler is
 * safe. */
#include "../data_private.h"

#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <string.h>

/* jump target of the call of mapped_copy that this thread is in; NULL: it is not in mapped_copy */
static _Thread_local sigjmp_buf *jump_target;
static struct sigaction earlier_action;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void on_sigbus(int signal_number, siginfo_t *info, void *context)
{
    (void)context;
    if (jump_target) siglongjmp(*jump_target, 1);
    /* After the return the access is repeated, and raises SIGBUS again for the earlier handler. A
     * signal that a process has sent (si_code <= 0) must be raised again. */
    sigaction(SIGBUS, &earlier_action, NULL);
    if (info->si_code <= 0) raise(signal_number);
}

static void install(void)
{
    struct sigaction action = {.sa_sigaction = on_sigbus, .sa_flags = SA_SIGINFO | SA_NODEFER};
    sigemptyset(&action.sa_mask);
    if (sigaction(SIGBUS, &action, &earlier_action) != 0) die("sigaction for SIGBUS failed");
}

void mapped_copy_init(void)
{
    pthread_once(&once, install);
}

bool mapped_copy(void *to, const void *from, size_t n)
{
    sigjmp_buf after_error;
    if (sigsetjmp(after_error, 0) != 0) {
        jump_target = NULL;
        return false;
    }
    jump_target = &after_error;
    /* The fences keep memcpy between the two assignments. */
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    memcpy(to, from, n);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    jump_target = NULL;
    return true;
}
