/* Runs a thread that checks for stop requests ten times a second until the first step. The threads
 * that compute block the signals (stop.c), and a signal handler could not interrupt a call such as
 * MPI_Init. The thread also calls StartCalls.check. */
#include "base/start.h"
#include "base.h"

#include <pthread.h>

/* seconds between two checks */
static const double CHECK_S = 0.1;

static struct {
    /* argument of start_begin; NULL before it and after start_end */
    const StartCalls *calls;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    pthread_t thread;
    /* running: true if the thread was started; over: true once it must end */
    bool running, over;
} start = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void *listen_run(void *of)
{
    (void)of;
    pthread_mutex_lock(&start.lock);
    while (!start.over) {
        if (start.calls->stop && stop_wanted()) start.calls->stop();
        if (start.calls->check) start.calls->check();
        cond_wait_for(&start.wake, &start.lock, CHECK_S);
    }
    pthread_mutex_unlock(&start.lock);
    return NULL;
}

void start_begin(const StartCalls *calls)
{
    start.calls = calls;
    start.over = false;
    cond_init(&start.wake);
    start.running =
        (calls->stop || calls->check) && thread_begin(&start.thread, listen_run, NULL) == 0;
}

void start_reach(StartStage stage)
{
    if (start.calls) start.calls->reach(stage);
}

void start_end(bool steps)
{
    if (!start.calls) return;
    pthread_mutex_lock(&start.lock);
    start.over = true;
    pthread_cond_signal(&start.wake);
    pthread_mutex_unlock(&start.lock);
    if (start.running) pthread_join(start.thread, NULL);
    pthread_cond_destroy(&start.wake);
    if (steps) start.calls->reach(START_DONE);
    start.calls = NULL;
}
