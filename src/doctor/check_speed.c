/* Measures the speed of cores and of memory, and reads the processor quota. All ranks of the job
 * work at the same time, each with the number of threads that a run would start. The speed of a
 * core is work per second of the thread's CPU time. The best of several rounds counts, so that a
 * short disturbance is not reported. If a thread ran for only part of the time, another process
 * used its core. */
#include "measurements.h"
#include "private.h"

#include "machine/measure.h"

#include <math.h>
#include <stddef.h>
#include <sched.h>
#include <time.h>

/* ROUNDS: number of rounds, each of ROUND_S seconds. BLOCK: number of floats in the array with
 * which a thread computes. REPEATS: number of passes over the array between two readings of the
 * clock. THREADS_MAX: maximum number of threads of a rank. */
enum { ROUNDS = 5, BLOCK = 1024, REPEATS = 64, THREADS_MAX = 512 };
static const double ROUND_S = 0.1;

static double cpu_time_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static int count_threads(const Doctor *d)
{
    int threads = threads_share(d->world.node_size);
    return threads < THREADS_MAX ? threads : THREADS_MAX;
}

/* ---- cores ---- */

/* Multiplies and adds in an array that fits the first-level cache. Called in each thread. speed:
 * the thread's CoreSpeed, zeroed; receives the result. */
static void *compute(void *speed)
{
    CoreSpeed *s = speed;
    float x[BLOCK] = {1};
    double begin_s = clock_s(), begin_cpu_s = cpu_time_s();
    for (int round = 0; round < ROUNDS; ++round) {
        double start_s = clock_s(), start_cpu_s = cpu_time_s(), blocks = 0;
        while (clock_s() - start_s < ROUND_S) {
            for (int k = 0; k < REPEATS; ++k)
                for (int i = 0; i < BLOCK; ++i) x[i] = x[i] * 0.999f + 0.001f;
            __asm__ volatile("" : : "r"(x) : "memory");
            ++blocks;
        }
        s->speed = fmax(s->speed, blocks / (cpu_time_s() - start_cpu_s));
    }
    s->run_fraction = (cpu_time_s() - begin_cpu_s) / (clock_s() - begin_s);
    s->cpu = sched_getcpu();
    return NULL;
}

/* Runs `compute` in all threads of this rank. Returns the result of the thread that did the least
 * work, or zeros if no thread could be started. Collective on d->world. */
static CoreSpeed slowest_thread(const Doctor *d)
{
    int threads = count_threads(d);
    CoreSpeed *speed = mem_new((size_t)threads * sizeof *speed), slowest = {0};
    world_barrier(&d->world);
    threads_run(compute, speed, sizeof *speed, threads);
    for (int i = 0; i < threads; ++i) {
        const CoreSpeed *s = &speed[i];
        /* 0: the thread was not started */
        if (s->speed == 0) continue;
        if (slowest.speed == 0 || s->speed * s->run_fraction < slowest.speed * slowest.run_fraction)
            slowest = *s;
    }
    mem_free(&speed);
    return slowest;
}

/* All ranks measure at the same time. Then the ranks that were slow measure once more while the
 * other ranks sleep. The faster of a rank's two results counts, because a lasting fault makes both
 * slow. */
static void measure_cores(Doctor *d, void *mine)
{
    CoreSpeed *speed = mine;
    *speed = slowest_thread(d);
    CoreSpeed *all = mem_new((size_t)d->world.size * sizeof *all);
    world_allgather(&d->world, speed, sizeof *speed, all);
    Allocation a = {.ranks = d->world.size};
    double median_speed = median_of_ranks(&a, all, sizeof *all, offsetof(CoreSpeed, speed));
    bool this_is_slow = false, any_is_slow = false;
    for (int r = 0; r < a.ranks; ++r) {
        bool slow = all[r].speed < check_core_speed.threshold * median_speed;
        any_is_slow = any_is_slow || slow;
        if (r == d->world.rank) this_is_slow = slow;
    }
    mem_free(&all);
    if (any_is_slow && !this_is_slow) clock_sleep(ROUNDS * ROUND_S);
    if (this_is_slow) {
        /* without a communicator, slowest_thread's barrier returns at once */
        Doctor alone = *d;
        alone.world.comm = MPI_COMM_NULL;
        CoreSpeed second = slowest_thread(&alone);
        if (second.speed > speed->speed) *speed = second;
    }
}

static void judge_cores(const Check *check, const Allocation *a, const void *all, Report *report)
{
    static const double RUN_FRACTION_MIN = 0.9;
    const CoreSpeed *s = all;
    double median_speed = median_of_ranks(a, all, sizeof *s, offsetof(CoreSpeed, speed)),
           slowest = 1;
    for (int r = 0; r < a->ranks; ++r) {
        double relative = s[r].speed / median_speed;
        if (s[r].speed == 0) continue;
        slowest = fmin(slowest, relative);
        if (s[r].run_fraction < RUN_FRACTION_MIN)
            report_add_rank(
                report, SEVERITY_WARN, r,
                "top -H -b -n 1 | head -20; sbatch --exclusive; fewer ranks or threads",
                "a thread ran for %.0f %% of the time, on CPU %d: other processes use its "
                "core",
                100 * s[r].run_fraction, s[r].cpu);
        else if (relative < check->threshold)
            report_add_rank(
                report, SEVERITY_WARN, r,
                "cpupower frequency-info; dmesg | grep -i -e throttl -e mce; another node "
                "(sbatch --exclude)",
                "CPU %d has %.0f %% of the ranks' median speed: all wait for the slowest", s[r].cpu,
                100 * relative);
    }
    report_set_summary(report, "the slowest of %d rank%s has %.0f %% of the median", a->ranks,
                       a->ranks == 1 ? "" : "s", 100 * slowest);
}

const Check check_core_speed = {
    .name = "speed of cores",
    .threshold_meaning = "fraction of the ranks' median",
    .threshold = 0.93,
    .limit_s = 6,
    .bytes = sizeof(CoreSpeed),
    .measure = measure_cores,
    .judge = judge_cores,
};

/* ---- processor quota of control groups ---- */

static void measure_quota(Doctor *d, void *mine)
{
    Quota *quota = mine;
    ThreadsLimits limits = threads_limits(d->options->root, NULL);
    quota->cores = limits.quota;
    quota->throttled_s = limits.waited_s - d->throttled_s;
    quota->elapsed_s = clock_s() - d->begin_s;
}

static void judge_quota(const Check *check, const Allocation *a, const void *all, Report *report)
{
    static const char *const remedy = "cat /sys/fs/cgroup/cpu.max; docker run --cpus; srun -c";
    const Quota *q = all;
    report_set_summary(report, q[0].cores > 0 ? "%.3g cores" : "no limit on processor time",
                       q[0].cores);
    for (int r = 0; r < a->ranks; ++r) {
        if (!is_node_leader(a, r)) continue;
        if (q[r].cores > 0 && q[r].cores < a->place[r].node_size)
            report_add_host(report, SEVERITY_WARN, r, remedy,
                            "control groups allow %.3g cores for %d rank%s", q[r].cores,
                            a->place[r].node_size, a->place[r].node_size == 1 ? "" : "s");
        else if (q[r].throttled_s > check->threshold * q[r].elapsed_s)
            report_add_host(report, SEVERITY_WARN, r, remedy,
                            "processes waited for %.1f s because of a limit of %.3g cores",
                            q[r].throttled_s, q[r].cores);
    }
}

const Check check_quota = {
    .name = "processor quota",
    .threshold_meaning = "fraction of the time that is spent waiting for it",
    .threshold = 0.02,
    .limit_s = 2,
    .bytes = sizeof(Quota),
    .measure = measure_quota,
    .judge = judge_quota,
};

/* ---- memory ---- */

static void measure_triad(Doctor *d, void *mine)
{
    Triad *t = mine;
    t->bytes_per_s = memory_rate(&d->world, count_threads(d), memory_limit(d->options->root).bytes);
}

static void judge_triad(const Check *check, const Allocation *a, const void *all, Report *report)
{
    const Triad *t = all;
    /* entry r: sum over the ranks of the node whose leader is rank r */
    Triad *node = mem_new((size_t)a->ranks * sizeof *node);
    for (int r = 0; r < a->ranks; ++r) node[a->place[r].leader].bytes_per_s += t[r].bytes_per_s;
    double median_rate = median_of_nodes(a, node, sizeof *node, offsetof(Triad, bytes_per_s));
    report_set_summary(report, "%.3g GB/s a node", 1e-9 * median_rate);
    for (int r = 0; r < a->ranks; ++r)
        if (is_node_leader(a, r) && node[r].bytes_per_s < check->threshold * median_rate)
            report_add_host(report, SEVERITY_WARN, r,
                            "others' jobs: top; memory modules: dmesg | grep -i edac; another node "
                            "(sbatch --exclude)",
                            "%.3g GB/s, the median of nodes is %.3g", 1e-9 * node[r].bytes_per_s,
                            1e-9 * median_rate);
    mem_free(&node);
}

const Check check_triad = {
    .name = "memory bandwidth",
    .threshold_meaning = "fraction of the nodes' median",
    .threshold = 0.9,
    .limit_s = 6,
    .bytes = sizeof(Triad),
    .measure = measure_triad,
    .judge = judge_triad,
};
