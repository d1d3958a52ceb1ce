/* Finds out which rank died. mpirun only says that one did, and ends the others. So `weft VERB -n
 * N` listens on a socket, whose name is in the ranks' environment; each rank of this host connects
 * to it, sends its number, and announces its end. The kernel closes the connection of a killed
 * rank: the first connection that closes without an announcement identifies it. Ranks on other
 * hosts find no such socket, and connect by TCP (remote.h) while they start: they give signs of
 * life, and mpirun itself reports their death. */
#include "watch.h"

#include "starting.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
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
static socklen_t address_of(struct sockaddr_un *address, uint64_t token)
{
    *address = (struct sockaddr_un){.sun_family = AF_UNIX};
    snprintf(address->sun_path + 1, sizeof address->sun_path - 1, "weft-%016" PRIx64, token);
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(address->sun_path + 1));
}

static void poll_add(const Watch *watch, int file, void *of)
{
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = of};
    epoll_ctl(watch->poll, EPOLL_CTL_ADD, file, &event);
}

void watch_init(Watch *watch, int ranks, int signals, bool elsewhere)
{
    char token[RANDOM_ID_BYTES], where[REMOTE_ADDRESSES] = "";
    struct sockaddr_un address;
    *watch = (Watch){.lost = NOBODY, .elsewhere = -1, .ranks = ranks, .signals = signals};
    random_id(token);
    watch->token = strtoull(token, NULL, 16);
    watch->poll = epoll_create1(EPOLL_CLOEXEC);
    watch->listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    watch->rank = mem_new((size_t)ranks * sizeof *watch->rank);
    socklen_t length = address_of(&address, watch->token);
    poll_add(watch, signals, &watch->signals);
    /* without a socket the rank that dies stays unknown */
    if (bind(watch->listener, (struct sockaddr *)&address, length) == 0 &&
        listen(watch->listener, ranks) == 0)
        poll_add(watch, watch->listener, &watch->listener);
    if (elsewhere) watch->elsewhere = remote_listen(where);
    if (watch->elsewhere >= 0) poll_add(watch, watch->elsewhere, &watch->elsewhere);
    char *value = mem_format("%s%s", token, where);
    setenv(WATCH_VARIABLE, value, 1);
    mem_free(&value);
}

/* Makes an entry for a rank that has connected. One that has executed itself again (threads_settle)
 * keeps its entry. Returns NULL if there are too many. */
static WatchedRank *enter(Watch *watch, int file, pid_t process, const char *host)
{
    int place = 0;
    while (place < watch->connected &&
           (watch->rank[place].process != process || strcmp(watch->rank[place].host, host) != 0))
        ++place;
    if (place == watch->ranks) {
        close(file);
        return NULL;
    }
    if (watch->lost == place) watch->lost = NOBODY;
    if (place == watch->connected) ++watch->connected;
    WatchedRank *rank = &watch->rank[place];
    if (rank->file > 0) close(rank->file);
    *rank = (WatchedRank){.file = file, .process = process, .number = NOBODY};
    snprintf(rank->host, sizeof rank->host, "%s", host);
    watch->message_s = rank->heard_s = clock_s();
    poll_add(watch, file, rank);
    return rank;
}

/* Accepts a connection. The rank's number comes with its first message. Processes of other users
 * are refused. */
static void accept_rank(Watch *watch)
{
    int file = accept4(watch->listener, NULL, NULL, SOCK_CLOEXEC);
    struct ucred peer = {0};
    socklen_t bytes = sizeof peer;
    if (file < 0) return;
    bool known = getsockopt(file, SOL_SOCKET, SO_PEERCRED, &peer, &bytes) == 0;
    if (known && peer.uid == geteuid())
        enter(watch, file, peer.pid, "");
    else
        close(file);
}

static void accept_remote(Watch *watch)
{
    RemoteHello hello;
    int file = remote_accept(watch->elsewhere, watch->token, &hello);
    WatchedRank *rank = file >= 0 ? enter(watch, file, hello.process, hello.host) : NULL;
    if (rank) rank->number = hello.rank;
}

/* Receives a word of a rank; false: the connection has ended. */
static bool receive_word(WatchedRank *rank, int *said)
{
    RemoteWord remote;
    if (!*rank->host) return recv(rank->file, said, sizeof *said, 0) == (ssize_t)sizeof *said;
    if (recv(rank->file, &remote, sizeof remote, 0) != (ssize_t)sizeof remote) return false;
    rank->heard_s = clock_s();
    rank->work = remote.work;
    *said = (int)remote.word;
    return true;
}

static void receive(Watch *watch, WatchedRank *rank)
{
    int said;
    if (receive_word(rank, &said)) {
        StartStage stage = rank->stage;
        rank->left = rank->left || said <= GOODBYE || said == STOPS;
        if (said >= 0) rank->number = said;
        /* ranks that stop after a loss are being ended by mpirun */
        watch->stops = watch->stops || (said == STOPS && watch->lost == NOBODY);
        if (said <= GOODBYE)
            rank->status = (Status)(GOODBYE - said);
        else if (said <= STAGE)
            rank->stage = (StartStage)(STAGE - said);
        /* a sign of life from another host repeats the stage */
        if (!*rank->host || rank->stage != stage) watch->message_s = clock_s();
        return;
    }
    /* also removes the file from epoll's set */
    close(rank->file);
    rank->file = -1;
    if (rank->left || *rank->host || watch->lost != NOBODY) return;
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
        else if (of == &watch->elsewhere)
            accept_remote(watch);
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
    if (watch->elsewhere >= 0) close(watch->elsewhere);
    close(watch->poll);
    mem_free(&watch->rank);
}

/* ---- rank ---- */

enum { TRIES = 5 };
static struct {
    pthread_mutex_t lock;
    /* connection; -1: none */
    int launcher;
    /* addresses of a launcher on another host; "": it is on this one, or there is none */
    char where[REMOTE_ADDRESSES];
    RemoteHello hello;
    _Atomic int stage;
    /* attempts to connect so far; time of the last one or of the last sign of life */
    int tries;
    double beat_s;
} rank_of = {.lock = PTHREAD_MUTEX_INITIALIZER, .launcher = -1};

void watch_enter(int rank)
{
    struct sockaddr_un address;
    const char *where = getenv(WATCH_VARIABLE);
    char *rest;
    if (!where) return;
    uint64_t token = strtoull(where, &rest, 16);
    socklen_t length = address_of(&address, token);
    int file = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (connect(file, (struct sockaddr *)&address, length) == 0 &&
        send(file, &rank, sizeof rank, MSG_NOSIGNAL) == (ssize_t)sizeof rank) {
        rank_of.launcher = file;
        return;
    }
    if (file >= 0) close(file);
    rank_of.hello = (RemoteHello){.token = token, .rank = rank, .process = (int32_t)getpid()};
    host_name(rank_of.hello.host, sizeof rank_of.hello.host);
    snprintf(rank_of.where, sizeof rank_of.where, "%s", rest);
}

static bool send_word(int word)
{
    RemoteWord remote = {.word = word};
    bool elsewhere = *rank_of.where;
    const void *message = elsewhere ? (const void *)&remote : &word;
    size_t bytes = elsewhere ? sizeof remote : sizeof word;
    if (elsewhere) remote.work = starting_work(getpid());
    pthread_mutex_lock(&rank_of.lock);
    bool sent = rank_of.launcher >= 0 &&
                send(rank_of.launcher, message, bytes,
                     MSG_NOSIGNAL | (elsewhere ? MSG_DONTWAIT : 0)) == (ssize_t)bytes;
    pthread_mutex_unlock(&rank_of.lock);
    return sent;
}

void watch_report_stage(StartStage stage)
{
    rank_of.stage = (int)stage;
    (void)send_word(STAGE - (int)stage);
}

void watch_beat(void)
{
    static const double BEAT_S = 0.5, AGAIN_S = 2;
    double now_s = clock_s();
    bool connected = rank_of.launcher >= 0;
    if (!*rank_of.where || now_s - rank_of.beat_s < (connected ? BEAT_S : AGAIN_S)) return;
    rank_of.beat_s = now_s;
    if (!connected && rank_of.tries < TRIES) {
        ++rank_of.tries;
        int file = remote_connect(rank_of.where, &rank_of.hello);
        pthread_mutex_lock(&rank_of.lock);
        rank_of.launcher = file;
        pthread_mutex_unlock(&rank_of.lock);
    }
    (void)send_word(STAGE - rank_of.stage);
}

bool watch_report_stop(void)
{
    return send_word(STOPS);
}

void watch_leave(Status status)
{
    (void)send_word(GOODBYE - (int)status);
    pthread_mutex_lock(&rank_of.lock);
    if (rank_of.launcher >= 0) close(rank_of.launcher);
    rank_of.launcher = -1;
    rank_of.tries = TRIES;
    pthread_mutex_unlock(&rank_of.lock);
}
