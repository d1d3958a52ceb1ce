/* doctor: is this allocation fit to train on? A table of checks: each rank measures, rank 0 judges
 * what all have measured, and prints a line for each check: ok, or what is the matter, where, and a
 * command that mends it; skip, where nothing could be measured. No setting is changed, and nothing
 * stays in the folder. */
#ifndef WEFT_DOCTOR_H
#define WEFT_DOCTOR_H

#include "parallel.h"

typedef struct DoctorOptions {
    /* where runs will write; borrowed like all of these */
    const char *folder;
    /* of one checkpoint: the folder is to have room for three */
    double checkpoint_bytes;
    /* one object instead of lines */
    bool json;
    /* a line for each version of what this program runs on; lines are compared between ranks */
    const char *versions;
    /* "", or the folder below which /proc and /sys are looked for */
    const char *root;
    /* False: one of many tasks that a launcher has started, and not the first of them. What is
     * wrong with MPI itself is said by the first alone. */
    bool first;
} DoctorOptions;

/* Starts MPI, does all checks, ends MPI. Within 30 s: who gives no answer is named, and the job
 * ended. OK also with warnings; ERR_CONFIG: a run could not work here. Collective. */
Status doctor_run(const DoctorOptions *options);

/* The name of check i, and what its threshold is, in words; NULL: there are no more. */
const char *doctor_check_name(int i, const char **what);

/* A part of the checks on files, in a process of its own: file systems may answer never. task:
 * "files:NAME", "leave:NAME", "find:NAME", "remove:NAME". Prints what it measures to stdout as it
 * goes. ERR_USAGE: no such task. */
Status doctor_probe(const char *task, const char *folder);

#endif
