/* doctor: checks whether this allocation of machines is fit to train on. For each check in a table,
 * all ranks measure, and rank 0 judges the measurements and prints a line: "ok"; a finding with its
 * hosts or ranks and a command to try; or "skip", if nothing could be measured. No setting is
 * changed, and no file stays in the folder. */
#ifndef WEFT_DOCTOR_H
#define WEFT_DOCTOR_H

#include "parallel.h"

typedef struct DoctorOptions {
    /* folder that runs will write to; borrowed, as are all strings here */
    const char *folder;
    /* size of one checkpoint in bytes; the folder should have space for three */
    double checkpoint_bytes;
    /* true: one JSON object is printed instead of lines */
    bool json;
    /* the lines of `weft --version`, which are compared between ranks */
    const char *versions;
    /* "", or a folder that is used in place of / when /proc, /sys and /dev/shm are read */
    const char *root;
    /* true: this process is the launcher's first task, or the only process. If MPI cannot start,
     * only the first task prints the finding. */
    bool first;
} DoctorOptions;

/* Starts MPI, runs all checks and ends MPI, within about 30 s: if a rank does not answer in time,
 * the job is ended with a message that names the check. Returns OK even if there are warnings.
 * ERR_CONFIG: a run could not work here. Collective; all ranks return the same Status. */
Status doctor_run(const DoctorOptions *options);

/* Checks that all rows of the table are complete. ERR_BUG names the first row that is not. */
Status doctor_rows_check(void);
/* Returns the name of check i and sets *threshold_meaning to a text such as "threads per core".
 * Returns NULL if there is no check i. Both texts are static. */
const char *doctor_check_name(int i, const char **threshold_meaning);

/* Runs one part of the checks on files. It is called in a separate process, because a file system
 * may never answer. task is "folder:NAME", "make:NAME", "find:NAME" or "remove:NAME". Prints each
 * result to stdout at once. ERR_USAGE: there is no such task. */
Status doctor_probe(const char *task, const char *folder);

#endif
