/* The progress thread, and the lock around calls of MPI. The process has one lock, because the
 * process has one MPI library. */
#include "progress_thread.h"

#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>

/* Shortest and longest pause between two polls. Each pause after which nothing has arrived doubles
 * the next one. */
static const long PAUSE_NS = 20 * 1000, LONGEST_PAUSE_NS = 80 * 1000;
/* largest delay of the kernel at the end of a pause; the default, 50 us, is about as long as a
 * pause */
static const unsigned long TIMER_SLACK_NS = 1;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

struct ProgressThread {
    ProgressPoll (*poll)(void *user);
    /* argument of `poll`; borrowed */
    void *user;
    pthread_t thread;
    /* signalled when `awake` or `end` has been set */
    pthread_cond_t wake;
    /* signalled when a poll has moved something or found nothing in flight */
    pthread_cond_t moved;
    /* true: something may be in flight, so the thread polls */
    bool awake;
    /* true: the thread must end */
    bool end;
};

/* Pauses after a poll that returned `result`. sleep_ns: length of the pause if nothing has arrived.
 * Returns the length of the next pause. */
static long pause_after(ProgressPoll result, long sleep_ns)
{
    if (result != PROGRESS_WAITING) {
        sched_yield();
        return PAUSE_NS;
    }
    nanosleep(&(struct timespec){.tv_nsec = sleep_ns}, NULL);
    return 2 * sleep_ns < LONGEST_PAUSE_NS ? 2 * sleep_ns : LONGEST_PAUSE_NS;
}

static void *run(void *user)
{
    ProgressThread *progress = user;
    prctl(PR_SET_TIMERSLACK, TIMER_SLACK_NS);
    long sleep_ns = PAUSE_NS;
    pthread_mutex_lock(&lock);
    while (!progress->end) {
        if (!progress->awake) {
            pthread_cond_wait(&progress->wake, &lock);
            continue;
        }
        ProgressPoll result = progress->poll(progress->user);
        progress->awake = result != PROGRESS_IDLE;
        if (result != PROGRESS_WAITING) pthread_cond_broadcast(&progress->moved);
        pthread_mutex_unlock(&lock);
        sleep_ns = pause_after(result, sleep_ns);
        pthread_mutex_lock(&lock);
    }
    pthread_mutex_unlock(&lock);
    return NULL;
}

ProgressThread *progress_thread_new(ProgressPoll (*poll)(void *user), void *user)
{
    ProgressThread *progress = mem_new(sizeof *progress);
    *progress = (ProgressThread){.poll = poll, .user = user};
    cond_init(&progress->wake);
    cond_init(&progress->moved);
    int error = thread_begin(&progress->thread, run, progress);
    if (error) die("cannot start the thread that moves messages: %s", strerror(error));
    return progress;
}

void progress_thread_free(ProgressThread **progress)
{
    ProgressThread *p = *progress;
    pthread_mutex_lock(&lock);
    p->end = true;
    pthread_cond_signal(&p->wake);
    pthread_mutex_unlock(&lock);
    pthread_join(p->thread, NULL);
    pthread_cond_destroy(&p->wake);
    pthread_cond_destroy(&p->moved);
    mem_free(progress);
}

void mpi_lock(void)
{
    pthread_mutex_lock(&lock);
}

bool mpi_try_lock(void)
{
    return pthread_mutex_trylock(&lock) == 0;
}

void mpi_unlock(void)
{
    pthread_mutex_unlock(&lock);
}

void progress_thread_wake(ProgressThread *progress)
{
    if (progress->awake) return;
    progress->awake = true;
    pthread_cond_signal(&progress->wake);
}

void progress_thread_wait(ProgressThread *progress, double limit_s)
{
    cond_wait_for(&progress->moved, &lock, limit_s);
}
