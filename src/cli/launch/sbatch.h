/* Options of weft sbatch, and the contents and text of a job script. */
#ifndef WEFT_CLI_SBATCH_H
#define WEFT_CLI_SBATCH_H

#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* An option that was not given is 0, false or NULL. */
typedef struct SbatchOptions {
    int64_t nodes, tasks, cpus, gpus, chain;
    const char *time, *memory, *partition, *account, *array, *mpi, *hosts, *more, *out;
    bool any_config, force;
} SbatchOptions;
/* Letters and digits: characters that neither Slurm nor the shell reads as something else. */
extern const char sbatch_letters[];
/* sbatch_texts.c: checks all texts but the time. ERR_USAGE. */
Status sbatch_check_texts(const SbatchOptions *options);
/* Reads a time in whole minutes, Slurm's unit. ERR_USAGE. */
Status sbatch_read_minutes(const char *text, int64_t *minutes);

typedef struct Script {
    /* All texts are borrowed. job: the job's name, of characters that need no quotes; run: the
     * run's name; any_config: the script takes CONFIG and key=value as its own arguments
     * instead. */
    const char *job, *run;
    bool any_config;
    /* weft: the program or what starts it; folder: working directory; config, word: CONFIG and the
     * key=value words */
    const char *weft, *folder, *config;
    const char *const *word;
    int words;
    /* path of the script, "job.sh" if it is not known */
    const char *file;
    /* tasks: ranks per node; cpus: per rank; gpus: per node; links: jobs of a chain, 0: no chain;
     * ranks: for hosts without Slurm, 0: as many as there are slots */
    int64_t nodes, tasks, cpus, gpus, links, ranks;
    /* memory_mib: memory per node in MiB, 0: as the text `memory` says, which may be NULL;
     * planned_bytes: the plan's part of it */
    int64_t memory_mib;
    double planned_bytes;
    const char *memory;
    int64_t minutes;
    /* NULL if not given. array: Slurm's list of numbers; more: further options of sbatch, separated
     * by blanks; hosts: the host file, "" for the script's first argument */
    const char *array, *partition, *account, *mpi, *more, *hosts;
} Script;

/* Memory requested from Slurm on top of the planned memory: a share of it, and MB for each rank and
 * each node. A rank on a GPU also needs host memory for CUDA itself. */
#define SCRIPT_MARGIN 0.1
enum { SCRIPT_RANK_MB = 64, SCRIPT_GPU_RANK_MB = 4000, SCRIPT_NODE_MB = 256 };

void script_print(const Script *script, FILE *out);

#endif
