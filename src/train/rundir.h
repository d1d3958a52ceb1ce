/* A run's folder: runs/NAME with config.yaml, metrics.jsonl, events, checkpoints/. One process at a
 * time may own it. */
#ifndef WEFT_TRAIN_RUNDIR_H
#define WEFT_TRAIN_RUNDIR_H

#include "config.h"
#include "tensor.h"

typedef struct RunDir {
    /* owned: runs/NAME, runs/NAME/checkpoints, .../best.h5; runs/NAME/trace.json */
    char *path, *checkpoints, *best, *trace;
    /* owned; NULL: not this process's */
    Lease *lease;
} RunDir;

/* Paths only: touches nothing. */
void run_dir_init(RunDir *dir, const Config *config);
/* Makes the folders and takes the lease: ERR_IO where they cannot be made, ERR_CONFIG where another
 * run is in there. beat_s: run.heartbeat_s. */
Status run_dir_open(RunDir *dir, double beat_s);
/* *path: a file that an earlier run has left here, owned by the caller; NULL: none has. */
Status run_dir_earlier(const RunDir *dir, char **path);
/* Moves what earlier runs have left to earlier-1 (or the next number that is free) in the folder;
 * nothing is deleted. ERR_IO. */
Status run_dir_set_aside(const RunDir *dir);
/* Writes the resolved configuration, through a temporary file. */
Status run_dir_write_config(const RunDir *dir, const Config *config);
/* The same for the record of algorithms (train.cuda_tune), algorithms.txt. */
Status run_dir_write_algorithms(const RunDir *dir, const AlgorithmRecord *record);
/* Makes the folder of checkpoints again where somebody has removed it, or moved it away. What else
 * is wrong with it whoever writes there will say. */
void run_dir_mend(const RunDir *dir);
void run_dir_fini(RunDir *dir);
/* runs/NAME/checkpoints/step-00001200.h5; owned by the caller. */
char *run_dir_checkpoint(const RunDir *dir, int64_t step);

#endif
