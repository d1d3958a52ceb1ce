/* Observes ranks between their start and their first step, for the process that starts them. */
#ifndef WEFT_CLI_START_WATCH_H
#define WEFT_CLI_START_WATCH_H

#include "hosts.h"
#include "watch.h"

/* A rank between its start and its first step. */
typedef struct StartingRank {
    pid_t process;
    /* number of the rank; -1: not known */
    int number;
    /* last stage that the rank has reported; START_PROGRAM also if it has not reported any */
    StartStage stage;
    /* time at which the rank was found to be stopped by a signal, or silent; 0: it is running */
    double stopped_s;
    /* for a rank on another host: its entry among the watched ranks, borrowed; NULL: the rank is on
     * this host */
    const WatchedRank *remote;
} StartingRank;

typedef struct StartWatch {
    /* seconds without progress after which ranks are killed; 0: never */
    double hang_s;
    /* times of the last check (checked_s), of the last progress of any rank (progress_s), and of
     * the first check after this process was suspended (resumed_s) */
    double checked_s, progress_s, resumed_s;
    /* true: a rank that is not stopped counts as making progress */
    bool computes;
    /* hosts on which the ranks were placed; NULL: unknown. Borrowed. */
    const Hosts *hosts;
    /* set by start_watch_set_id: the run's folder, borrowed, NULL: none; the start's id and
     * number */
    const char *folder;
    char id[RANDOM_ID_BYTES];
    int number;
    /* sum of process_work over all ranks at the last check */
    double work;
    /* first words of a problem's description; borrowed */
    const char *phase;
    int count;
    /* ranks found by the last check; owned */
    StartingRank *rank;
} StartWatch;

/* Identifies a start of a training's ranks: the ranks get "ID:NUMBER" in LEASE_RUN, and the owner
 * of the run's folder writes it to its lease. The lease then shows that a rank has passed MPI_Init,
 * even if no rank can connect to this process. folder: borrowed until start_watch_fini. */
void start_watch_set_id(StartWatch *watch, const char *folder, const char *id, int number);
/* Begins to observe a start of ranks. hang_s: seconds after which ranks without progress are
 * killed, even if no rank has reported; 0: never. phase: first words of a problem's description,
 * borrowed. Keeps `hosts` and the fields that start_watch_set_id has set; the caller sets
 * `computes`. Release with start_watch_fini. */
void start_watch_init(StartWatch *watch, double hang_s, const char *phase);
void start_watch_fini(StartWatch *watch);
/* Checks the ranks, at most twice a second. starter: the process that may be their parent (mpirun).
 * Returns NULL if there is no problem. Otherwise kills the known ranks of this host that are the
 * cause, and returns a description that names ranks as far as they are known, owned by the
 * caller. */
char *start_watch_check(StartWatch *watch, const Watch *ranks, pid_t starter);
/* True if every known rank has begun its first step or closed its connection; false while no rank
 * is known. */
bool start_is_over(const Watch *ranks);
/* True if any known rank has begun its first step. */
bool start_any_stepped(const Watch *ranks);
/* Returns a number that grows while a process of this host works: the sum of the bytes that it has
 * read and written, the bytes read from disk, and its page faults. -1: not known. */
double process_work(pid_t process);

#endif
