/* The start of ranks on this host, as the process that starts them sees it. */
#ifndef WEFT_CLI_STARTING_H
#define WEFT_CLI_STARTING_H

#include "watch.h"

/* Process of a rank; stage: START_PROGRAM also where the rank has not told its number yet. */
typedef struct StartingRank {
    pid_t process;
    int number;
    StartStage stage;
    /* time at which it was found to be stopped by a signal; 0: it is not */
    double stopped_s;
} StartingRank;

typedef struct Starting {
    /* hang_s: limit in seconds, 0: none; looked_s: time of the last look; going_s: time at which a
     * rank last made progress */
    double hang_s, looked_s, going_s;
    /* bytes read and written, and pages touched, by all ranks until the last look */
    double work;
    int count;
    /* owned: ranks that the last look found */
    StartingRank *rank;
} Starting;

/* hang_s: seconds after which ranks without progress are ended; 0: never. Release with
 * starting_fini. */
void starting_init(Starting *starting, double hang_s);
void starting_fini(Starting *starting);
/* Has every rank that is known begun its first step? False where none is known yet. */
bool starting_is_over(const Watch *watch);
/* Has any known rank begun its first step? */
bool starting_has_stepped(const Watch *watch);
/* Looks at the ranks, twice a second at most. starter: the process whose children they may be. NULL
 * or what is wrong, naming ranks, owned by the caller; their processes have been killed then. */
char *starting_look(Starting *starting, const Watch *watch, pid_t starter);

#endif
