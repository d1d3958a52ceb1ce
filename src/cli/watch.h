/* Connections from ranks to `weft VERB -n N`, by which it learns which of them died. */
#ifndef WEFT_CLI_WATCH_H
#define WEFT_CLI_WATCH_H

#include "base.h"
#include "base/start.h"

#include <sys/types.h>

/* The variable that tells ranks where their launcher listens. */
#define WATCH_VARIABLE "WEFT_LAUNCHER"
#define STOPPED_BEFORE_STEPS                                                                       \
    "stopped before the first step, so nothing is lost: start the same command again to continue"

typedef struct WatchedRank {
    /* number: -1 until it has said it */
    int file, number;
    pid_t process;
    /* last stage that the rank has told */
    StartStage stage;
    /* left: the rank has announced its end; status: the status that it ends with */
    bool left;
    Status status;
} WatchedRank;
typedef struct Watch {
    /* lost: in rank, or -1 */
    int poll, listener, signals, ranks, met, lost;
    /* true where a rank has stopped before its first step, and not because another was lost */
    bool stops;
    /* time at which a rank last connected or told a stage; 0: never */
    double told_s;
    /* owned: ranks that have connected */
    WatchedRank *rank;
} Watch;
/* signals: a file that can be read when there is a signal (signalfd); borrowed. Sets a variable for
 * the ranks, which must be started after it. Release with watch_fini. */
void watch_init(Watch *watch, int ranks, int signals);
void watch_fini(Watch *watch);
/* Waits for signals and ranks, at most limit_ms (-1: for ever). Are there signals? */
bool watch_wait(Watch *watch, int limit_ms);
/* Did every rank announce its end? *status: the worst status among them. Called once all ranks have
 * ended. */
bool watch_all_left(Watch *watch, Status *status);
/* Once all ranks have ended: the first that did without a goodbye, or NULL. */
const WatchedRank *watch_lost(Watch *watch);

/* Functions for a rank. They do nothing where no launcher listens. */
void watch_enter(int rank);
void watch_tell(StartStage stage);
/* Tells the launcher that this rank stops before its first step, as requested. True where a
 * launcher hears it, which then tells the user. */
bool watch_tell_stop(void);
/* Tells the launcher that this rank ends by itself, with this exit code. */
void watch_leave(Status status);

#endif
