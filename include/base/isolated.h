/* Runs work on a file from an untrusted source in a separate process with limits: if it crashes,
 * hangs or exceeds its memory, only that process ends. Not collective. */
#ifndef WEFT_BASE_ISOLATED_H
#define WEFT_BASE_ISOLATED_H

#include "base/status.h"

#include <stddef.h>
#include <stdio.h>

typedef struct IsolatedJob {
    /* subject of error messages, before words such as "crashed": "hwloc, in the process that reads
     * its XML," */
    const char *subject;
    /* limit on the address space that the process adds after its start; not applied in sanitizer
     * builds */
    size_t memory_bytes;
    /* limits in seconds on processor time (busy_s) and on elapsed time (clock_s) */
    int busy_s, clock_s;
    /* limit on the length of the answer in bytes */
    size_t answer_bytes;
    /* limit on the size in bytes of each file that the process writes; 0: it may not write files */
    size_t file_bytes;
    /* Called in the separate process, which ends when `work` returns; `work` need not free memory.
     * What it prints is discarded. */
    void (*work)(const void *input, size_t input_bytes, FILE *answer);
} IsolatedJob;

/* Makes a helper process; from now on isolated_run forks its processes from the helper. For callers
 * that will start MPI or threads: forking a process with threads is not safe, and forking one with
 * much memory is slow. Call it once. Pointers in a job must point to code and constants of the
 * program, which have the same addresses in the helper. If the helper cannot be made, isolated_run
 * forks from its caller. */
void isolated_begin(void);
/* Ends the helper process. */
void isolated_end(void);

/* Runs a job. path: name of the input in messages. *answer: the *answer_bytes bytes that the job
 * wrote, and a zero byte; owned by the caller; NULL after an error. ERR_DATA: the job did not
 * finish, or its answer is too long; the message names path and the cause. ERR_IO: no process can
 * be made, or the helper process has been killed. Callable from any thread; calls run one after
 * another. */
Status isolated_run(const IsolatedJob *job, const char *path, const void *input, size_t input_bytes,
                    char **answer, size_t *answer_bytes);

/* largest number of processes of isolated_run_many */
enum { ISOLATED_MOST = 32 };
/* Runs a job on `count` inputs, up to ISOLATED_MOST, each in a process of its own, all at once.
 * *good: number of answers before the first failure, whose status and message are returned; later
 * answers are NULL. The limit on elapsed time (clock_s) is one limit for all inputs together. */
Status isolated_run_many(const IsolatedJob *job, int count, const void *const *input,
                         const size_t *input_bytes, const char *const *path, char **answer,
                         size_t *answer_bytes, int *good);

/* Returns whether a byte received from an isolated process is a valid bool, 0 or 1. Reading any
 * other value as a bool is undefined. */
static inline bool isolated_bool(const bool *at)
{
    return *(const unsigned char *)at <= 1;
}

#endif
