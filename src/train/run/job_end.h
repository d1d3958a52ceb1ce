/* The end of the batch job that this process belongs to, as Slurm reports it during training. Only
 * rank 0 uses this. */
#ifndef WEFT_TRAIN_JOB_END_H
#define WEFT_TRAIN_JOB_END_H

#include "base.h"

#include <sys/types.h>

typedef struct JobEnd {
    /* Slurm's job number, borrowed from the environment; NULL: there is no job, and no query is
     * sent */
    const char *job;
    /* end of the job, by the monotonic clock; INFINITY: no end, or not known */
    double end_s;
    /* Slurm has reported when the job ends, or that it has no end */
    bool known;
    /* time of the next query, by the monotonic clock */
    double next_s;
    /* process of squeue; 0: none */
    pid_t child;
    /* pipe with its answer; -1: no query is open */
    int answer;
    /* clock when the query was sent */
    double query_s;
    /* the answer so far, and the length of it */
    char text[512];
    size_t length;
    /* a missing answer has been logged */
    bool warned;
} JobEnd;

/* Reads the environment and sends the first query. Release with job_end_fini. */
void job_end_init(JobEnd *end);
void job_end_fini(JobEnd *end);
/* Reads squeue's answer if it has arrived, and sends the next query when it is due: more often as
 * the end of the job approaches. margin_s: seconds that the run needs before the end. Does not
 * wait. */
void job_end_poll(JobEnd *end, double margin_s);
/* Returns true if less than margin_s seconds are left. Returns false while a query is open,
 * because the job may have got more time. */
bool job_end_near(const JobEnd *end, double margin_s);

/* ---- for tests ---- */

/* Parses the output of squeue --format '%A %L': sets *left_s to the job's remaining seconds,
 * INFINITY without a limit. Returns false if the job is not in it. */
bool job_end_read(const char *text, const char *job, double *left_s);

#endif
