/* A verification: runs of a few steps, all of which should end with the same bits. */
#ifndef WEFT_CLI_VERIFY_H
#define WEFT_CLI_VERIFY_H

#include "launch/runner.h"
#include "private.h"

#include "checkpoint.h"

/* One run: its grid and other settings, and its results. */
typedef struct Trial {
    GridShape shape;
    /* values of grid.pipeline_schedule, grid.zero, grid.transport and train.threads, borrowed;
     * NULL: as configured */
    const char *schedule, *zero, *transport, *threads;
    /* name for messages, "2x1x1, gpipe"; owned */
    char *name;
    /* wall time of the run, including the start and the end of its processes */
    double seconds;
    /* hash of each tensor in the run's checkpoint; owned */
    CheckpointHashes hashes;
    /* hash over all of `hashes` */
    uint64_t hash;
    /* lines of the run's log with warnings, each after "  | "; "" if there are none; owned */
    char *warnings;
    /* loss of each step as text from metrics.jsonl, [steps], then NULL; owned */
    char **loss;
} Trial;

typedef struct Verification {
    /* the words CONFIG key=value ...; borrowed */
    int argc;
    char **argv;
    /* number of steps of each run */
    int steps;
    /* folder for the configuration, the log and the folder of the current run; owned */
    char *dir;
    /* runs the ranks; runner.first_signal is the signal that ended a run */
    Runner runner;
} Verification;

/* Makes the configuration of a trial, owned by the caller; run.dir and run.name are still the
 * user's. */
Status trial_make_config(Config **config, const Verification *verification, const Trial *trial);
/* Runs a trial, reads its losses, hashes and warnings, and removes its folder. A failed run's log
 * is printed on stderr. ERR_STOPPED: a signal has ended the run. */
Status trial_run(Verification *verification, Trial *trial);
void trial_fini(Trial *trial);
/* Removes a folder with its contents. */
void folder_remove(const char *path);

#endif
