/* Chooses how OpenMP threads wait for each other. By default libgomp's threads spin for a long
 * time. If there are more runnable threads than cores, spinning threads take cores from others: two
 * ranks with two threads each on two cores then run many times slower. If the user has not chosen,
 * waiting threads sleep at once when there are fewer cores than threads, and otherwise spin for
 * some microseconds first. */
#include "../private.h"

#include "tensor.h"

#include <stdlib.h>
#include <unistd.h>

/* Number of rounds of libgomp's spin loop. They take about 25 microseconds, as long as the pause
 * between two parallel loops. Measured on two cores that other programs used as well: a lenet step
 * takes 0.05 to 0.1 s; with 20000 rounds 0.35 s; with libgomp's default 0.5 s. */
#define SPIN_SHORT "1000"
/* Environment variable that threads_export sets: the choice is made, for this process and those
 * that it starts. A process that finds it does not execute itself again. */
static const char chosen_variable[] = "WEFT_THREADS_SETTLED";

/* True if the node's ranks together run more threads than there are cores. If a rank's share of the
 * cores is as large as that of a single rank, only this rank's threads are counted: the launcher
 * has bound ranks to separate cores, or there is only one core. */
static bool cores_are_short(int ranks, int threads)
{
    int cores = threads_share(1), share = threads_share(ranks);
    if (threads == 0) threads = share;
    return threads * (share < cores ? ranks : 1) > cores;
}

static bool user_chose(void)
{
    return getenv("GOMP_SPINCOUNT") || getenv("OMP_WAIT_POLICY");
}

void threads_export(int ranks, int threads)
{
    char text[16];
    snprintf(text, sizeof text, "%d", threads ? threads : threads_share(ranks));
    if (!user_chose())
        setenv("GOMP_SPINCOUNT", cores_are_short(ranks, threads) ? "0" : SPIN_SHORT, 1);
    setenv("OMP_NUM_THREADS", text, 0);
    setenv(chosen_variable, "1", 1);
}

void threads_choose_waiting(int threads, char **words)
{
    int local = 1;
    char program[4096];
    if (getenv(chosen_variable) || user_chose()) return;
    world_launched(&local);
    if (threads == 0) threads = threads_share(local);
    /* a single thread never waits for another */
    if (threads == 1) return;
    threads_export(local, threads);
    program_path(program, sizeof program);
    fflush(NULL);
    execv(program, words);
    execv("/proc/self/exe", words);
    log_warn("weft cannot execute itself again: OpenMP's threads wait as libgomp chooses");
}
