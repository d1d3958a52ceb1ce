/* When the batch job ends that this process is in, asked from Slurm while training goes on. Rank
 * 0's alone. */
#ifndef WEFT_TRAIN_JOB_END_H
#define WEFT_TRAIN_JOB_END_H

#include "base.h"

#include <sys/types.h>

typedef struct JobEnd {
    /* Slurm's number of the job; borrowed from the environment. NULL: no job, nothing is asked. */
    const char *job;
    /* by the monotonic clock; INFINITY: without end, or not known */
    double end_s;
    bool known;
    /* when to ask next, by the monotonic clock */
    double next_s;
    /* squeue; 0: it has gone */
    pid_t child;
    /* where it answers, a pipe; -1: nothing is asked just now */
    int answer;
    double asked_s;
    char text[512];
    size_t length;
    /* that it did not answer, or that the end is not known */
    bool complained;
} JobEnd;

/* From the environment, and asks for the first time. Release with job_end_fini. */
void job_end_init(JobEnd *end);
void job_end_fini(JobEnd *end);
/* Takes an answer that has come, and asks again where it is time: the more often the nearer the end
 * is, of which margin_s seconds are needed. Never waits. */
void job_end_look(JobEnd *end, double margin_s);
/* Is less than margin_s left? Not while a question is in progress: the job may have got more
 * time. */
bool job_end_near(const JobEnd *end, double margin_s);

/* ---- for tests ---- */

/* What squeue --format '%A %L' says of a job: the seconds that are left, INFINITY where there is no
 * limit. False where it says nothing of it. */
bool job_end_read(const char *text, const char *job, double *left_s);

#endif
