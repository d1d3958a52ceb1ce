/* Speed of cores and memory with all ranks at work at the same time, with the threads that a run
 * would start. The speed of a core is work per second of the thread's CPU time. If a thread ran for
 * only part of the time, another process used its core. Speed is the best of several rounds, so
 * that a short disturbance is no finding. */
#include "figures.h"
#include "private.h"

#include <math.h>
#include <stddef.h>
#include <sched.h>
#include <time.h>
#include <unistd.h>

enum { ROUNDS = 5, BLOCK = 1024, THREADS_MOST = 512 };
static const double ROUND_S = 0.1;

typedef struct Worker {
    pthread_t thread;
    bool started;
    Speed speed;
    /* triad: elements of each of the three arrays */
    int64_t count;
    double bytes_per_s;
} Worker;

static double cpu_time_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static int run_all(const Doctor *d, Worker *worker, int count, void *(*work)(void *))
{
    int started = 0;
    world_barrier(&d->world);
    for (int i = 0; i < count; ++i) {
        worker[i].started = thread_begin(&worker[i].thread, work, &worker[i]) == 0;
        started += worker[i].started;
    }
    for (int i = 0; i < count; ++i)
        if (worker[i].started) pthread_join(worker[i].thread, NULL);
    return started;
}

static int threads_of(const Doctor *d)
{
    int threads = threads_share(d->world.node_size);
    return threads < THREADS_MOST ? threads : THREADS_MOST;
}

/* ---- cores ---- */

static void *compute(void *arg)
{
    Worker *w = arg;
    float x[BLOCK] = {1};
    double begin_s = clock_s(), begin_ran_s = cpu_time_s();
    for (int round = 0; round < ROUNDS; ++round) {
        double from_s = clock_s(), from_ran_s = cpu_time_s(), blocks = 0;
        while (clock_s() - from_s < ROUND_S) {
            for (int k = 0; k < 64; ++k)
                for (int i = 0; i < BLOCK; ++i) x[i] = x[i] * 0.999f + 0.001f;
            __asm__ volatile("" : : "r"(x) : "memory");
            ++blocks;
        }
        w->speed.speed = fmax(w->speed.speed, blocks / (cpu_time_s() - from_ran_s));
    }
    w->speed.share = (cpu_time_s() - begin_ran_s) / (clock_s() - begin_s);
    w->speed.cpu = sched_getcpu();
    return NULL;
}

static Speed slowest_thread(const Doctor *d)
{
    int threads = threads_of(d);
    Worker *worker = mem_new((size_t)threads * sizeof *worker);
    Speed least = {0};
    run_all(d, worker, threads, compute);
    for (int i = 0; i < threads; ++i) {
        const Speed *s = &worker[i].speed;
        if (!worker[i].started) continue;
        if (least.speed == 0 || s->speed * s->share < least.speed * least.share) least = *s;
    }
    mem_free(&worker);
    return least;
}

/* Ranks that were slow measure once more, while the others sleep. */
static void measure_cores(Doctor *d, void *mine)
{
    Speed *speed = mine;
    *speed = slowest_thread(d);
    Speed *all = mem_new((size_t)d->world.size * sizeof *all);
    world_gather(&d->world, speed, sizeof *speed, all);
    Allocation a = {.ranks = d->world.size};
    double middle = median_of_ranks(&a, all, sizeof *all, offsetof(Speed, speed));
    bool again = false, any = false;
    for (int r = 0; r < a.ranks; ++r) {
        bool slow = all[r].speed < check_core_speed.threshold * middle;
        any = any || slow;
        if (r == d->world.rank) again = slow;
    }
    mem_free(&all);
    if (any && !again) clock_rest(ROUNDS * ROUND_S);
    if (again) {
        Doctor alone = *d;
        alone.world.comm = MPI_COMM_NULL;
        Speed second = slowest_thread(&alone);
        if (second.speed > speed->speed) *speed = second;
    }
}

static void judge_cores(const Check *check, const Allocation *a, const void *all, Report *report)
{
    static const double SHARE = 0.9;
    const Speed *s = all;
    double middle = median_of_ranks(a, all, sizeof *s, offsetof(Speed, speed)), least = 1;
    for (int r = 0; r < a->ranks; ++r) {
        double to_middle = s[r].speed / middle;
        if (s[r].speed == 0) continue;
        least = fmin(least, to_middle);
        if (s[r].share < SHARE)
            report_rank(report, SEVERITY_WARN, r,
                        "top -H -b -n 1 | head -20; sbatch --exclusive; fewer ranks or threads",
                        "a thread ran for %.0f %% of the time, on CPU %d: others use its core",
                        100 * s[r].share, s[r].cpu);
        else if (to_middle < check->threshold)
            report_rank(report, SEVERITY_WARN, r,
                        "cpupower frequency-info; dmesg | grep -i -e throttl -e mce; another node "
                        "(sbatch --exclude)",
                        "CPU %d has %.0f %% of the ranks' median speed: all wait for the slowest",
                        s[r].cpu, 100 * to_middle);
    }
    report_summary(report, "the slowest of %d rank%s has %.0f %% of the median", a->ranks,
                   a->ranks == 1 ? "" : "s", 100 * least);
}

const Check check_core_speed = {
    .name = "speed of cores",
    .what = "fraction of the ranks' median",
    .threshold = 0.93,
    .limit_s = 6,
    .bytes = sizeof(Speed),
    .measure = measure_cores,
    .judge = judge_cores,
};

/* ---- the processor quota of control groups, over the checks before this one ---- */

static void measure_quota(Doctor *d, void *mine)
{
    Quota *quota = mine;
    ThreadsLimits limits = threads_limits(d->options->root, NULL);
    quota->cores = limits.quota;
    quota->mask_cores = limits.cores;
    quota->waited_s = limits.waited_s - d->throttled_s;
    quota->of_s = clock_s() - d->begin_s;
}

static void judge_quota(const Check *check, const Allocation *a, const void *all, Report *report)
{
    static const char *const cure = "cat /sys/fs/cgroup/cpu.max; docker run --cpus; srun -c";
    const Quota *q = all;
    report_summary(report, q->cores > 0 ? "%.3g cores" : "no limit on processor time", q->cores);
    for (int r = 0; r < a->ranks; ++r) {
        if (!place_leads(a, r)) continue;
        if (q[r].cores > 0 && q[r].cores < a->place[r].node_size)
            report_host(report, SEVERITY_WARN, r, cure,
                        "control groups allow %.3g cores for %d rank%s", q[r].cores,
                        a->place[r].node_size, a->place[r].node_size == 1 ? "" : "s");
        else if (q[r].waited_s > check->threshold * q[r].of_s)
            report_host(report, SEVERITY_WARN, r, cure,
                        "processes waited for %.1f s because of a limit of %.3g cores",
                        q[r].waited_s, q[r].cores);
    }
}

const Check check_quota = {
    .name = "processor quota",
    .what = "fraction of the time that is spent waiting for it",
    .threshold = 0.02,
    .limit_s = 2,
    .bytes = sizeof(Quota),
    .measure = measure_quota,
    .judge = judge_quota,
};

/* ---- memory ---- */

/* The triad a = b + s c of STREAM (McCalpin 1995). */
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
        double from_s = clock_s();
        for (int64_t i = 0; i < w->count; ++i) a[i] = b[i] + 3 * c[i];
        __asm__ volatile("" : : "r"(a) : "memory");
        w->bytes_per_s = fmax(w->bytes_per_s, 3 * (double)bytes / (clock_s() - from_s));
    }
    mem_pages_free(a, 3 * bytes);
    return NULL;
}

/* Elements of each array of a thread. The arrays of a node are four times its last-level cache, but
 * at most 128 MB (a cache of 384 MB would hold all three). A rank's arrays take at most an eighth
 * of the memory that it may use. */
static int64_t triad_count(const Doctor *d, int threads)
{
    static const double LEAST_BYTES = 24e6, MOST_BYTES = 128e6;
    double cache = (double)sysconf(_SC_LEVEL3_CACHE_SIZE), ranks = d->world.node_size;
    double bytes = fmin(fmax(4 * fmax(cache, 0), LEAST_BYTES), MOST_BYTES) / ranks;
    bytes = fmin(bytes, memory_limit(d->options->root).bytes / ranks / 8 / 3);
    return (int64_t)(bytes / threads / sizeof(double)) + 1;
}

static void measure_triad(Doctor *d, void *mine)
{
    Triad *t = mine;
    int threads = threads_of(d);
    Worker *worker = mem_new((size_t)threads * sizeof *worker);
    for (int i = 0; i < threads; ++i) worker[i].count = triad_count(d, threads);
    run_all(d, worker, threads, triad);
    for (int i = 0; i < threads; ++i) t->bytes_per_s += worker[i].bytes_per_s;
    mem_free(&worker);
}

static void judge_triad(const Check *check, const Allocation *a, const void *all, Report *report)
{
    const Triad *t = all;
    Triad *node = mem_new((size_t)a->ranks * sizeof *node);
    for (int r = 0; r < a->ranks; ++r) node[a->place[r].first].bytes_per_s += t[r].bytes_per_s;
    double middle = median_of_nodes(a, node, sizeof *node, offsetof(Triad, bytes_per_s));
    report_summary(report, "%.3g GB/s a node", 1e-9 * middle);
    for (int r = 0; r < a->ranks; ++r)
        if (place_leads(a, r) && node[r].bytes_per_s < check->threshold * middle)
            report_host(report, SEVERITY_WARN, r,
                        "others' jobs: top; memory modules: dmesg | grep -i edac; another node "
                        "(sbatch --exclude)",
                        "%.3g GB/s, the median of nodes is %.3g", 1e-9 * node[r].bytes_per_s,
                        1e-9 * middle);
    mem_free(&node);
}

const Check check_triad = {
    .name = "memory bandwidth",
    .what = "fraction of the nodes' median",
    .threshold = 0.9,
    .limit_s = 6,
    .bytes = sizeof(Triad),
    .measure = measure_triad,
    .judge = judge_triad,
};
