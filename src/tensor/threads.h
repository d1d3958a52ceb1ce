/* The steps of threads_share. They are declared for bind.c, and for tests that call them on
 * recorded files. */
#ifndef WEFT_TENSOR_THREADS_H
#define WEFT_TENSOR_THREADS_H

/* Returns the number of cores that the cgroups of this process allow, rounded down, but at least 1;
 * 0: no quota. It is the smallest quota of the cgroup and its parents up to the root. proc_file: a
 * file such as /proc/self/cgroup; root: a folder such as /sys/fs/cgroup. */
int threads_quota(const char *proc_file, const char *root);

/* Returns the core of the hardware thread `cpu`. A core is identified by its first hardware thread,
 * which is the first number of a list such as "0,64" or "0-1" in /sys. Without such a list, each
 * hardware thread is a core. */
int threads_core_of(int cpu);

/* Returns the number of cores for each of `ranks` ranks, at least 1. own: number of cores in the
 * affinity mask of this process; launcher: number of cores in the mask of its launcher. quota:
 * cores that the cgroups allow; 0: no quota. */
int threads_divide(int own, int launcher, int quota, int ranks);

#endif
