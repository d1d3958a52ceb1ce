/* A verification: several runs of a few steps, which should all end with the same bits. */
#ifndef WEFT_CLI_VERIFY_H
#define WEFT_CLI_VERIFY_H

#include "launch/runner.h"
#include "private.h"

#include "checkpoint.h"

/* One of the runs: its grid and other settings, and its results. */
typedef struct Trial {
    GridShape shape;
    /* values of grid.pipeline_schedule, grid.zero, grid.transport and train.threads, borrowed;
     * NULL: as configured */
    const char *schedule, *zero, *transport, *threads;
    /* name for messages, such as "2x1x1, gpipe"; owned */
    char *name;
    /* wall time of the run, including the start and the end of its processes */
    double seconds;
    /* hash of each tensor in the run's checkpoint; owned */
    CheckpointHashes hashes;
    /* hash of the paths and hashes of all tensors */
    uint64_t hash;
    /* lines of the run's log with warnings, each after "  | "; "": there are none; owned */
    char *warnings;
    /* loss of each step as text from metrics.jsonl, [steps], and then NULL; owned */
    char **loss;
} Trial;

/* Settings and state that the trials share. */
typedef struct Verification {
    /* the words CONFIG key=value ... of the command line, [argc]; borrowed */
    int argc;
    char **argv;
    /* number of steps of each run */
    int steps;
    /* folder that has the configuration, the log and the run's folder of the current trial;
     * owned */
    char *dir;
    /* runs the ranks; runner.first_signal is the signal that has ended a run */
    Runner runner;
} Verification;

/* Makes the configuration of a trial, which the caller owns. It still has the user's run.dir and
 * run.name. */
Status trial_make_config(Config **config, const Verification *verification, const Trial *trial);
/* Runs a trial, reads its losses, hashes and warnings, and removes the run's folder. Prints the log
 * of a failed run on stderr. ERR_STOPPED: a signal has ended the run. */
Status trial_run(Verification *verification, Trial *trial);
void trial_fini(Trial *trial);
/* Removes a folder with its contents. */
void folder_remove(const char *path);

#endif
