/* State of weft run: the training that it starts, and the choice of ranks for each start. */
#ifndef WEFT_CLI_SUPERVISE_H
#define WEFT_CLI_SUPERVISE_H

#include "attend.h"
#include "checkpoint.h"
#include "hosts.h"
#include "../private.h"

typedef struct RunFlags {
    /* 0 if not given */
    int64_t ranks, nodes, each, restarts;
    /* Starter; -1 if not given */
    int starter;
    const char *hostfile, *logs;
} RunFlags;

typedef struct Supervisor {
    const RunFlags *flags;
    /* config: owned; argv: words behind `weft train`, CONFIG first, borrowed */
    Config *config;
    int argc;
    char **argv;
    /* complete command of a rank; owned */
    char **command;
    Hosts hosts;
    Attend attend;
    /* the run's folder and its folder of checkpoints; owned */
    char *folder, *checkpoints;
    char id[LEASE_ID];
    /* wanted: number of ranks with all hosts; ranks: of the next start; replica: ranks per replica;
     * servers: ranks that are servers */
    int wanted, ranks, replica, servers;
    /* start: number of the current start, from 1; fruitless: consecutive starts without a newer
     * checkpoint; log_number: number of the last folder of logs */
    int start, fruitless, log_number;
    /* checkpoint files that do not count as progress, because they were there before the current
     * start; owned */
    KnownFiles *seen;
    /* step: step of the newest checkpoint that a start has left, -1: none; any: there is a
     * checkpoint, from this or an earlier run */
    int64_t step;
    bool any;
} Supervisor;

/* Reads the configuration and finds the hosts; starts nothing. argv: the words behind --. Release
 * with supervise_fini, after a failure too. */
Status supervise_init(Supervisor *s, int argc, char **argv);
void supervise_fini(Supervisor *s);
/* Chooses the ranks of the next start. again: probes the hosts, and waits while
 * too few do for one replica. ERR_STOPPED: a signal arrived meanwhile; ERR_IO: gave up waiting. */
Status supervise_gather(Supervisor *s, bool again);
/* Waits before attempt n (a second before the first, 2 before the next, 4, ... at most a minute).
 * ERR_STOPPED: a signal arrived. */
Status supervise_rest(Supervisor *s, int n);

#endif
