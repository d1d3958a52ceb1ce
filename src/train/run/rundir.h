/* A run's folder: runs/NAME with config.yaml, metrics.jsonl, events, checkpoints/. Only one process
 * at a time may own the folder. */
#ifndef WEFT_TRAIN_RUNDIR_H
#define WEFT_TRAIN_RUNDIR_H

#include "config.h"
#include "tensor.h"
#include "topo.h"

typedef struct RunDir {
    /* path of the folder, for example runs/NAME; owned */
    char *path;
    /* path of runs/NAME/checkpoints; owned */
    char *checkpoints;
    /* path of runs/NAME/checkpoints/best.h5; owned */
    char *best;
    /* path of runs/NAME/trace.json; owned */
    char *trace;
    /* lease on the folder; NULL: this process does not own the folder; owned */
    Lease *lease;
} RunDir;

/* Sets the paths; touches no file. */
void run_dir_init(RunDir *dir, const Config *config);
/* Makes the folder and its folder of checkpoints, and takes the lease. Returns ERR_IO if they
 * cannot be made, ERR_CONFIG if another run uses them, or another error of lease_take. beat_s:
 * run.heartbeat_s. */
Status run_dir_open(RunDir *dir, double beat_s);
/* Sets *path to a checkpoint or log of an earlier run in this folder; NULL: there is none. Owner:
 * the caller. ERR_IO: a folder cannot be listed. */
Status run_dir_earlier(const RunDir *dir, char **path);
/* Moves the files of an earlier run, if there is one, to the subfolder earlier-1 (or the next free
 * number), and makes the folder of checkpoints again. Until all are moved, that folder is called
 * earlier-1.part: if this process ends meanwhile, the next start moves the others to it. Deletes
 * nothing. ERR_IO: a file cannot be moved, or a folder cannot be made or listed. */
Status run_dir_set_aside(const RunDir *dir);
/* Moves back the files that a run_dir_set_aside without an end has moved, if there was one. ERR_IO:
 * as for run_dir_set_aside. */
Status run_dir_take_back(const RunDir *dir);
/* Writes the resolved configuration to config.yaml, through a temporary file. */
Status run_dir_write_config(const RunDir *dir, const Config *config);
/* Writes the record of algorithms (train.cuda_tune) to algorithms.txt, through a temporary file. */
Status run_dir_write_algorithms(const RunDir *dir, const AlgorithmRecord *record);
/* Writes the nodes and ranks of the run to topo.json, through a temporary file. */
Status run_dir_write_topology(const RunDir *dir, const Topology *topo);
/* Creates the folder of checkpoints again if it was removed or moved away. Other problems with the
 * folder are reported when files are written. */
void run_dir_mend(const RunDir *dir);
/* Ends the lease and frees the paths. */
void run_dir_fini(RunDir *dir);
/* Returns the path of a step's checkpoint, such as runs/NAME/checkpoints/step-00001200.h5. Owner:
 * the caller. */
char *run_dir_checkpoint(const RunDir *dir, int64_t step);

#endif
