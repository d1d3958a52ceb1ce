/* Connections from ranks to the launcher, which is the process `weft VERB -n N`, weft run or weft
 * verify. Through the connections the launcher receives the stages of the ranks' start, and finds
 * out which rank died. */
#ifndef WEFT_CLI_WATCH_H
#define WEFT_CLI_WATCH_H

#include "remote.h"

#include "base/start.h"

#include <sys/types.h>

/* Environment variable by which ranks find the launcher. Its value is "TOKEN" or, if the launcher
 * also listens for ranks on other hosts, "TOKEN/PORT/ADDRESS/...". */
#define WATCH_VARIABLE "WEFT_LAUNCHER"
#define STOPPED_BEFORE_STEPS                                                                       \
    "stopped before the first step, so nothing is lost: start the same command again to continue"

/* A rank that has connected. */
typedef struct WatchedRank {
    /* file descriptor of the connection; -1: closed */
    int fd;
    /* the rank; -1 until the rank has sent it */
    int number;
    /* process id */
    pid_t process;
    /* last stage that the rank has reported */
    StartStage stage;
    /* true: the rank has announced its end, or its stop before the first step */
    bool ended;
    /* exit status that the rank has announced; OK until then, and after a stop before the first
     * step */
    Status status;
    /* name of the host; "": this host */
    char host[REMOTE_HOST];
    /* time of the last message from another host */
    double received_s;
    /* process_work in the last message from another host */
    double work;
} WatchedRank;

typedef struct Watch {
    /* epoll's set of all descriptors below and of the connections */
    int epoll_fd;
    /* listening socket for ranks of this host */
    int listener;
    /* signalfd; borrowed */
    int signal_fd;
    /* listening TCP socket for ranks on other hosts; -1: none */
    int tcp_listener;
    /* number of ranks that are expected */
    int ranks;
    /* number of ranks that have connected */
    int connected;
    /* index in `rank` of the first rank of this host that ended unannounced; -1: none */
    int lost_index;
    /* random number by which a rank proves that it belongs to this launcher */
    uint64_t token;
    /* true: a rank has reported that it stops before its first step, as requested, and no rank had
     * been lost before */
    bool stop_reported;
    /* time at which a rank last connected, reported a new stage or announced its end; 0: never */
    double last_message_s;
    /* ranks that have connected, [ranks], of which the first `connected` are used; owned */
    WatchedRank *rank;
} Watch;

/* Begins to listen for connections. signal_fd: a signalfd; borrowed. remote: true: also listens for
 * ranks on other hosts. Sets WATCH_VARIABLE, so ranks must be started after this call. Release with
 * watch_fini. */
void watch_init(Watch *watch, int ranks, int signal_fd, bool remote);
void watch_fini(Watch *watch);
/* Waits at most limit_ms (-1: no limit) for a signal, a connection or a message of a rank, and
 * handles connections and messages. Returns true if there are signals, which the caller must
 * read. */
bool watch_wait(Watch *watch, int limit_ms);
/* Called after all ranks have ended. Returns whether all expected ranks connected and announced
 * their end, and no rank has reported a stop before its first step. *status: the worst status that
 * a rank has announced. */
bool watch_all_ended(Watch *watch, Status *status);
/* Called after all ranks have ended. Returns the first rank of this host that ended without
 * announcing it, or NULL. */
const WatchedRank *watch_lost_rank(Watch *watch);

/* ---- called by a rank; the functions below do nothing if no launcher listens ---- */

/* Connects to a launcher on this host. If the launcher is on another host, watch_send_beat connects
 * to it later. */
void watch_connect(int rank);
/* Reports that this rank has reached a stage of its start. */
void watch_report_stage(StartStage stage);
/* Sends a heartbeat if the launcher is on another host and the last heartbeat is at least half a
 * second ago. Called about ten times a second while the rank starts. The first calls try to connect
 * to the launcher. */
void watch_send_beat(void);
/* Reports that this rank stops before its first step, as requested. Returns whether the report was
 * sent; the launcher then informs the user. */
bool watch_report_stop(void);
/* Announces that this rank ends by itself with the exit status `status`, and closes the
 * connection. */
void watch_report_end(Status status);

#endif
