/* Runs work on a file from an untrusted source in a separate process with limits: if it crashes,
 * hangs or exceeds its memory, only that process ends. Not collective. */
#ifndef WEFT_BASE_ISOLATED_H
#define WEFT_BASE_ISOLATED_H

#include "base/status.h"

#include <stddef.h>
#include <stdio.h>

typedef struct IsolatedJob {
    /* subject of error messages: "HDF5, reading what is in it," */
    const char *subject;
    /* limit on memory that the process takes after its start; not applied in sanitizer builds */
    size_t memory_bytes;
    /* limits on processor time and on elapsed time */
    int busy_s, clock_s;
    /* limit on the length of the answer */
    size_t answer_bytes;
    /* limit on the size of a file that it writes; 0: it may write none */
    size_t file_bytes;
    /* Runs in the process, which ends afterwards, so nothing has to be freed; its output is
     * discarded. */
    void (*work)(const void *input, size_t input_bytes, FILE *answer);
} IsolatedJob;

/* Makes a helper process, from which isolated_run forks its processes from now on. For callers that
 * will start MPI or threads: forking a process that has those is not safe, and forking one with
 * much memory is slow. Call it once. Pointers in a job must be addresses in the program itself. If
 * it fails, isolated_run forks from its caller. */
void isolated_begin(void);
/* Ends the helper process. */
void isolated_end(void);

/* Runs a job. *answer: what it wrote, and a zero byte; owned by the caller. ERR_DATA naming path
 * and the cause where the job did not finish; ERR_IO where no process can be made. Callable from
 * any thread; calls take turns. */
Status isolated_run(const IsolatedJob *job, const char *path, const void *input, size_t input_bytes,
                    char **answer, size_t *answer_bytes);

/* largest number of processes of isolated_run_many */
enum { ISOLATED_MOST = 32 };
/* Runs a job on `count` inputs, up to ISOLATED_MOST, each in a process of its own, all at once.
 * *good: number of answers before the first failure, whose status and message are returned; later
 * answers are NULL. The limit on elapsed time holds for all together. */
Status isolated_run_many(const IsolatedJob *job, int count, const void *const *input,
                         const size_t *input_bytes, const char *const *path, char **answer,
                         size_t *answer_bytes, int *good);

/* Returns whether a byte that such a process has sent is a valid bool. Any other byte must not be
 * read as one. */
static inline bool isolated_bool(const bool *at)
{
    return *(const unsigned char *)at <= 1;
}

#endif
