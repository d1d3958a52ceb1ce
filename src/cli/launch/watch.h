/* Connections from ranks to the launcher (`weft VERB -n N`, weft run or weft verify). Through them
 * the launcher receives the stages of the ranks' start, and finds out which rank died. */
#ifndef WEFT_CLI_WATCH_H
#define WEFT_CLI_WATCH_H

#include "remote.h"

#include "base/start.h"

#include <sys/types.h>

/* Environment variable with "TOKEN" or "TOKEN/PORT/ADDRESS/...", the addresses at which the
 * launcher listens. */
#define WATCH_VARIABLE "WEFT_LAUNCHER"
#define STOPPED_BEFORE_STEPS                                                                       \
    "stopped before the first step, so nothing is lost: start the same command again to continue"

/* A rank that has connected. */
typedef struct WatchedRank {
    /* connection; -1: closed */
    int fd;
    /* rank; -1 until the rank has sent it */
    int number;
    pid_t process;
    /* last stage that the rank has reported */
    StartStage stage;
    /* true: the rank has announced its end, with this exit status, or its stop before the first
     * step, for which the status stays OK */
    bool ended;
    Status status;
    /* name of the host; "": this host */
    char host[REMOTE_HOST];
    /* for ranks on other hosts: time of the last message, and process_work in that message */
    double received_s, work;
} WatchedRank;

typedef struct Watch {
    /* descriptors: epoll; socket for ranks of this host; signalfd, borrowed; TCP socket for ranks
     * on other hosts, -1: none */
    int epoll_fd, listener, signal_fd, tcp_listener;
    /* number of ranks that are expected, and that have connected */
    int ranks, connected;
    /* index in `rank` of the first rank of this host that ended unannounced; -1: none */
    int lost;
    /* random number that a rank must know */
    uint64_t token;
    /* true: a rank has stopped before its first step because it was requested, and not because
     * another rank was lost */
    bool stop_reported;
    /* time at which a rank last connected, reported a stage or announced its end; 0: never */
    double last_message_s;
    /* ranks that have connected; owned */
    WatchedRank *rank;
} Watch;

/* Starts to listen. signal_fd: becomes readable on a signal (signalfd); borrowed. remote: also
 * listens for ranks on other hosts. Sets WATCH_VARIABLE, so ranks must be started after it. Release
 * with watch_fini. */
void watch_init(Watch *watch, int ranks, int signal_fd, bool remote);
void watch_fini(Watch *watch);
/* Waits for signals and for messages of ranks, at most limit_ms (-1: no limit). Returns true if
 * there are signals. */
bool watch_wait(Watch *watch, int limit_ms);
/* Called after all ranks have ended: true if every rank announced its end, and none because of a
 * stop before its first step; *status is then the worst status among them. */
bool watch_all_ended(Watch *watch, Status *status);
/* Called after all ranks have ended: returns the first rank of this host that ended without
 * announcing it, or NULL. */
const WatchedRank *watch_lost_rank(Watch *watch);

/* ---- called by a rank; these functions do nothing if no launcher listens ---- */

/* Connects to a launcher on this host. To a launcher on another host, watch_send_beat connects
 * later. */
void watch_connect(int rank);
void watch_report_stage(StartStage stage);
/* Sends a heartbeat, at most one in half a second, if the launcher is on another host; called about
 * ten times a second while the rank starts. The first calls try to connect to the launcher. */
void watch_send_beat(void);
/* Reports that this rank stops before its first step, as requested. Returns true if the report was
 * sent; then the launcher informs the user. */
bool watch_report_stop(void);
/* Announces that this rank ends by itself, with this exit status, and closes the connection. */
void watch_report_end(Status status);

#endif
