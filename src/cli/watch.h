/* How `weft VERB -n N` learns which of its ranks died. */
#ifndef WEFT_CLI_WATCH_H
#define WEFT_CLI_WATCH_H

#include "base.h"

#include <sys/types.h>

/* The variable that tells ranks where their launcher listens. */
#define WATCH_VARIABLE "WEFT_LAUNCHER"

typedef struct WatchedRank {
    /* number: -1 until it has said it */
    int file, number;
    pid_t process;
    /* has said goodbye */
    bool left;
} WatchedRank;
typedef struct Watch {
    /* lost: in rank, or -1 */
    int poll, listener, signals, ranks, met, lost;
    /* owned: those that came */
    WatchedRank *rank;
} Watch;
/* signals: a file that can be read when there is a signal (signalfd); borrowed. Sets a variable for
 * the ranks, which must be started after it. Release with watch_fini. */
void watch_init(Watch *watch, int ranks, int signals);
void watch_fini(Watch *watch);
/* Waits for signals and ranks, at most limit_ms (-1: for ever). Are there signals? */
bool watch_wait(Watch *watch, int limit_ms);
/* Once all ranks have ended: the first that did without a goodbye, or NULL. */
const WatchedRank *watch_lost(Watch *watch);

/* In a rank, which may have been started by something else: then nothing happens. */
void watch_enter(int rank);
void watch_leave(void);

#endif
