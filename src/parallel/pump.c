/* The thread behind pump.h: a lock, a wish to end, and turns. */
#include "pump.h"

#include "mpi_check.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>

static const long LOOK_NS = 50 * 1000;         /* between two looks at what is in flight */
static const unsigned long TIMER_SLACK_NS = 1; /* the kernel's own is as long as the sleep */

struct Pump {
    PumpTurn (*turn)(void *of);
    void *of; /* borrowed */
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    bool awake, end;
};

static void *run(void *of)
{
    Pump *pump = of;
    prctl(PR_SET_TIMERSLACK, TIMER_SLACK_NS);
    pthread_mutex_lock(&pump->lock);
    while (!pump->end) {
        if (!pump->awake) {
            pthread_cond_wait(&pump->wake, &pump->lock);
            continue;
        }
        PumpTurn turn = pump->turn(pump->of);
        pump->awake = turn != PUMP_IDLE;
        pthread_mutex_unlock(&pump->lock);
        if (turn == PUMP_WAITING)
            nanosleep(&(struct timespec){.tv_nsec = LOOK_NS}, NULL);
        else
            sched_yield();
        pthread_mutex_lock(&pump->lock);
    }
    pthread_mutex_unlock(&pump->lock);
    return NULL;
}

/* Signals are for the thread that looks for them. */
static int start(Pump *pump)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = pthread_create(&pump->thread, NULL, run, pump);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return error;
}

Pump *pump_new(PumpTurn (*turn)(void *of), void *of)
{
    int level = MPI_THREAD_SINGLE;
    MPI_CHECK(MPI_Query_thread(&level));
    if (level < MPI_THREAD_MULTIPLE) {
        log_warn("this MPI serves one thread only: gradients move between layers, not during them");
        return NULL;
    }
    Pump *pump = mem_new(sizeof *pump);
    *pump = (Pump){.turn = turn, .of = of};
    pthread_mutex_init(&pump->lock, NULL);
    pthread_cond_init(&pump->wake, NULL);
    int error = start(pump);
    if (error) die("cannot start the thread that moves messages: %s", strerror(error));
    return pump;
}

void pump_free(Pump **pump)
{
    Pump *p = *pump;
    if (!p) return;
    pthread_mutex_lock(&p->lock);
    p->end = true;
    pthread_cond_signal(&p->wake);
    pthread_mutex_unlock(&p->lock);
    pthread_join(p->thread, NULL);
    pthread_cond_destroy(&p->wake);
    pthread_mutex_destroy(&p->lock);
    mem_free(pump);
}

void pump_lock(Pump *pump)
{
    if (pump) pthread_mutex_lock(&pump->lock);
}

bool pump_try_lock(Pump *pump)
{
    return !pump || pthread_mutex_trylock(&pump->lock) == 0;
}

void pump_unlock(Pump *pump)
{
    if (pump) pthread_mutex_unlock(&pump->lock);
}

void pump_wake(Pump *pump)
{
    if (!pump || pump->awake) return;
    pump->awake = true;
    pthread_cond_signal(&pump->wake);
}
