/* A verification: runs of a few steps that should all end in the same bits. */
#ifndef WEFT_CLI_VERIFY_H
#define WEFT_CLI_VERIFY_H

#include "private.h"

#include "checkpoint.h"

/* One run: its grid and what is set beside it, and what came out. */
typedef struct Trial {
    GridShape shape;
    /* borrowed words; NULL: as the configuration says */
    const char *schedule, *zero, *transport;
    /* owned: "2x1x1 gpipe" */
    char *name;
    double seconds;
    CheckpointHashes hashes;
    /* of all hashes */
    uint64_t hash;
    /* owned: its warnings, a line each; "" for none */
    char *said;
    /* owned: of each step, as metrics.jsonl has it */
    char **loss;
} Trial;

typedef struct Verification {
    /* CONFIG key=value ... */
    int argc;
    char **argv;
    int steps;
    /* owned: where the runs' folders are */
    char *dir;
    /* the signal that ended a run, or 0 */
    int stopped;
} Verification;

/* The configuration of a trial. Owner: the caller. */
Status trial_config(Config **config, const Verification *verification, const Trial *trial);
/* Runs it and takes its losses and hashes; its folder is removed. A run that fails is shown on
 * stderr. */
Status trial_run(Verification *verification, Trial *trial);
void trial_fini(Trial *trial);
/* Removes a folder and all that is in it. */
void folder_remove(const char *path);

#endif
