/* Chooses how OpenMP threads wait for each other, unless the user has chosen. By default libgomp's
 * threads spin for a long time. If there are more threads than cores, spinning threads take cores
 * from threads that have work: two ranks with two threads each on two cores run many times slower.
 * So if there are fewer cores than threads, waiting threads sleep at once. Otherwise they spin for
 * some microseconds first. */
#include "../private.h"

#include "tensor.h"

#include <stdlib.h>
#include <unistd.h>

/* Value of GOMP_SPINCOUNT: number of rounds of libgomp's spin loop before a thread sleeps. 1000
 * rounds take about 25 microseconds, as long as the pause between two parallel loops. A step of
 * lenet was measured on two cores that other programs used as well. It takes 0.05 to 0.1 s with
 * 1000 rounds, 0.35 s with 20000 rounds, and 0.5 s with libgomp's default. */
#define SPIN_SHORT "1000"
/* Environment variable that threads_export sets when it has made the choice for this process and
 * its child processes. A process in which it is set does not execute itself again. */
static const char chosen_variable[] = "WEFT_THREADS_SETTLED";

/* Returns whether the node's ranks together run more threads than there are cores. Only the threads
 * of one rank are counted if a rank's share of the cores is as large as that of a single rank. Then
 * the launcher has bound ranks to separate cores, or there is only one core. ranks: number of ranks
 * on this node. threads: number of threads of each rank; 0: the rank's share of the cores. */
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
    int node_ranks = 1;
    char program[4096];
    if (getenv(chosen_variable) || user_chose()) return;
    world_launched(&node_ranks);
    if (threads == 0) threads = threads_share(node_ranks);
    /* a single thread never waits for another */
    if (threads == 1) return;
    threads_export(node_ranks, threads);
    program_path(program, sizeof program);
    fflush(NULL);
    execv(program, words);
    execv("/proc/self/exe", words);
    log_warn("weft cannot execute itself again: OpenMP's threads wait as libgomp chooses");
}
