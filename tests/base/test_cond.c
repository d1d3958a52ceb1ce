/* Timed waits are independent of the wall clock. */
#include "base.h"
#include "harness.h"
#include "wall_clock.h"

enum { HOUR_S = 3600, LIMIT_S = 60 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond;
static bool rung;

static void *ring(void *unused)
{
    (void)unused;
    pthread_mutex_lock(&lock);
    rung = true;
    pthread_cond_signal(&cond);
    pthread_mutex_unlock(&lock);
    return NULL;
}

/* Without a signal the limit ends the wait, although the wall clock is set back by an hour
 * meanwhile. */
static void test_set_back(void)
{
    cond_init(&cond);
    wall_ahead_s = HOUR_S;
    alarm(LIMIT_S);
    double start = clock_s();
    pthread_mutex_lock(&lock);
    while (cond_wait_for(&cond, &lock, 0.01)) {
    }
    pthread_mutex_unlock(&lock);
    alarm(0);
    CU_ASSERT(clock_s() - start >= 0.01);
    pthread_cond_destroy(&cond);
}

/* With the clock set forward by an hour, the wait still lasts until the other thread signals. */
static void test_set_forward(void)
{
    pthread_t thread;
    cond_init(&cond);
    wall_ahead_s = -HOUR_S;
    bool in_time = true;
    pthread_mutex_lock(&lock);
    CU_ASSERT_EQUAL_FATAL(pthread_create(&thread, NULL, ring, NULL), 0);
    while (in_time && !rung) in_time = cond_wait_for(&cond, &lock, LIMIT_S);
    pthread_mutex_unlock(&lock);
    CU_ASSERT(in_time);
    pthread_join(thread, NULL);
    pthread_cond_destroy(&cond);
}

TEST_MAIN("cond", {"wall clock set back", test_set_back},
          {"wall clock set forward", test_set_forward})
