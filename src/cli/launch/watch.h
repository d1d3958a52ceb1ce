/* Connections from ranks to `weft VERB -n N`, through which it learns which rank died. */
#ifndef WEFT_CLI_WATCH_H
#define WEFT_CLI_WATCH_H

#include "remote.h"

#include "base/start.h"

#include <sys/types.h>

/* Environment variable "TOKEN" or "TOKEN/PORT/ADDRESS/...": where the launcher listens. */
#define WATCH_VARIABLE "WEFT_LAUNCHER"
#define STOPPED_BEFORE_STEPS                                                                       \
    "stopped before the first step, so nothing is lost: start the same command again to continue"

typedef struct WatchedRank {
    /* number: rank; -1 until the rank has sent it */
    int file, number;
    pid_t process;
    /* last stage that the rank has reported */
    StartStage stage;
    /* left: the rank has announced its end; status: its exit status */
    bool left;
    Status status;
    /* A rank on another host has its host's name here, and others have "". heard_s: time of its
     * last sign of life; work: as in RemoteWord. */
    char host[REMOTE_HOST];
    double heard_s, work;
} WatchedRank;
typedef struct Watch {
    /* file descriptors: poll (epoll), listener, signals, elsewhere (TCP; -1: none); ranks:
     * expected; connected: number of those that have connected; lost: index in rank of the first
     * one lost, or -1 */
    int poll, listener, signals, elsewhere, ranks, connected, lost;
    /* random number by which ranks are known */
    uint64_t token;
    /* a rank has stopped before its first step, and not because another was lost */
    bool stops;
    /* time at which a rank last connected or sent a message; 0: never */
    double message_s;
    /* ranks that have connected; owned */
    WatchedRank *rank;
} Watch;
/* Starts to listen. signals: a file that becomes readable on a signal (signalfd); borrowed.
 * elsewhere: also for ranks on other hosts. Sets WATCH_VARIABLE, so ranks must be started after it.
 * Release with watch_fini. */
void watch_init(Watch *watch, int ranks, int signals, bool elsewhere);
void watch_fini(Watch *watch);
/* Waits for signals and ranks, at most limit_ms (-1: no limit). Returns true if there are
 * signals. */
bool watch_wait(Watch *watch, int limit_ms);
/* Called after all ranks have ended: true if every rank announced its end; *status is then the
 * worst status among them. */
bool watch_all_left(Watch *watch, Status *status);
/* Called after all ranks have ended: returns the first rank that ended without announcing it, or
 * NULL. */
const WatchedRank *watch_lost(Watch *watch);

/* Functions for a rank. They do nothing if no launcher listens. */
void watch_enter(int rank);
void watch_report_stage(StartStage stage);
/* Gives a sign of life where the launcher is on another host; called about ten times a second while
 * the rank starts. The first calls connect to it. */
void watch_beat(void);
/* Tells the launcher that this rank stops before its first step, as requested. Returns true if a
 * launcher listens, which then tells the user. */
bool watch_report_stop(void);
/* Tells the launcher that this rank ends by itself, with this exit status. */
void watch_leave(Status status);

#endif
