/* The start of ranks on this host, as the process that starts them sees it. */
#ifndef WEFT_CLI_STARTING_H
#define WEFT_CLI_STARTING_H

#include "watch.h"

/* A process of a rank; stage: START_PROGRAM, too, where it has not said its number. */
typedef struct StartingRank {
    pid_t process;
    int number;
    StartStage stage;
    /* since when it has been stopped by a signal; 0: it is not */
    double stopped_s;
} StartingRank;

typedef struct Starting {
    /* the limit, 0: none; when was looked last, and when a rank went on last */
    double hang_s, looked_s, going_s;
    /* bytes read and written, and pages touched, by all ranks until the last look */
    double work;
    int count;
    /* owned: those of the last look */
    StartingRank *rank;
} Starting;

/* hang_s: ranks that do not get on for so long are ended; 0: never. Release with starting_fini. */
void starting_init(Starting *starting, double hang_s);
void starting_fini(Starting *starting);
/* Has every rank that is known begun its first step? False where none is known yet. */
bool starting_is_over(const Watch *watch);
/* Has any? */
bool starting_has_stepped(const Watch *watch);
/* Looks at the ranks, twice a second at most. starter: the process whose children they may be. NULL
 * or what is wrong, naming ranks, owned by the caller; their processes have been killed then. */
char *starting_look(Starting *starting, const Watch *watch, pid_t starter);

#endif
