/* The steps of threads_share, declared here for bind.c, and for tests that run them on recorded
 * files. */
#ifndef WEFT_TENSOR_THREADS_H
#define WEFT_TENSOR_THREADS_H

/* Returns the number of cores that this process's cgroups allow, rounded down, at least 1; 0: no
 * quota. It is the smallest limit of the group and its parents up to the root. proc_file: a file
 * like /proc/self/cgroup; root: a folder like /sys/fs/cgroup. */
int threads_quota(const char *proc_file, const char *root);

/* Returns the core of a hardware thread; a core is identified by its first hardware thread, which
 * is the first number of a list like "0,64" or "0-1" in /sys. Without such a list, each hardware
 * thread is a core. */
int threads_core_of(int cpu);

/* Returns the number of cores for each of `ranks` ranks. own, launcher: number of cores in the
 * affinity masks of this process and of its launcher; quota: cores, 0: none. */
int threads_divide(int own, int launcher, int quota, int ranks);

#endif
