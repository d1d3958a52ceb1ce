/* Runs work on a file from an untrusted source in a separate process with limits: if it crashes,
 * hangs or exceeds its memory, only that process ends. Not collective. */
#ifndef WEFT_BASE_APART_H
#define WEFT_BASE_APART_H

#include "base/status.h"

#include <stddef.h>
#include <stdio.h>

typedef struct ApartJob {
    /* subject of error messages: "HDF5, reading what is in it," */
    const char *who;
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
    void (*work)(const void *asked, size_t asked_bytes, FILE *answer);
} ApartJob;

/* Makes a helper process, from which apart_run forks its processes from now on. For callers that
 * will start MPI or threads: forking a process that has those is not safe, and forking one with
 * much memory is slow. Call it once. Pointers in a job must be addresses in the program itself. If
 * it fails, apart_run forks from its caller. */
void apart_begin(void);
/* Ends the helper process. */
void apart_end(void);

/* Runs a job. *answer: what it wrote, and a zero byte; owned by the caller. ERR_DATA naming path
 * and the cause where the job did not finish; ERR_IO where no process can be made. Callable from
 * any thread; calls take turns. */
Status apart_run(const ApartJob *job, const char *path, const void *asked, size_t asked_bytes,
                 char **answer, size_t *answer_bytes);

/* Returns whether a byte that such a process has sent is a valid bool. Any other byte must not be
 * read as one. */
static inline bool apart_truth(const bool *at)
{
    return *(const unsigned char *)at <= 1;
}

#endif
