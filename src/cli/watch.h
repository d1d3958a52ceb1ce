/* How `weft VERB -n N` learns which of its ranks died. */
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
    /* the last that it has told */
    StartStage stage;
    /* has said goodbye, and what it ends with */
    bool left;
    Status status;
} WatchedRank;
typedef struct Watch {
    /* lost: in rank, or -1 */
    int poll, listener, signals, ranks, met, lost;
    /* A rank has stopped before its first step, and not for another that was lost. */
    bool stops;
    /* when a rank has come or told a stage last; 0: never */
    double told_s;
    /* owned: those that came */
    WatchedRank *rank;
} Watch;
/* signals: a file that can be read when there is a signal (signalfd); borrowed. Sets a variable for
 * the ranks, which must be started after it. Release with watch_fini. */
void watch_init(Watch *watch, int ranks, int signals);
void watch_fini(Watch *watch);
/* Waits for signals and ranks, at most limit_ms (-1: for ever). Are there signals? */
bool watch_wait(Watch *watch, int limit_ms);
/* Once all ranks have ended: did every one say so before, and with what, the worst of them? */
bool watch_all_left(Watch *watch, Status *status);
/* Once all ranks have ended: the first that did without a goodbye, or NULL. */
const WatchedRank *watch_lost(Watch *watch);

/* In a rank, which may have been started by something else: then nothing happens. */
void watch_enter(int rank);
void watch_tell(StartStage stage);
/* It stops before its first step, as it was asked to. True where a launcher hears it, and tells the
 * user. */
bool watch_tell_stop(void);
/* It ends by itself, with this exit code. */
void watch_leave(Status status);

#endif
