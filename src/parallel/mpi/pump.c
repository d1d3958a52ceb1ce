/* The progress thread, and the lock around MPI, of which there is one per process because MPI is
 * global. */
#include "pump.h"

#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>

/* Pause between two polls: doubled while nothing arrives. */
static const long LOOK_NS = 20 * 1000, LONGEST_LOOK_NS = 80 * 1000;
/* The kernel's default slack is about as long as the pause. */
static const unsigned long TIMER_SLACK_NS = 1;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

struct Pump {
    PumpPoll (*poll)(void *of);
    /* borrowed */
    void *of;
    pthread_t thread;
    pthread_cond_t wake, moved;
    bool awake, end;
};

/* Pauses as the result of a poll demands, and returns the length of the next pause. */
static long pause_after(PumpPoll result, long sleep_ns)
{
    if (result != PUMP_WAITING) {
        sched_yield();
        return LOOK_NS;
    }
    nanosleep(&(struct timespec){.tv_nsec = sleep_ns}, NULL);
    return 2 * sleep_ns < LONGEST_LOOK_NS ? 2 * sleep_ns : LONGEST_LOOK_NS;
}

static void *run(void *of)
{
    Pump *pump = of;
    prctl(PR_SET_TIMERSLACK, TIMER_SLACK_NS);
    long sleep_ns = LOOK_NS;
    pthread_mutex_lock(&lock);
    while (!pump->end) {
        if (!pump->awake) {
            pthread_cond_wait(&pump->wake, &lock);
            continue;
        }
        PumpPoll result = pump->poll(pump->of);
        pump->awake = result != PUMP_IDLE;
        if (result != PUMP_WAITING) pthread_cond_broadcast(&pump->moved);
        pthread_mutex_unlock(&lock);
        sleep_ns = pause_after(result, sleep_ns);
        pthread_mutex_lock(&lock);
    }
    pthread_mutex_unlock(&lock);
    return NULL;
}

Pump *pump_new(PumpPoll (*poll)(void *of), void *of)
{
    Pump *pump = mem_new(sizeof *pump);
    *pump = (Pump){.poll = poll, .of = of};
    cond_init(&pump->wake);
    cond_init(&pump->moved);
    int error = thread_begin(&pump->thread, run, pump);
    if (error) die("cannot start the thread that moves messages: %s", strerror(error));
    return pump;
}

void pump_free(Pump **pump)
{
    Pump *p = *pump;
    pthread_mutex_lock(&lock);
    p->end = true;
    pthread_cond_signal(&p->wake);
    pthread_mutex_unlock(&lock);
    pthread_join(p->thread, NULL);
    pthread_cond_destroy(&p->wake);
    pthread_cond_destroy(&p->moved);
    mem_free(pump);
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

void pump_wake(Pump *pump)
{
    if (pump->awake) return;
    pump->awake = true;
    pthread_cond_signal(&pump->wake);
}

void pump_wait(Pump *pump, double limit_s)
{
    cond_wait_for(&pump->moved, &lock, limit_s);
}
