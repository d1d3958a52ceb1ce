/* Finds out which rank died. mpirun only says that one did, and ends the others. So `weft VERB -n
 * N` listens on a socket, whose name is in the ranks' environment; each rank of this host connects
 * to it, sends its number, and announces its end. The kernel closes the connection of a killed
 * rank: the first connection that closes without an announcement identifies it. Ranks on other
 * hosts find no such socket; mpirun itself reports their death. */
#include "watch.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { NOBODY = -1 };
/* Messages of a rank other than its number. STAGE - s: it has reached stage s; GOODBYE - s: it ends
 * with status s. */
enum { STOPS = -2, STAGE = -16, GOODBYE = -1024 };

/* ---- launcher ---- */

/* An abstract socket name, without a file, so nothing is left behind. */
static socklen_t address_of(struct sockaddr_un *address, const char *name)
{
    *address = (struct sockaddr_un){.sun_family = AF_UNIX};
    snprintf(address->sun_path + 1, sizeof address->sun_path - 1, "%s", name);
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(address->sun_path + 1));
}

static void poll_add(const Watch *watch, int file, void *of)
{
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = of};
    epoll_ctl(watch->poll, EPOLL_CTL_ADD, file, &event);
}

void watch_init(Watch *watch, int ranks, int signals)
{
    char name[64];
    struct sockaddr_un address;
    *watch = (Watch){.lost = NOBODY, .ranks = ranks, .signals = signals};
    watch->poll = epoll_create1(EPOLL_CLOEXEC);
    watch->listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    watch->rank = mem_new((size_t)ranks * sizeof *watch->rank);
    snprintf(name, sizeof name, "weft-%ld", (long)getpid());
    socklen_t length = address_of(&address, name);
    poll_add(watch, signals, &watch->signals);
    if (bind(watch->listener, (struct sockaddr *)&address, length) != 0 ||
        listen(watch->listener, ranks) != 0)
        return; /* the rank that dies stays unknown */
    poll_add(watch, watch->listener, &watch->listener);
    setenv(WATCH_VARIABLE, name, 1);
}

/* Accepts a connection. A rank that has executed itself again (threads_settle) connects a second
 * time and keeps its entry. The rank's number comes with its first message. Processes of other
 * users are refused. */
static void accept_rank(Watch *watch)
{
    int file = accept4(watch->listener, NULL, NULL, SOCK_CLOEXEC);
    struct ucred peer = {0};
    socklen_t bytes = sizeof peer;
    if (file < 0) return;
    bool known = getsockopt(file, SOL_SOCKET, SO_PEERCRED, &peer, &bytes) == 0;
    int place = 0;
    while (place < watch->connected && watch->rank[place].process != peer.pid) ++place;
    if (!known || peer.uid != geteuid() || place == watch->ranks) {
        close(file);
        return;
    }
    if (watch->lost == place) watch->lost = NOBODY;
    if (place == watch->connected) ++watch->connected;
    WatchedRank *rank = &watch->rank[place];
    if (rank->file > 0) close(rank->file);
    *rank = (WatchedRank){.file = file, .process = peer.pid, .number = NOBODY};
    watch->message_s = clock_s();
    poll_add(watch, file, rank);
}

static void receive(Watch *watch, WatchedRank *rank)
{
    int said;
    if (recv(rank->file, &said, sizeof said, 0) == (ssize_t)sizeof said) {
        watch->message_s = clock_s();
        rank->left = rank->left || said <= GOODBYE || said == STOPS;
        if (said >= 0) rank->number = said;
        /* ranks that stop after a loss are being ended by mpirun */
        watch->stops = watch->stops || (said == STOPS && watch->lost == NOBODY);
        if (said <= GOODBYE)
            rank->status = (Status)(GOODBYE - said);
        else if (said <= STAGE)
            rank->stage = (StartStage)(STAGE - said);
        return;
    }
    /* also removes the file from epoll's set */
    close(rank->file);
    rank->file = -1;
    if (rank->left || watch->lost != NOBODY) return;
    watch->lost = (int)(rank - watch->rank);
}

bool watch_wait(Watch *watch, int limit_ms)
{
    enum { MOST = 16 };
    struct epoll_event event[MOST];
    bool signalled = false;
    int count = epoll_wait(watch->poll, event, MOST, limit_ms);
    for (int i = 0; i < count; ++i) {
        void *of = event[i].data.ptr;
        if (of == &watch->signals)
            signalled = true;
        else if (of == &watch->listener)
            accept_rank(watch);
        else
            receive(watch, of);
    }
    return signalled;
}

bool watch_all_left(Watch *watch, Status *status)
{
    bool all = watch->connected == watch->ranks && !watch_lost(watch) && !watch->stops;
    *status = OK;
    for (int i = 0; i < watch->connected; ++i) {
        all = all && watch->rank[i].left;
        if (watch->rank[i].status > *status) *status = watch->rank[i].status;
    }
    return all;
}

const WatchedRank *watch_lost(Watch *watch)
{
    for (int i = 0; i < watch->ranks && watch->lost == NOBODY; ++i) watch_wait(watch, 0);
    return watch->lost == NOBODY ? NULL : &watch->rank[watch->lost];
}

void watch_fini(Watch *watch)
{
    for (int i = 0; i < watch->connected; ++i)
        if (watch->rank[i].file >= 0) close(watch->rank[i].file);
    if (watch->listener >= 0) close(watch->listener);
    close(watch->poll);
    mem_free(&watch->rank);
}

/* ---- rank ---- */

static int launcher = -1;

void watch_enter(int rank)
{
    struct sockaddr_un address;
    const char *name = getenv(WATCH_VARIABLE);
    if (!name) return;
    socklen_t length = address_of(&address, name);
    launcher = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (connect(launcher, (struct sockaddr *)&address, length) == 0 &&
        send(launcher, &rank, sizeof rank, MSG_NOSIGNAL) == (ssize_t)sizeof rank)
        return;
    close(launcher);
    launcher = -1;
}

static bool send_word(int word)
{
    return launcher >= 0 &&
           send(launcher, &word, sizeof word, MSG_NOSIGNAL) == (ssize_t)sizeof word;
}

void watch_report_stage(StartStage stage)
{
    (void)send_word(STAGE - (int)stage);
}

bool watch_report_stop(void)
{
    return send_word(STOPS);
}

void watch_leave(Status status)
{
    if (launcher < 0) return;
    (void)send_word(GOODBYE - (int)status);
    close(launcher);
    launcher = -1;
}
