/* The pieces of threads_share that tests feed with recorded files. */
#ifndef WEFT_TENSOR_THREADS_H
#define WEFT_TENSOR_THREADS_H

/* Cores that a cgroup's quota allows, rounded down, at least 1; 0 where no quota is set. proc_file:
 * a file like /proc/self/cgroup; root: a folder like /sys/fs/cgroup. The tightest limit from the
 * group up to the root counts. */
int threads_quota(const char *proc_file, const char *root);

/* The core of a CPU, named by its first hardware thread: the first number in a list like "0,64" or
 * "0-1". */
int threads_core_of(int cpu);

/* mine, outer: cores in this process's mask and in its launcher's. quota: 0 for none. */
int threads_divide(int mine, int outer, int quota, int ranks);

#endif
