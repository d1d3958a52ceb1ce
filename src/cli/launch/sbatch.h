/* Options of weft sbatch, and the contents and text of a job script. */
#ifndef WEFT_CLI_SBATCH_H
#define WEFT_CLI_SBATCH_H

#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* The options of weft sbatch. 0, false or NULL: the option is not given. tasks: number of ranks per
 * node. cpus: number of cores per rank. gpus: number of GPUs per node. chain: number of jobs.
 * hosts: path of a host file. more: further options of sbatch. out: path of the script. */
typedef struct SbatchOptions {
    int64_t nodes, tasks, cpus, gpus, chain;
    const char *time, *memory, *partition, *account, *array, *mpi, *hosts, *more, *out;
    bool any_config, force;
} SbatchOptions;
/* All letters and digits: characters that have no special meaning for Slurm and the shell. */
extern const char sbatch_letters[];
/* Checks the options whose values are in Slurm's notation, except the time. ERR_USAGE: a value is
 * wrong. */
Status sbatch_check_texts(const SbatchOptions *options);
/* Reads a length of time and rounds it up to minutes, Slurm's unit. ERR_USAGE: the text is no
 * length of time. */
Status sbatch_read_minutes(const char *text, int64_t *minutes);

/* Contents of a job script. All texts are borrowed. */
typedef struct Script {
    /* name of the job, without characters that need quotes */
    const char *job;
    /* name of the run */
    const char *run;
    /* true: the script takes CONFIG and key=value words as its own arguments */
    bool any_config;
    /* path of weft, or of the script that starts weft */
    const char *weft;
    /* working directory of the run */
    const char *folder;
    /* path of the configuration */
    const char *config;
    /* key=value words of the run, [words] */
    const char *const *word;
    int words;
    /* path of this script; "job.sh" if it is not known */
    const char *file;
    int64_t nodes;
    /* number of ranks per node */
    int64_t tasks;
    /* number of cores per rank */
    int64_t cpus;
    /* number of GPUs per node; 0: none */
    int64_t gpus;
    /* number of jobs of a chain; 0: no chain */
    int64_t links;
    /* number of ranks on hosts without Slurm; 0: as many as the hosts have slots */
    int64_t ranks;
    /* planned memory per node in MiB, including the margin; 0: not planned */
    int64_t memory_mib;
    /* planned memory, without the margin, of the node that needs most, in bytes */
    double planned_bytes;
    /* value of --mem; NULL: not given. If it is NULL and memory_mib is 0, no memory is
     * requested. */
    const char *memory;
    /* time limit of a job in minutes */
    int64_t minutes;
    /* The texts below are NULL if they are not given. array: Slurm's list of task numbers. more:
     * further options of sbatch, separated by blanks. hosts: path of the host file; "": the
     * script's first argument is the path. */
    const char *array, *partition, *account, *mpi, *more, *hosts;
} Script;

/* Memory of a node that is requested from Slurm in addition to the planned memory: the fraction
 * SCRIPT_MARGIN of the planned memory, SCRIPT_RANK_MB or SCRIPT_GPU_RANK_MB for each rank, and
 * SCRIPT_NODE_MB. A rank on a GPU needs more, because CUDA itself needs host memory. */
#define SCRIPT_MARGIN 0.1
enum { SCRIPT_RANK_MB = 64, SCRIPT_GPU_RANK_MB = 4000, SCRIPT_NODE_MB = 256 };

/* Writes the job script to out. */
void script_print(const Script *script, FILE *out);

#endif
