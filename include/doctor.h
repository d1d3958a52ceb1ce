/* doctor: checks whether this allocation of machines is fit to train on. It goes through a table of
 * checks: each rank measures, rank 0 judges what all ranks have measured and prints a line for each
 * check: ok; a finding with its hosts or ranks and a command to try; or skip, if nothing could be
 * measured. It changes no setting and leaves no file in the folder. */
#ifndef WEFT_DOCTOR_H
#define WEFT_DOCTOR_H

#include "parallel.h"

typedef struct DoctorOptions {
    /* folder that runs will write to; borrowed, as are all strings here */
    const char *folder;
    /* size of one checkpoint in bytes: the folder should have room for three */
    double checkpoint_bytes;
    /* print one JSON object instead of lines */
    bool json;
    /* text with a line for each version of what this program runs on; ranks compare their lines */
    const char *versions;
    /* "", or a folder that stands for / when /proc, /sys and /dev/shm are read */
    const char *root;
    /* false in a task that a launcher started and that is not its first: if MPI cannot start, only
     * the first task prints the finding */
    bool first;
} DoctorOptions;

/* Starts MPI, runs all checks and ends MPI, within 30 s: a rank that gives no answer is named, and
 * the job is ended. Returns OK even with warnings, and ERR_CONFIG if a run could not work here.
 * Collective. */
Status doctor_run(const DoctorOptions *options);

/* ERR_BUG, naming the row, if a check lacks something. */
Status doctor_rows_check(void);
/* Returns the name of check i and sets *what to the meaning of its threshold; NULL if there is no
 * check i. Both are static. */
const char *doctor_check_name(int i, const char **what);

/* Runs one part of the checks on files, in a separate process, because a file system may never
 * answer. task is "files:NAME", "leave:NAME", "find:NAME" or "remove:NAME". Prints to stdout what
 * it measures as it goes. ERR_USAGE: there is no such task. */
Status doctor_probe(const char *task, const char *folder);

#endif
