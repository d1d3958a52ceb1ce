/* Measures the speed of cores and of memory while all ranks of the job work, each with the threads
 * that a run would start. The speed of a core is work per second of the thread's CPU time. If a
 * thread ran for only part of the time, another process used its core. The best of several rounds
 * counts, so that a short disturbance is not reported. */
#include "measurements.h"
#include "private.h"

#include <math.h>
#include <stddef.h>
#include <sched.h>
#include <time.h>
#include <unistd.h>

/* ROUNDS: rounds of ROUND_S seconds. BLOCK: floats of the array that a thread computes with.
 * REPEATS: passes over the array between two readings of the clock. */
enum { ROUNDS = 5, BLOCK = 1024, REPEATS = 64, THREADS_MAX = 512 };
static const double ROUND_S = 0.1;

typedef struct Worker {
    pthread_t thread;
    bool started;
    /* result of compute */
    CoreSpeed speed;
    /* for triad: number of elements of each of the three arrays; result */
    int64_t count;
    double bytes_per_s;
} Worker;

static double cpu_time_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* Runs `work` in `count` threads, as soon as all ranks have called this function. Threads that
 * cannot be started are left out. */
static void run_threads(const Doctor *d, Worker *worker, int count, void *(*work)(void *))
{
    world_barrier(&d->world);
    for (int i = 0; i < count; ++i)
        worker[i].started = thread_begin(&worker[i].thread, work, &worker[i]) == 0;
    for (int i = 0; i < count; ++i)
        if (worker[i].started) pthread_join(worker[i].thread, NULL);
}

static int count_threads(const Doctor *d)
{
    int threads = threads_share(d->world.node_size);
    return threads < THREADS_MAX ? threads : THREADS_MAX;
}

/* ---- cores ---- */

/* Multiplies and adds in an array that fits the first-level cache. Sets the worker's speed. */
static void *compute(void *arg)
{
    Worker *w = arg;
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
        w->speed.speed = fmax(w->speed.speed, blocks / (cpu_time_s() - start_cpu_s));
    }
    w->speed.run_fraction = (cpu_time_s() - begin_cpu_s) / (clock_s() - begin_s);
    w->speed.cpu = sched_getcpu();
    return NULL;
}

static CoreSpeed slowest_thread(const Doctor *d)
{
    int threads = count_threads(d);
    Worker *worker = mem_new((size_t)threads * sizeof *worker);
    CoreSpeed slowest = {0};
    run_threads(d, worker, threads, compute);
    for (int i = 0; i < threads; ++i) {
        const CoreSpeed *s = &worker[i].speed;
        if (!worker[i].started) continue;
        if (slowest.speed == 0 || s->speed * s->run_fraction < slowest.speed * slowest.run_fraction)
            slowest = *s;
    }
    mem_free(&worker);
    return slowest;
}

/* All ranks measure at the same time. Then ranks that were slow measure once more while the others
 * sleep, and the faster of their two results counts: a lasting fault is slow in both. */
static void measure_cores(Doctor *d, void *mine)
{
    CoreSpeed *speed = mine;
    *speed = slowest_thread(d);
    CoreSpeed *all = mem_new((size_t)d->world.size * sizeof *all);
    world_gather(&d->world, speed, sizeof *speed, all);
    Allocation a = {.ranks = d->world.size};
    double median_speed = median_of_ranks(&a, all, sizeof *all, offsetof(CoreSpeed, speed));
    bool this_is_slow = false, any_is_slow = false;
    for (int r = 0; r < a.ranks; ++r) {
        bool slow = all[r].speed < check_core_speed.threshold * median_speed;
        any_is_slow = any_is_slow || slow;
        if (r == d->world.rank) this_is_slow = slow;
    }
    mem_free(&all);
    if (any_is_slow && !this_is_slow) clock_rest(ROUNDS * ROUND_S);
    if (this_is_slow) {
        /* without a communicator, the barrier in run_threads returns at once */
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

/* Runs the triad a = b + s c of STREAM (McCalpin 1995). Sets the worker's bytes_per_s. */
static void *triad(void *arg)
{
    enum { PASSES = 8 };
    Worker *w = arg;
    size_t bytes = (size_t)w->count * sizeof(double);
    double *a = mem_pages_new(3 * bytes), *b = a + w->count, *c = b + w->count;
    for (int64_t i = 0; i < w->count; ++i) {
        b[i] = 1;
        c[i] = 2;
    }
    for (int pass = 0; pass < PASSES; ++pass) {
        double start_s = clock_s();
        for (int64_t i = 0; i < w->count; ++i) a[i] = b[i] + 3 * c[i];
        __asm__ volatile("" : : "r"(a) : "memory");
        w->bytes_per_s = fmax(w->bytes_per_s, 3 * (double)bytes / (clock_s() - start_s));
    }
    mem_pages_free(a, 3 * bytes);
    return NULL;
}

/* Returns the number of elements of each of a thread's three arrays. The first arrays of all
 * threads of a node together have four times the size of the last-level cache, but at least 24 and
 * at most 128 MB; so do the second and the third arrays. (A node with a cache of 384 MB would
 * measure the cache, which holds the arrays of all threads.) The arrays of a rank take at most an
 * eighth of the memory that the rank may use. */
static int64_t triad_count(const Doctor *d, int threads)
{
    static const double NODE_BYTES_MIN = 24e6, NODE_BYTES_MAX = 128e6;
    enum { ARRAYS = 3, MEMORY_FRACTION = 8 };
    double cache = (double)sysconf(_SC_LEVEL3_CACHE_SIZE), ranks = d->world.node_size;
    double bytes = fmin(fmax(4 * fmax(cache, 0), NODE_BYTES_MIN), NODE_BYTES_MAX) / ranks;
    bytes = fmin(bytes, memory_limit(d->options->root).bytes / ranks / MEMORY_FRACTION / ARRAYS);
    return (int64_t)(bytes / threads / sizeof(double)) + 1;
}

static void measure_triad(Doctor *d, void *mine)
{
    Triad *t = mine;
    int threads = count_threads(d);
    Worker *worker = mem_new((size_t)threads * sizeof *worker);
    for (int i = 0; i < threads; ++i) worker[i].count = triad_count(d, threads);
    run_threads(d, worker, threads, triad);
    for (int i = 0; i < threads; ++i) t->bytes_per_s += worker[i].bytes_per_s;
    mem_free(&worker);
}

static void judge_triad(const Check *check, const Allocation *a, const void *all, Report *report)
{
    const Triad *t = all;
    /* sum over the ranks of a node, at the index of the node's leader */
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
