/* State of weft run: the training that it starts, and the choice of ranks for each start. */
#ifndef WEFT_CLI_SUPERVISOR_H
#define WEFT_CLI_SUPERVISOR_H

#include "runner.h"
#include "checkpoint.h"
#include "hosts.h"
#include "../private.h"

typedef struct RunFlags {
    /* numbers of ranks, of hosts, and of ranks per host; 0: not given */
    int64_t ranks, nodes, per_node;
    /* largest number of restarts */
    int64_t restarts;
    /* program that starts ranks (Starter, hosts.h); -1: not given */
    int starter;
    const char *hostfile, *log_dir;
} RunFlags;

typedef struct Supervisor {
    const RunFlags *flags;
    /* owned */
    Config *config;
    /* words after `weft train`, CONFIG first; borrowed */
    int argc;
    char **argv;
    /* complete command of a rank, for the next start; owned */
    char **command;
    Hosts hosts;
    Runner runner;
    /* the run's folder and its folder of checkpoints; owned */
    char *folder, *checkpoints;
    /* id of this weft run, for the leases of its starts */
    char id[RANDOM_ID_BYTES];
    /* number of ranks if all hosts answer; number of ranks of the current or next start */
    int wanted, ranks;
    int ranks_per_replica;
    /* number of ranks that are servers of sparse tables */
    int servers;
    /* number of the current start, from 1; 0: none yet */
    int start;
    /* consecutive starts without a newer checkpoint */
    int fruitless_starts;
    /* K of the last folder of logs, DIR/start-K; 0: none yet */
    int log_number;
    /* checkpoint files that existed before the current start and are therefore no sign of progress;
     * owned */
    KnownFiles *known_checkpoints;
    /* step of the newest checkpoint written by a start of this weft run; -1: none */
    int64_t step;
    /* true: there is a checkpoint, of this weft run or an earlier one */
    bool has_checkpoint;
} Supervisor;

/* Reads the command and its configuration, finds the hosts, and sets `wanted` and `ranks`. Starts
 * no ranks, but may run scontrol, and sets environment variables for launchers. argv: the words
 * after --. The caller has set `flags`, `step` to -1 and all else to 0, and initialises `runner`
 * afterwards. Release with supervisor_fini, also after a failure. */
Status supervisor_init(Supervisor *s, int argc, char **argv);
void supervisor_fini(Supervisor *s);
/* Chooses the ranks of the next start, with fewer replicas if hosts are lost. again: first probes
 * the hosts, and waits while those that answer have no room for one replica. ERR_STOPPED: a signal
 * arrived meanwhile; ERR_IO: too few hosts answered in time; ERR_BUG: the planner's process failed;
 * the planner's status: it can plan no number of replicas. */
Status supervisor_choose_ranks(Supervisor *s, bool again);
/* Waits before attempt n, from 1 on: 1 second before the first, 2 seconds before the second, then
 * 4, ..., at most a minute. ERR_STOPPED: a signal arrived. */
Status supervisor_backoff(Supervisor *s, int n);

#endif
