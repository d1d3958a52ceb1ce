/* doctor: checks whether this allocation of machines is fit to train on. The checks are rows of a
 * table. For each check all ranks measure, and rank 0 judges the measurements and prints "ok", or
 * "skip" if nothing could be measured, or findings. A finding names the hosts or ranks that have a
 * problem, and a command to try. Doctor changes no setting, and leaves no file in the folder that
 * it tests. */
#ifndef WEFT_DOCTOR_H
#define WEFT_DOCTOR_H

#include "parallel.h"

typedef struct DoctorOptions {
    /* folder to which runs will write; borrowed, as are all strings of this struct */
    const char *folder;
    /* bytes of one checkpoint; the folder should have space for three */
    double checkpoint_bytes;
    /* true: the result is printed as one JSON object instead of lines */
    bool json;
    /* the lines of `weft --version`, which doctor compares between ranks */
    const char *versions;
    /* "", or the path of a folder that doctor uses in place of / when /proc, /sys and /dev/shm are
     * read */
    const char *root;
    /* true: this process is the launcher's first task, or the only process. If MPI cannot start,
     * only the first task prints the finding. */
    bool is_first_task;
} DoctorOptions;

/* Starts MPI, runs all checks and ends MPI, within about 30 s. If a rank does not answer in time,
 * ends the job with a message that names the check. Returns OK even if there are warnings.
 * ERR_CONFIG: a run could not work here. Collective; all ranks return the same Status. */
Status doctor_run(const DoctorOptions *options);

/* Checks that all rows of the table are complete. ERR_BUG names the first row that is not. */
Status doctor_rows_check(void);
/* Returns the name of check i and sets *threshold_meaning to a text such as "threads per core".
 * Returns NULL if there is no check i. Both texts are static. */
const char *doctor_check_name(int i, const char **threshold_meaning);

/* Runs one part of the checks on files. It is called in a separate process, because a file system
 * may never answer. probe: "folder:NAME" tests the folder. "make:NAME" makes a test file in the
 * folder, "find:NAME" looks for it for up to 5 s, and "remove:NAME" removes it. The name of the
 * test file contains NAME. If the folder does not exist, its nearest existing parent is used. NAME
 * consists of lower-case letters and digits; "folder:NAME" ignores it. Prints each result to stdout
 * as soon as it is known. ERR_USAGE: `probe` has another form. */
Status doctor_probe(const char *probe, const char *folder);

#endif
