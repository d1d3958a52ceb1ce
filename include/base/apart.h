/* Work on a file that a stranger may have made, in a process of its own with limits: where it
 * crashes, hangs or wants more memory than it may have, that process ends and no other. Not
 * collective. */
#ifndef WEFT_BASE_APART_H
#define WEFT_BASE_APART_H

#include "base/status.h"

#include <stddef.h>
#include <stdio.h>

typedef struct ApartJob {
    /* for messages: "HDF5, reading what is in it," */
    const char *who;
    /* beyond what the process has when it begins; sanitizers cannot have this limit */
    size_t memory_bytes;
    /* of the processor; by the clock */
    int busy_s, clock_s;
    /* the longest answer */
    size_t answer_bytes;
    /* the longest file that it may write; 0: none */
    size_t file_bytes;
    /* Ends with its process: it has nothing to free, and what it prints goes nowhere. */
    void (*work)(const void *asked, size_t asked_bytes, FILE *answer);
} ApartJob;

/* From now on the processes of apart_run come from one that is made here and does nothing else. For
 * callers that will start MPI or threads: a copy of a process with those is not safe to work in,
 * and one of much memory takes long. Once; what a job points to is the program's own.
 * Failing, apart_run makes them from its caller as without. */
void apart_begin(void);
/* Ends that process. */
void apart_end(void);

/* Does job's work. *answer: what it wrote, and a zero byte; owned by the caller. ERR_DATA that
 * names path and how it ended, where it did not come to its end; ERR_IO where no process can be
 * made. From any thread, one at a time. */
Status apart_run(const ApartJob *job, const char *path, const void *asked, size_t asked_bytes,
                 char **answer, size_t *answer_bytes);

/* Of bytes that such a process has sent: is what lies there true or false? Anything else must not
 * be read as one. */
static inline bool apart_truth(const bool *at)
{
    return *(const unsigned char *)at <= 1;
}

#endif
