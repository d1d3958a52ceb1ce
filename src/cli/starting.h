/* Watches ranks of this host between their start and their first step, for the process that starts
 * them. */
#ifndef WEFT_CLI_STARTING_H
#define WEFT_CLI_STARTING_H

#include "watch.h"

/* A rank that starts. stage: START_PROGRAM also while the rank has not sent its number. */
typedef struct StartingRank {
    pid_t process;
    int number;
    StartStage stage;
    /* time at which the rank was found stopped by a signal; 0: it is running */
    double stopped_s;
} StartingRank;

typedef struct Starting {
    /* hang_s: limit in seconds, 0: none; looked_s: time of the last look; going_s: time at which a
     * rank last made progress */
    double hang_s, looked_s, going_s;
    /* sum over all ranks at the last look: bytes read and written plus pages touched */
    double work;
    const char *phase;
    int count;
    /* ranks found by the last look; owned */
    StartingRank *rank;
} Starting;

/* hang_s: seconds after which ranks without progress are killed; 0: never. phase: first words of a
 * problem's description, borrowed. Release with starting_fini. */
void starting_init(Starting *starting, double hang_s, const char *phase);
void starting_fini(Starting *starting);
/* True if every known rank has begun its first step; false while no rank is known. */
bool starting_is_over(const Watch *watch);
/* True if any known rank has begun its first step. */
bool starting_has_stepped(const Watch *watch);
/* Looks at the ranks, at most twice a second. starter: the process that may be their parent
 * (mpirun). Returns NULL, or a description of the problem, owned by the caller, that names the
 * ranks it has killed. */
char *starting_check(Starting *starting, const Watch *watch, pid_t starter);

#endif
