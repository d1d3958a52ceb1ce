/* Options of weft sbatch, and the contents and text of a job script. */
#ifndef WEFT_CLI_SBATCH_H
#define WEFT_CLI_SBATCH_H

#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* The options of weft sbatch; 0, false or NULL: the option is not given. tasks: ranks per node;
 * cpus: per rank; gpus: per node; chain: number of jobs; more: further options of sbatch; out: path
 * of the script. */
typedef struct SbatchOptions {
    int64_t nodes, tasks, cpus, gpus, chain;
    const char *time, *memory, *partition, *account, *array, *mpi, *hosts, *more, *out;
    bool any_config, force;
} SbatchOptions;
/* Letters and digits, which have no special meaning for Slurm and the shell. */
extern const char sbatch_letters[];
/* Checks the texts in Slurm's notation except the time (sbatch_texts.c). ERR_USAGE. */
Status sbatch_check_texts(const SbatchOptions *options);
/* Reads a time and rounds it up to minutes, Slurm's unit. ERR_USAGE. */
Status sbatch_read_minutes(const char *text, int64_t *minutes);

/* Contents of a job script. All texts are borrowed. */
typedef struct Script {
    /* job: name of the job, without characters that need quotes; run: name of the run */
    const char *job, *run;
    /* true: the script has CONFIG and key=value as its own arguments */
    bool any_config;
    /* path of weft, or of the script that starts weft; working directory; CONFIG */
    const char *weft, *folder, *config;
    /* words key=value */
    const char *const *word;
    int words;
    /* path of the script, "job.sh" if it is not known */
    const char *file;
    /* tasks: ranks per node; cpus: per rank; gpus: per node */
    int64_t nodes, tasks, cpus, gpus;
    /* number of jobs of a chain; 0: no chain */
    int64_t links;
    /* number of ranks on hosts without Slurm; 0: as many as there are slots */
    int64_t ranks;
    /* memory per node in MiB, including the margin. 0: the text `memory` is used instead; if it is
     * NULL too, no memory is requested. */
    int64_t memory_mib;
    /* planned bytes of the node that needs most */
    double planned_bytes;
    const char *memory;
    /* time limit of a job */
    int64_t minutes;
    /* NULL: not given. array: Slurm's list of numbers; more: further options of sbatch, separated
     * by blanks; hosts: path of the host file, "": the script's first argument is the path */
    const char *array, *partition, *account, *mpi, *more, *hosts;
} Script;

/* Memory requested from Slurm in addition to the planned memory: a fraction of the planned memory,
 * and MB for each rank and each node. A rank on a GPU also needs host memory for CUDA itself. */
#define SCRIPT_MARGIN 0.1
enum { SCRIPT_RANK_MB = 64, SCRIPT_GPU_RANK_MB = 4000, SCRIPT_NODE_MB = 256 };

/* Writes the job script to out. */
void script_print(const Script *script, FILE *out);

#endif
