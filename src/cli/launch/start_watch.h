/* Observes ranks between their start and their first step, for the process that starts them. */
#ifndef WEFT_CLI_START_WATCH_H
#define WEFT_CLI_START_WATCH_H

#include "hosts.h"
#include "watch.h"

/* A rank between its start and its first step. */
typedef struct StartingRank {
    /* process id */
    pid_t process;
    /* the rank; -1: not known */
    int number;
    /* last stage that the rank has reported; START_PROGRAM if it has not reported any */
    StartStage stage;
    /* time at which the rank was first found to be stopped by a signal, or silent; 0: it is
     * running */
    double stopped_s;
    /* entry of a rank on another host in Watch.rank, borrowed; NULL: the rank is on this host */
    const WatchedRank *remote;
} StartingRank;

/* The state of observing one start of ranks. Times are values of clock_s. */
typedef struct StartWatch {
    /* seconds without progress after which ranks are killed; 0: never */
    double hang_s;
    /* time of the last check */
    double checked_s;
    /* time of the last progress of any rank */
    double progress_s;
    /* time of the first check after this process was suspended; 0: it was not */
    double resumed_s;
    /* true: a rank counts as making progress if it is not stopped; false: it must also report,
     * read, write or touch memory */
    bool computes;
    /* hosts on which the ranks were placed, borrowed; NULL: not known */
    const Hosts *hosts;
    /* the run's folder, borrowed; NULL: none */
    const char *folder;
    /* id of this start; with `number` it is in the environment of the ranks */
    char id[RANDOM_ID_BYTES];
    /* number of this start */
    int number;
    /* sum of process_work over all ranks at the last check */
    double work;
    /* when ranks are observed, as the first words of a problem's description: "while ranks start"
     * or "while ranks run"; borrowed */
    const char *phase;
    /* number of entries of `rank` */
    int count;
    /* ranks that the last check has found, [count]; owned */
    StartingRank *rank;
} StartWatch;

/* Identifies a start of a training's ranks. The ranks get "ID:NUMBER" in the environment variable
 * LEASE_RUN, and the rank that owns the run's folder writes this text to its lease. The lease then
 * shows that a rank has passed MPI_Init, even if no rank can connect to this process. folder: the
 * run's folder; borrowed until start_watch_fini. */
void start_watch_set_id(StartWatch *watch, const char *folder, const char *id, int number);
/* Begins to observe a start of ranks. hang_s: seconds after which ranks without progress are
 * killed, even if no rank has reported; 0: never. phase: first words of a problem's description;
 * borrowed. Keeps the fields `hosts`, `folder`, `id` and `number`, and sets all other fields; the
 * caller then sets `computes`. Release with start_watch_fini. */
void start_watch_init(StartWatch *watch, double hang_s, const char *phase);
void start_watch_fini(StartWatch *watch);
/* Checks the ranks; does nothing if the last check is less than half a second ago. starter: the
 * process that may be the parent of ranks (mpirun). Returns NULL if there is no problem. Otherwise
 * kills the known ranks of this host that are the cause, and returns a description that names the
 * known ranks; the caller owns it. */
char *start_watch_check(StartWatch *watch, const Watch *ranks, pid_t starter);
/* Returns whether every rank that has connected has begun its first step or closed its connection.
 * Returns false while no rank has connected. */
bool start_is_over(const Watch *ranks);
/* Returns whether any rank that has connected has begun its first step. */
bool start_any_stepped(const Watch *ranks);
/* Returns a number that grows while a process of this host works: the bytes that it has read and
 * written, plus the bytes that it has read from disk, plus its page faults. -1: not known. */
double process_work(pid_t process);

#endif
