/* Stop requests by signal, from a batch system, a closed terminal or a person. No handler may run
 * on a thread that computes: oneDNN's generated code keeps values below its stack pointer, where
 * the kernel would put the handler's frame (this has corrupted the heap). Therefore the thread that
 * calls stop_begin, and the threads that it starts, block the signals, and stop_wanted polls for
 * them. The handler is for threads of other libraries, such as MPI, to which the kernel may deliver
 * a signal instead. */
#include "base.h"

#include <pthread.h>
#include <time.h>

static const int stop_signal[] = {SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2, SIGXCPU};
enum { STOP_SIGNALS = sizeof stop_signal / sizeof *stop_signal };

/* 1: a signal has arrived */
static volatile sig_atomic_t requested;
/* true: between stop_begin and stop_end */
static bool begun;
/* caught: the stop signals that are recorded; mask_before: signal mask before stop_begin */
static sigset_t caught, mask_before;
/* signals of failed writes; they are ignored, so that the write returns an error and the program
 * goes on */
static const int write_signal[] = {SIGPIPE, SIGXFSZ};
enum { WRITE_SIGNALS = sizeof write_signal / sizeof *write_signal };
/* actions of both signals before stop_begin */
static struct sigaction writes_before[WRITE_SIGNALS];

static void on_signal(int number)
{
    (void)number;
    requested = 1;
}

/* Returns the stop signals that are not ignored. A parent process can have set some to be ignored,
 * as nohup does. */
static sigset_t not_ignored(void)
{
    sigset_t set;
    sigemptyset(&set);
    for (int i = 0; i < STOP_SIGNALS; ++i) {
        struct sigaction now;
        if (sigaction(stop_signal[i], NULL, &now) == 0 && now.sa_handler != SIG_IGN)
            sigaddset(&set, stop_signal[i]);
    }
    return set;
}

void stop_begin(void)
{
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
    sigemptyset(&action.sa_mask);
    if (!begun) caught = not_ignored();
    pthread_sigmask(SIG_BLOCK, &caught, begun ? NULL : &mask_before);
    for (int i = 0; i < STOP_SIGNALS; ++i)
        if (sigismember(&caught, stop_signal[i])) sigaction(stop_signal[i], &action, NULL);
    action.sa_handler = SIG_IGN;
    for (int i = 0; i < WRITE_SIGNALS; ++i)
        sigaction(write_signal[i], &action, begun ? NULL : &writes_before[i]);
    begun = true;
}

bool stop_wanted(void)
{
    if (!begun) return false;
    while (sigtimedwait(&caught, NULL, &(struct timespec){0}) > 0) requested = 1;
    return requested;
}

void stop_signals(sigset_t *set)
{
    if (begun)
        *set = caught;
    else
        *set = not_ignored();
}

void stop_end(void)
{
    if (!begun) return;
    /* this delivers pending signals to the handler */
    pthread_sigmask(SIG_SETMASK, &mask_before, NULL);
    for (int i = 0; i < STOP_SIGNALS; ++i)
        if (sigismember(&caught, stop_signal[i])) signal(stop_signal[i], SIG_DFL);
    for (int i = 0; i < WRITE_SIGNALS; ++i) sigaction(write_signal[i], &writes_before[i], NULL);
    requested = 0;
    begun = false;
}
