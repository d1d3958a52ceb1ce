/* How many threads a rank may use: the cores of its affinity mask and of its cgroup's quota (v2
 * cpu.max, v1 cpu.cfs_quota_us), divided by the ranks that share them. The hardware threads of one
 * core count once. */
#include "tensor.h"
#include "threads.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PATH_ROOM = 4096 };

int threads_core_of(int cpu)
{
    char path[128];
    int first = cpu;
    snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/topology/thread_siblings_list", cpu);
    FILE *f = fopen(path, "r");
    if (!f) return cpu;
    if (fscanf(f, "%d", &first) != 1) first = cpu;
    fclose(f);
    return first >= 0 && first < NODE_CPUS_MAX ? first : cpu;
}

/* Returns the number of cores in the affinity mask of a process (pid 0: this process), and sets
 * their entries in seen[NODE_CPUS_MAX] to 1. Cores that are already marked are not counted. Sets
 * *cpus to the number of hardware threads in the mask. Returns 0 if the mask cannot be read. */
static int mark_cores(pid_t pid, char *seen, int *cpus)
{
    size_t bytes = CPU_ALLOC_SIZE(NODE_CPUS_MAX);
    cpu_set_t *set = CPU_ALLOC(NODE_CPUS_MAX);
    int count = 0;
    *cpus = 0;
    if (!set) return 0;
    if (sched_getaffinity(pid, bytes, set) == 0)
        for (int cpu = 0; cpu < NODE_CPUS_MAX; ++cpu) {
            if (!CPU_ISSET_S((size_t)cpu, bytes, set)) continue;
            int core = threads_core_of(cpu);
            count += !seen[core];
            seen[core] = 1;
            *cpus += 1;
        }
    CPU_FREE(set);
    return count;
}

static int mask_cores(pid_t pid)
{
    char *seen = mem_new(NODE_CPUS_MAX);
    int cpus, count = mark_cores(pid, seen, &cpus);
    mem_free(&seen);
    return count;
}

/* Reads the first `count` numbers of a file; the word "max" is read as -1. Returns false if the
 * file has fewer numbers. */
static bool read_numbers(const char *path, double *number, int count)
{
    char word[32];
    FILE *f = fopen(path, "r");
    if (!f) return false;
    int got = 0;
    while (got < count && fscanf(f, "%31s", word) == 1)
        number[got++] = strcmp(word, "max") == 0 ? -1 : strtod(word, NULL);
    fclose(f);
    return got == count;
}

/* Returns the number of cores that the quota of one cgroup allows; 0: no quota. folder: the
 * cgroup's folder; v2: its version is 2, not 1. */
static double group_cores(const char *folder, bool v2)
{
    char path[PATH_ROOM + 32];
    double v[2] = {-1, 0};
    if (v2) {
        snprintf(path, sizeof path, "%s/cpu.max", folder);
        if (!read_numbers(path, v, 2)) return 0;
    } else {
        snprintf(path, sizeof path, "%s/cpu.cfs_quota_us", folder);
        if (!read_numbers(path, &v[0], 1)) return 0;
        snprintf(path, sizeof path, "%s/cpu.cfs_period_us", folder);
        if (!read_numbers(path, &v[1], 1)) return 0;
    }
    return v[0] > 0 && v[1] > 0 ? v[0] / v[1] : 0;
}

/* Returns the seconds for which the processes of one cgroup were throttled by its quota. */
static double group_waited(const char *folder, bool v2)
{
    char path[PATH_ROOM + 32], name[32];
    double number, waited = 0;
    snprintf(path, sizeof path, "%s/cpu.stat", folder);
    FILE *f = fopen(path, "r");
    if (!f) return 0;
    while (fscanf(f, "%31s %lf", name, &number) == 2) {
        if (v2 && !strcmp(name, "throttled_usec")) waited = 1e-6 * number;
        if (!v2 && !strcmp(name, "throttled_time")) waited = 1e-9 * number;
    }
    fclose(f);
    return waited;
}

/* Figures of cgroups and of their parents. */
typedef struct GroupFigures {
    /* the smallest quota, in cores; 0: there is none */
    double cores;
    /* the longest time for which a cgroup was throttled */
    double waited_s;
} GroupFigures;

/* Merges into *figures the figures of all cgroups from the folder root/group up to root. Overwrites
 * `group`. */
static void visit_parents(const char *root, char *group, bool v2, GroupFigures *figures)
{
    char folder[PATH_ROOM];
    for (;;) {
        snprintf(folder, sizeof folder, "%s%s", root, group);
        double cores = group_cores(folder, v2), waited = group_waited(folder, v2);
        if (cores > 0 && (figures->cores == 0 || cores < figures->cores)) figures->cores = cores;
        if (waited > figures->waited_s) figures->waited_s = waited;
        char *slash = strrchr(group, '/');
        if (!slash) return;
        *slash = 0;
    }
}

/* Returns whether one of the controllers, which are separated by commas, is "cpu". Overwrites
 * `controllers`. */
static bool has_cpu(char *controllers)
{
    char *rest = NULL;
    for (char *c = strtok_r(controllers, ",", &rest); c; c = strtok_r(NULL, ",", &rest))
        if (strcmp(c, "cpu") == 0) return true;
    return false;
}

/* Returns the figures of those cgroups in proc_file that limit the CPU, and of their parents. */
static GroupFigures read_groups(const char *proc_file, const char *root)
{
    char line[PATH_ROOM], v1_root[PATH_ROOM];
    GroupFigures figures = {0, 0};
    FILE *f = fopen(proc_file, "r");
    if (!f) return figures;
    snprintf(v1_root, sizeof v1_root, "%.4000s/cpu", root);
    /* a line is "0::/path" in version 2, or "4:cpu,cpuacct:/path" in version 1 */
    while (fgets(line, sizeof line, f)) {
        line[strcspn(line, "\n")] = 0;
        char *controllers = strchr(line, ':'),
             *path = controllers ? strchr(controllers + 1, ':') : NULL;
        if (!path) continue;
        *path++ = 0;
        bool v2 = controllers[1] == 0;
        if (!v2 && !has_cpu(controllers + 1)) continue;
        if (strcmp(path, "/") == 0) *path = 0;
        visit_parents(v2 ? root : v1_root, path, v2, &figures);
    }
    fclose(f);
    return figures;
}

int threads_quota(const char *proc_file, const char *root)
{
    double least = read_groups(proc_file, root).cores;
    return least == 0 ? 0 : least < 1 ? 1 : (int)least;
}

/* A launcher that binds ranks gives each rank a subset of its own mask. This function assumes that
 * all subsets have the size of this rank's subset, and that each subset is shared by ranks * own /
 * launcher ranks, rounded up. A launcher that does not bind leaves its whole mask to all ranks. */
int threads_divide(int own, int launcher, int quota, int ranks)
{
    if (ranks < 1) ranks = 1;
    if (launcher < own) launcher = own;
    int sharers = (int)(((int64_t)ranks * own + launcher - 1) / (launcher > 0 ? launcher : 1));
    int share = sharers > 0 ? own / sharers : own;
    if (quota > 0 && quota / ranks < share) share = quota / ranks;
    return share > 0 ? share : 1;
}

int threads_share(int ranks_on_node)
{
    int own = mask_cores(0), launcher = mask_cores(getppid());
    return threads_divide(own, launcher, threads_quota("/proc/self/cgroup", "/sys/fs/cgroup"),
                          ranks_on_node);
}

ThreadsLimits threads_limits(const char *root, char *core)
{
    ThreadsLimits limits = {.launcher_cores = mask_cores(getppid())};
    char *mine = core ? core : mem_new(NODE_CPUS_MAX), file[PATH_ROOM], groups[PATH_ROOM];
    limits.cores = mark_cores(0, mine, &limits.cpus);
    if (!core) mem_free(&mine);
    snprintf(file, sizeof file, "%.4000s/proc/self/cgroup", root);
    snprintf(groups, sizeof groups, "%.4000s/sys/fs/cgroup", root);
    GroupFigures figures = read_groups(file, groups);
    limits.quota = figures.cores;
    limits.waited_s = figures.waited_s;
    return limits;
}
