/* Watches ranks between their start and their first step, for the process that starts them. */
#ifndef WEFT_CLI_STARTING_H
#define WEFT_CLI_STARTING_H

#include "hosts.h"
#include "watch.h"

/* A rank that starts. stage: START_PROGRAM also while the rank has not sent its number. */
typedef struct StartingRank {
    pid_t process;
    int number;
    StartStage stage;
    /* time at which the rank was found stopped by a signal, or silent; 0: it is running */
    double stopped_s;
    /* entry of a rank on another host among the watched ranks, borrowed; NULL: a rank of this
     * host */
    const WatchedRank *remote;
} StartingRank;

typedef struct Starting {
    /* hang_s: limit in seconds, 0: none; looked_s: time of the last look; going_s: time at which a
     * rank last made progress; awake_s: time of the first look after this process was suspended */
    double hang_s, looked_s, going_s, awake_s;
    /* a rank that is not stopped makes progress */
    bool computes;
    /* hosts that the ranks were placed on; NULL: unknown. Borrowed. */
    const Hosts *hosts;
    /* set by starting_name. folder: the run's folder, borrowed; NULL: none */
    const char *folder;
    char id[RANDOM_ID_BYTES];
    int number;
    /* sum over all ranks at the last look: bytes read and written plus pages touched */
    double work;
    const char *phase;
    int count;
    /* ranks found by the last look; owned */
    StartingRank *rank;
} Starting;

/* Names a start of a training's ranks: the ranks get "ID:NUMBER" in LEASE_RUN, and the owner of the
 * run's folder has it in its lease. A rank that takes the lease shows in this way that it has
 * passed MPI_Init, even if no rank can connect to this process. folder: borrowed until
 * starting_fini. */
void starting_name(Starting *starting, const char *folder, const char *id, int number);
/* hang_s: seconds after which ranks without progress are killed, also if none has reported; 0:
 * never. phase: first words of a problem's description, borrowed. Keeps hosts and what
 * starting_name has set; the caller sets computes. Release with starting_fini. */
void starting_init(Starting *starting, double hang_s, const char *phase);
void starting_fini(Starting *starting);
/* True if every known rank has begun its first step; false while no rank is known. */
bool starting_is_over(const Watch *watch);
/* True if any known rank has begun its first step. */
bool starting_has_stepped(const Watch *watch);
/* Looks at the ranks, at most twice a second. starter: the process that may be their parent
 * (mpirun). Returns NULL, or a description of the problem, owned by the caller, that names ranks;
 * it has killed those that are on this host. */
char *starting_check(Starting *starting, const Watch *watch, pid_t starter);
/* Returns the bytes that a process of this host has read and written plus the pages that it has
 * touched; -1 if the system does not say. */
double starting_work(pid_t process);

#endif
