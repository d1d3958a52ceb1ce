/* Parts of threads_share, separate so that tests can feed them recorded files. */
#ifndef WEFT_TENSOR_THREADS_H
#define WEFT_TENSOR_THREADS_H

/* Cores that a cgroup's quota allows, rounded down, at least 1; 0: no quota. proc_file: a file like
 * /proc/self/cgroup; root: a folder like /sys/fs/cgroup. The tightest limit from the group up to
 * the root counts. */
int threads_quota(const char *proc_file, const char *root);

/* The core of a hardware thread, named by the core's first hardware thread: the first number in a
 * list like "0,64" or "0-1". */
int threads_core_of(int cpu);

/* Cores for each of `ranks` ranks. mine, outer: cores in the mask of this process and in its
 * launcher's; quota: cores, 0: none. */
int threads_divide(int mine, int outer, int quota, int ranks);

#endif
