/* What a job script says, and its text. */
#ifndef WEFT_CLI_SBATCH_H
#define WEFT_CLI_SBATCH_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

typedef struct Script {
    /* Borrowed, all texts. The job's name, of characters that need no quotes; the run's, and
     * whether the script takes CONFIG and key=value as words of its own instead. */
    const char *job, *run;
    bool any_config;
    /* What starts the program, the folder that it runs in, CONFIG and its key=value words. */
    const char *weft, *folder, *config;
    const char *const *word;
    int words;
    /* Where the script will lie, "job.sh" if that is not known. */
    const char *file;
    /* gpus: of a node; links: of a chain. 0: none. ranks: of hosts without Slurm, 0: as many as
     * they have slots. */
    int64_t nodes, tasks, cpus, gpus, links, ranks;
    /* MiB of a node, and what they are for; 0: as memory says, which may be NULL. */
    int64_t memory_mib;
    double planned_bytes;
    const char *memory;
    int64_t minutes;
    /* NULL: not said. array: Slurm's list of numbers; more: options of sbatch, words between
     * blanks; hosts: the host file, "" for the script's first word */
    const char *array, *partition, *account, *mpi, *more, *hosts;
} Script;

/* What Slurm must give beside what ranks are planned to take: a share of that, and bytes for each
 * rank and for each node. On GPUs a rank has CUDA's own memory of the host, too. */
#define SCRIPT_MARGIN 0.1
enum { SCRIPT_RANK_MB = 64, SCRIPT_GPU_RANK_MB = 4000, SCRIPT_NODE_MB = 256 };

void script_print(const Script *script, FILE *out);

#endif
