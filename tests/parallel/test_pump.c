/* The thread that moves messages: its owner's waits end when something has moved, or at their
 * limit, whatever the wall clock does. */
#include "harness.h"
#include "parallel/mpi/pump.h"
#include "wall_clock.h"

enum { HOUR_S = 3600, LIMIT_S = 60, TURNS = 20 };

/* With the MPI lock held, as pump.h says. */
typedef struct Traffic {
    /* that were taken; number of the first that moves something */
    int turns, ready;
    bool moved;
} Traffic;

static PumpPoll poll(void *of)
{
    Traffic *t = of;
    if (++t->turns < t->ready) return PUMP_WAITING;
    t->moved = true;
    return t->turns == t->ready ? PUMP_MOVED : PUMP_IDLE;
}

/* Nothing moves for many turns: each wait ends at its limit, and the next one finds more turns
 * taken. */
static void wait_many(time_t ahead_s)
{
    Traffic traffic = {.ready = TURNS};
    Pump *pump = pump_new(poll, &traffic);
    wall_ahead_s = ahead_s;
    alarm(LIMIT_S);
    mpi_lock();
    pump_wake(pump);
    while (!traffic.moved) pump_wait(pump, 1e-4);
    CU_ASSERT(traffic.turns >= TURNS);
    /* idle: at the limit alone */
    for (int i = 0; i < 3; ++i) pump_wait(pump, 1e-4);
    mpi_unlock();
    alarm(0);
    pump_free(&pump);
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

/* The owner's wait is ended by what moves, long before its limit. */
static void test_woken(void)
{
    Traffic traffic = {.ready = 1};
    Pump *pump = pump_new(poll, &traffic);
    alarm(LIMIT_S);
    mpi_lock();
    pump_wake(pump);
    while (!traffic.moved) pump_wait(pump, 10.0 * LIMIT_S);
    mpi_unlock();
    alarm(0);
    CU_ASSERT(traffic.moved);
    pump_free(&pump);
}

TEST_MAIN("pump", {"right clock", test_right_clock}, {"wall clock set back", test_set_back},
          {"wall clock set forward", test_set_forward}, {"woken", test_woken})
