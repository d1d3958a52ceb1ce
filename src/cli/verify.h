/* A verification: runs of a few steps that should all end in the same bits. */
#ifndef WEFT_CLI_VERIFY_H
#define WEFT_CLI_VERIFY_H

#include "launch/attend.h"
#include "private.h"

#include "checkpoint.h"

/* One run: its grid and other settings, and its results. */
typedef struct Trial {
    GridShape shape;
    /* settings, borrowed; NULL: as in the configuration */
    const char *schedule, *zero, *transport;
    /* name for messages, "2x1x1, gpipe"; owned */
    char *name;
    double seconds;
    CheckpointHashes hashes;
    /* hash over all of `hashes` */
    uint64_t hash;
    /* warnings of the run, one a line, "" if there are none; owned */
    char *said;
    /* loss of each step as text from metrics.jsonl; owned */
    char **loss;
} Trial;

typedef struct Verification {
    /* CONFIG key=value ... */
    int argc;
    char **argv;
    int steps;
    /* folder for the runs' folders; owned */
    char *dir;
    /* `first` is the signal that ended a run */
    Attend attend;
} Verification;

/* Makes the configuration of a trial. Owned by the caller. */
Status trial_config(Config **config, const Verification *verification, const Trial *trial);
/* Runs a trial, reads its losses and hashes, and removes its folder. A failed run's log is printed
 * on stderr. */
Status trial_run(Verification *verification, Trial *trial);
void trial_fini(Trial *trial);
/* Removes a folder with its contents. */
void folder_remove(const char *path);

#endif
