/* The end of the batch job that this process belongs to, as Slurm reports it during training. Only
 * rank 0 uses this. */
#ifndef WEFT_TRAIN_JOB_END_H
#define WEFT_TRAIN_JOB_END_H

#include "base.h"

#include <sys/types.h>

typedef struct JobEnd {
    /* Slurm's job number, borrowed from the environment; NULL: the process is in no job, and no
     * query is sent */
    const char *job;
    /* end of the job, by the monotonic clock; INFINITY: the job has no end, or it is not known */
    double end_s;
    /* true: Slurm has reported the end of the job, or that it has none */
    bool known;
    /* time of the next query, by the monotonic clock */
    double next_s;
    /* process id of squeue; 0: it does not run */
    pid_t child;
    /* read end of the pipe with squeue's answer; -1: no query is open */
    int answer;
    /* time (clock_s) at which the query was sent */
    double query_s;
    /* the answer so far */
    char text[512];
    /* length of the answer so far */
    size_t length;
    /* true: the log already says that squeue does not give the end */
    bool warned;
} JobEnd;

/* Reads the end of the job from the environment, and sends the first query. Release with
 * job_end_fini. */
void job_end_init(JobEnd *end);
/* Ends the query that is open; kills squeue. */
void job_end_fini(JobEnd *end);
/* Reads squeue's answer if it has arrived, and sends the next query when it is due; queries become
 * more frequent as the end of the job approaches. margin_s: seconds that the run needs before the
 * end. Does not wait. */
void job_end_poll(JobEnd *end, double margin_s);
/* Returns true if at most margin_s seconds are left. Returns false while a query is open, because
 * the answer may be a later end. */
bool job_end_near(const JobEnd *end, double margin_s);

/* ---- for tests ---- */

/* Parses the output of squeue --format '%A %L': sets *left_s to the job's remaining seconds,
 * INFINITY without a limit. Returns false if the output does not contain the job. */
bool job_end_read(const char *text, const char *job, double *left_s);

#endif
