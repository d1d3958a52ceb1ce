/* Does work on a file from an untrusted source in a separate process with limits: if it crashes,
 * hangs or exceeds its memory, only that process ends. Not collective. */
#ifndef WEFT_BASE_ISOLATED_H
#define WEFT_BASE_ISOLATED_H

#include "base/status.h"

#include <stddef.h>
#include <stdio.h>

/* A kind of work, and its limits. */
typedef struct IsolatedJob {
    /* subject of the sentence in error messages, which continues with words such as "crashed"; for
     * example "hwloc, in the process that reads its XML," */
    const char *subject;
    /* limit on the address space that the process adds after its start; not applied in sanitizer
     * builds */
    size_t memory_bytes;
    /* limits in seconds. busy_s: on processor time; clock_s: on elapsed time */
    int busy_s, clock_s;
    /* largest number of bytes of the answer */
    size_t answer_bytes;
    /* largest number of bytes of each file that the process writes; 0: it may not write files */
    size_t file_bytes;
    /* Does the work: reads input[0 .. input_bytes - 1] and writes to `answer`. Called in the
     * separate process, which ends when it returns, so it need not free memory. Text that it prints
     * is discarded. */
    void (*work)(const void *input, size_t input_bytes, FILE *answer);
} IsolatedJob;

/* Makes a helper process, from which isolated_run then forks its processes. It is for callers that
 * will start MPI or threads: forking a process with threads is not safe, and forking a process with
 * much memory is slow. Call it once. Pointers in a job must point to code and constants of the
 * program, which have the same addresses in the helper. If the helper cannot be made, isolated_run
 * forks from its caller. */
void isolated_begin(void);
/* Ends the helper process, if there is one. */
void isolated_end(void);

/* Runs a job. path: name of the input in messages. *answer: the *answer_bytes bytes that the job
 * has written, and a zero byte; owned by the caller; NULL after an error. ERR_DATA: the job did not
 * finish, or its answer is too long; the message has `path` and the cause. ERR_IO: no process can
 * be made, or the helper process has been killed. Any thread may call it; calls run one after
 * another. */
Status isolated_run(const IsolatedJob *job, const char *path, const void *input, size_t input_bytes,
                    char **answer, size_t *answer_bytes);

/* largest number of inputs of isolated_run_many */
enum { ISOLATED_MOST = 32 };
/* Runs a job on `count` inputs, at most ISOLATED_MOST, each in its own process, all at the same
 * time. Returns the status and the message of the first input that failed. *good: number of inputs
 * before that input, or `count` if no input failed. answer[*good] and all later answers are set to
 * NULL. clock_s limits the time for all inputs together. ERR_BUG: there are too many inputs; no
 * answer is set. In all other respects it behaves as isolated_run does. */
Status isolated_run_many(const IsolatedJob *job, int count, const void *const *input,
                         const size_t *input_bytes, const char *const *path, char **answer,
                         size_t *answer_bytes, int *good);

/* Returns true if a byte from an isolated process is a valid bool, 0 or 1. It is undefined to read
 * any other value as a bool. */
static inline bool isolated_bool_is_valid(const bool *at)
{
    return *(const unsigned char *)at <= 1;
}

#endif
