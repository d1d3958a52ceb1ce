/* What weft run knows of the training that it starts, and how it finds the ranks of a start. */
#ifndef WEFT_CLI_SUPERVISE_H
#define WEFT_CLI_SUPERVISE_H

#include "attend.h"
#include "checkpoint.h"
#include "hosts.h"
#include "private.h"

typedef struct RunFlags {
    /* not given: 0 */
    int64_t ranks, nodes, each, restarts;
    /* Starter, -1: not given */
    int starter;
    const char *hostfile, *logs;
} RunFlags;

typedef struct Supervisor {
    const RunFlags *flags;
    /* owned; those of `weft train`, CONFIG first, are borrowed */
    Config *config;
    int argc;
    char **argv;
    /* owned: the whole command of a rank */
    char **command;
    Hosts hosts;
    Attend attend;
    /* owned: the run's folder and its checkpoints */
    char *folder, *checkpoints;
    char id[LEASE_ID];
    /* ranks as wanted, and of the next start; what a replica takes of them, and which serve */
    int wanted, ranks, replica, servers;
    /* this start, from 1; starts in turn without a newer checkpoint; the last folder of logs */
    int start, fruitless, log_number;
    /* owned: step files that are no progress, for they were there before the start under way */
    KnownFiles *seen;
    /* of the newest checkpoint that a start has left, -1: none; is there any, of whichever run? */
    int64_t step;
    bool any;
} Supervisor;

/* argv: the words behind --. Reads the configuration and finds the hosts; nothing is started.
 * Release with supervise_fini also where it failed. */
Status supervise_init(Supervisor *s, int argc, char **argv);
void supervise_fini(Supervisor *s);
/* Which ranks the next start has. again: hosts are asked whether they are there, and where too few
 * are for a replica it waits for them. ERR_STOPPED: a signal came meanwhile; ERR_IO. */
Status supervise_gather(Supervisor *s, bool again);
/* Waits before try n (1: a second, 2: two, 4, ... a minute). ERR_STOPPED: a signal came. */
Status supervise_rest(Supervisor *s, int n);

#endif
