/* Tests the progress thread. A wait of its owner ends when a message has moved, or at the time
 * limit of the wait, also if the wall clock changes. */
#include "harness.h"
#include "parallel/mpi/progress_thread.h"
#include "wall_clock.h"

enum { HOUR_S = 3600, LIMIT_S = 60, TURNS = 20 };

/* Argument of the function `poll`, which the progress thread calls while it holds the MPI lock
 * (progress_thread.h). */
typedef struct Traffic {
    /* turns: number of polls so far; ready: number of the first poll that moves a message */
    int turns, ready;
    bool moved;
} Traffic;

static ProgressPoll poll(void *of)
{
    Traffic *t = of;
    if (++t->turns < t->ready) return PROGRESS_WAITING;
    t->moved = true;
    return t->turns == t->ready ? PROGRESS_MOVED : PROGRESS_IDLE;
}

/* No message moves for many polls. Each wait ends at its time limit, and before the next wait the
 * thread has polled again. */
static void wait_many(time_t ahead_s)
{
    Traffic traffic = {.ready = TURNS};
    ProgressThread *progress = progress_thread_new(poll, &traffic);
    wall_ahead_s = ahead_s;
    alarm(LIMIT_S);
    mpi_lock();
    progress_thread_wake(progress);
    while (!traffic.moved) progress_thread_wait(progress, 1e-4);
    CU_ASSERT(traffic.turns >= TURNS);
    /* after the message there is nothing to do, and a wait ends only at its limit */
    for (int i = 0; i < 3; ++i) progress_thread_wait(progress, 1e-4);
    mpi_unlock();
    alarm(0);
    progress_thread_free(&progress);
    wall_ahead_s = 0;
}

static void test_right_clock(void)
{
    wait_many(0);
}

static void test_set_back(void)
{
    wait_many(HOUR_S);
}

static void test_set_forward(void)
{
    wait_many(-HOUR_S);
}

/* A message that moves ends the owner's wait long before its limit. */
static void test_woken(void)
{
    Traffic traffic = {.ready = 1};
    ProgressThread *progress = progress_thread_new(poll, &traffic);
    alarm(LIMIT_S);
    mpi_lock();
    progress_thread_wake(progress);
    while (!traffic.moved) progress_thread_wait(progress, 10.0 * LIMIT_S);
    mpi_unlock();
    alarm(0);
    CU_ASSERT(traffic.moved);
    progress_thread_free(&progress);
}

TEST_MAIN("progress thread", {"right clock", test_right_clock},
          {"wall clock set back", test_set_back}, {"wall clock set forward", test_set_forward},
          {"woken", test_woken})
