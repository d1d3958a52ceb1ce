/* Stop requests by signal, from a batch system, a closed terminal or a person. No handler may run
 * on a thread that computes: oneDNN's generated code keeps values below its stack pointer, where
 * the kernel would put the handler's frame (this has corrupted the heap). Therefore the thread that
 * calls stop_begin, and those it starts, block the signals, and stop_wanted polls for them; the
 * handler is for threads of other libraries, such as MPI, to which the kernel may deliver a signal
 * instead. */
#include "base.h"

#include <pthread.h>
#include <time.h>

static const int stop_signal[] = {SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2, SIGXCPU};
enum { STOP_SIGNALS = sizeof stop_signal / sizeof *stop_signal };

static volatile sig_atomic_t asked;
/* true: between stop_begin and stop_end */
static bool begun;
static sigset_t caught, mask_before;
/* signals of failed writes; they are ignored, so that the write returns an error and the program
 * goes on */
static const int of_writes[] = {SIGPIPE, SIGXFSZ};
enum { OF_WRITES = sizeof of_writes / sizeof *of_writes };
static struct sigaction writes_before[OF_WRITES];

static void on_signal(int number)
{
    (void)number;
    asked = 1;
}

/* Returns the signals that are not ignored. A parent process can set some to be ignored, as nohup
 * does. */
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
    for (int i = 0; i < OF_WRITES; ++i)
        sigaction(of_writes[i], &action, begun ? NULL : &writes_before[i]);
    begun = true;
}

bool stop_wanted(void)
{
    if (!begun) return false;
    while (sigtimedwait(&caught, NULL, &(struct timespec){0}) > 0) asked = 1;
    return asked;
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
    /* delivers pending signals to the handler */
    pthread_sigmask(SIG_SETMASK, &mask_before, NULL);
    for (int i = 0; i < STOP_SIGNALS; ++i)
        if (sigismember(&caught, stop_signal[i])) signal(stop_signal[i], SIG_DFL);
    for (int i = 0; i < OF_WRITES; ++i) sigaction(of_writes[i], &writes_before[i], NULL);
    asked = 0;
    begun = false;
}
