/* The state of weft run, and the choice of ranks for each start of the training. */
#ifndef WEFT_CLI_SUPERVISOR_H
#define WEFT_CLI_SUPERVISOR_H

#include "runner.h"
#include "checkpoint.h"
#include "hosts.h"
#include "../private.h"

/* The flags of weft run. */
typedef struct RunFlags {
    /* number of ranks; 0: not given */
    int64_t ranks;
    /* number of hosts; 0: not given */
    int64_t nodes;
    /* number of ranks per host; 0: not given */
    int64_t per_node;
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
    /* words after `weft train` on the command line, CONFIG first; borrowed */
    int argc;
    char **argv;
    /* words of the command that each rank of the next start runs; NULL follows the last; owned */
    char **command;
    Hosts hosts;
    Runner runner;
    /* path of the run's folder; owned */
    char *folder;
    /* path of the run's folder of checkpoints; owned */
    char *checkpoints;
    /* id of this process; it is in the leases of all its starts */
    char id[RANDOM_ID_BYTES];
    /* number of ranks if all hosts answer */
    int ranks_wanted;
    /* number of ranks of the current or next start */
    int ranks;
    int ranks_per_replica;
    /* number of ranks that are servers of sparse tables */
    int servers;
    /* number of the current start, from 1; 0: none yet */
    int start_number;
    /* number of consecutive starts, up to the last one, that wrote no newer checkpoint */
    int fruitless_starts;
    /* K of the newest log folder, DIR/start-K; 0: none yet */
    int log_number;
    /* checkpoint files that existed before the current start, and so are no sign of progress;
     * owned */
    KnownFiles *known_checkpoints;
    /* step of the newest checkpoint that a start by this process has written; -1: none */
    int64_t checkpoint_step;
    /* true: the run has a checkpoint, whoever has written it */
    bool has_checkpoint;
} Supervisor;

/* Reads the command and its configuration, finds the hosts, and sets `ranks_wanted` and `ranks`.
 * Starts no ranks, but may run scontrol, and sets environment variables for mpirun. argv: the words
 * after "--". Before the call, `flags` must be set, `checkpoint_step` must be -1 and all other
 * fields 0. The caller initialises `runner` afterwards. Release with supervisor_fini, also after a
 * failure. */
Status supervisor_init(Supervisor *s, int argc, char **argv);
void supervisor_fini(Supervisor *s);
/* Chooses the ranks of the next start. If hosts are lost, there are fewer replicas. again: true
 * before all starts but the first; the hosts are then probed. Waits while the hosts that answer
 * have no room for one replica. ERR_STOPPED: a signal arrived meanwhile. ERR_IO: too few hosts
 * answered in time, or no pipe could be made. ERR_BUG: the process that plans fewer replicas
 * failed. If no number of replicas can be planned, returns the planner's error. */
Status supervisor_choose_ranks(Supervisor *s, bool again);
/* Waits before attempt n, counted from 1: 1 second before the first attempt, 2 seconds before the
 * second, then 4 seconds and so on, at most a minute. ERR_STOPPED: a signal arrived. */
Status supervisor_backoff(Supervisor *s, int n);

#endif
