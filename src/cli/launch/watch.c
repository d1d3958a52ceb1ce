/* Finds out which rank died. mpirun only says that a rank died, and ends the remaining ranks. The
 * launcher listens on a socket, whose name is in the ranks' environment. Each rank on the
 * launcher's host connects to the socket, sends its number, and later announces its end. The kernel
 * closes the connection of a killed rank, so the first connection that closes without an
 * announcement identifies the rank that died. Ranks on other hosts find no such socket. While they
 * start, they connect by TCP (remote.h) and send heartbeats. mpirun itself reports the death of
 * such a rank. */
#include "watch.h"

#include "start_watch.h"

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

enum { NO_RANK = -1 };
/* A message of a rank is an int. A value of 0 or more is the number of the rank. MESSAGE_STOP: the
 * rank stops before its first step, as requested. MESSAGE_STAGE - s: the rank has reached stage s.
 * MESSAGE_END - s: the rank ends with status s. */
enum { MESSAGE_STOP = -2, MESSAGE_STAGE = -16, MESSAGE_END = -1024 };

/* ---- launcher ---- */

/* Writes the address of the launcher's socket, which is an abstract name with the token. An
 * abstract name has no file, so nothing is left behind. Returns the length of the address. */
static socklen_t address_of(struct sockaddr_un *address, uint64_t token)
{
    *address = (struct sockaddr_un){.sun_family = AF_UNIX};
    snprintf(address->sun_path + 1, sizeof address->sun_path - 1, "weft-%016" PRIx64, token);
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(address->sun_path + 1));
}

/* Adds a descriptor to epoll's set. source: identifies the descriptor in epoll's events. */
static void epoll_add(const Watch *watch, int fd, void *source)
{
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = source};
    epoll_ctl(watch->epoll_fd, EPOLL_CTL_ADD, fd, &event);
}

void watch_init(Watch *watch, int ranks, int signal_fd, bool remote)
{
    char token[RANDOM_ID_BYTES], addresses[REMOTE_ADDRESSES] = "";
    struct sockaddr_un address;
    *watch =
        (Watch){.lost_index = NO_RANK, .tcp_listener = -1, .ranks = ranks, .signal_fd = signal_fd};
    random_id(token);
    watch->token = strtoull(token, NULL, 16);
    watch->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    watch->listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    watch->rank = mem_new((size_t)ranks * sizeof *watch->rank);
    socklen_t length = address_of(&address, watch->token);
    epoll_add(watch, signal_fd, &watch->signal_fd);
    /* if this fails, ranks run nevertheless, but it is not known which rank died */
    if (bind(watch->listener, (struct sockaddr *)&address, length) == 0 &&
        listen(watch->listener, ranks) == 0)
        epoll_add(watch, watch->listener, &watch->listener);
    if (remote) watch->tcp_listener = remote_listen(addresses);
    if (watch->tcp_listener >= 0) epoll_add(watch, watch->tcp_listener, &watch->tcp_listener);
    char *value = mem_format("%s%s", token, addresses);
    setenv(WATCH_VARIABLE, value, 1);
    mem_free(&value);
}

/* Adds a rank that has connected, and takes ownership of fd. A process that has executed itself
 * again (threads_choose_waiting) connects a second time. It gets its old entry, which is
 * initialised again. If all expected ranks have connected before, closes fd and returns NULL. */
static WatchedRank *add_rank(Watch *watch, int fd, pid_t process, const char *host)
{
    int i = 0;
    while (i < watch->connected &&
           (watch->rank[i].process != process || strcmp(watch->rank[i].host, host) != 0))
        ++i;
    if (i == watch->ranks) {
        close(fd);
        return NULL;
    }
    if (watch->lost_index == i) watch->lost_index = NO_RANK;
    if (i == watch->connected) ++watch->connected;
    WatchedRank *rank = &watch->rank[i];
    if (rank->fd > 0) close(rank->fd);
    *rank = (WatchedRank){.fd = fd, .process = process, .number = NO_RANK};
    snprintf(rank->host, sizeof rank->host, "%s", host);
    watch->last_message_s = rank->received_s = clock_s();
    epoll_add(watch, fd, rank);
    return rank;
}

/* Called after a connection could not be accepted. Without a free descriptor the listener is no
 * longer observed, because epoll would report it at once, again and again. */
static void check_descriptors(const Watch *watch, int listener)
{
    if (errno != EMFILE && errno != ENFILE) return;
    epoll_ctl(watch->epoll_fd, EPOLL_CTL_DEL, listener, NULL);
    log_warn("not all ranks can connect to their launcher: %s; a rank that dies may not be named",
             strerror(errno));
}

/* Accepts a connection from this host. The rank's number comes with its first message. Processes of
 * other users are refused. */
static void accept_rank(Watch *watch)
{
    int fd = accept4(watch->listener, NULL, NULL, SOCK_CLOEXEC);
    struct ucred peer = {0};
    socklen_t bytes = sizeof peer;
    if (fd < 0) {
        check_descriptors(watch, watch->listener);
        return;
    }
    bool known = getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &bytes) == 0;
    if (known && peer.uid == geteuid())
        add_rank(watch, fd, peer.pid, "");
    else
        close(fd);
}

static void accept_remote(Watch *watch)
{
    RemoteHello hello;
    int fd = remote_accept(watch->tcp_listener, watch->token, &hello);
    if (fd < 0) {
        check_descriptors(watch, watch->tcp_listener);
        return;
    }
    WatchedRank *rank = add_rank(watch, fd, hello.process, hello.host);
    if (rank) rank->number = hello.rank;
}

/* Receives a message. Returns false if the connection has ended. */
static bool receive_message(WatchedRank *rank, int *message)
{
    RemoteMessage remote;
    if (!*rank->host)
        return recv(rank->fd, message, sizeof *message, 0) == (ssize_t)sizeof *message;
    if (recv(rank->fd, &remote, sizeof remote, 0) != (ssize_t)sizeof remote) return false;
    rank->received_s = clock_s();
    rank->work = remote.work;
    *message = (int)remote.message;
    return true;
}

/* Handles a message, or the end of a connection. */
static void receive(Watch *watch, WatchedRank *rank)
{
    int message;
    if (receive_message(rank, &message)) {
        StartStage stage = rank->stage;
        rank->ended = rank->ended || message <= MESSAGE_END || message == MESSAGE_STOP;
        if (message >= 0) rank->number = message;
        /* after a loss, mpirun ends the other ranks, which then stop without a request */
        watch->stop_reported =
            watch->stop_reported || (message == MESSAGE_STOP && watch->lost_index == NO_RANK);
        if (message <= MESSAGE_END)
            rank->status = (Status)(MESSAGE_END - message);
        else if (message <= MESSAGE_STAGE)
            rank->stage = (StartStage)(MESSAGE_STAGE - message);
        /* a heartbeat from another host repeats the stage, which is no progress */
        if (!*rank->host || rank->stage != stage) watch->last_message_s = clock_s();
        return;
    }
    /* close also removes the descriptor from epoll's set */
    close(rank->fd);
    rank->fd = -1;
    if (rank->ended || *rank->host || watch->lost_index != NO_RANK) return;
    watch->lost_index = (int)(rank - watch->rank);
}

bool watch_wait(Watch *watch, int limit_ms)
{
    enum { EVENTS_MAX = 16 };
    struct epoll_event event[EVENTS_MAX];
    bool signalled = false;
    int count = epoll_wait(watch->epoll_fd, event, EVENTS_MAX, limit_ms);
    for (int i = 0; i < count; ++i) {
        void *source = event[i].data.ptr;
        if (source == &watch->signal_fd)
            signalled = true;
        else if (source == &watch->listener)
            accept_rank(watch);
        else if (source == &watch->tcp_listener)
            accept_remote(watch);
        else
            receive(watch, source);
    }
    return signalled;
}

bool watch_all_ended(Watch *watch, Status *status)
{
    bool all = watch->connected == watch->ranks && !watch_lost_rank(watch) && !watch->stop_reported;
    *status = OK;
    for (int i = 0; i < watch->connected; ++i) {
        all = all && watch->rank[i].ended;
        if (watch->rank[i].status > *status) *status = watch->rank[i].status;
    }
    return all;
}

const WatchedRank *watch_lost_rank(Watch *watch)
{
    for (int i = 0; i < watch->ranks && watch->lost_index == NO_RANK; ++i) watch_wait(watch, 0);
    return watch->lost_index == NO_RANK ? NULL : &watch->rank[watch->lost_index];
}

void watch_fini(Watch *watch)
{
    for (int i = 0; i < watch->connected; ++i)
        if (watch->rank[i].fd >= 0) close(watch->rank[i].fd);
    if (watch->listener >= 0) close(watch->listener);
    if (watch->tcp_listener >= 0) close(watch->tcp_listener);
    close(watch->epoll_fd);
    mem_free(&watch->rank);
}

/* ---- rank ---- */

/* maximum number of attempts to connect to a launcher on another host */
enum { CONNECT_TRIES = 5 };
/* this rank's connection to the launcher */
static struct {
    /* protects fd, because watch_send_beat is called on a separate thread */
    pthread_mutex_t lock;
    /* file descriptor of the connection; -1: none */
    int fd;
    /* addresses of a launcher on another host; "": the launcher is on this host, or there is no
     * launcher */
    char addresses[REMOTE_ADDRESSES];
    /* first message to a launcher on another host */
    RemoteHello hello;
    /* last stage that this rank has reported, a StartStage */
    _Atomic int stage;
    /* number of attempts to connect so far */
    int tries;
    /* time of the last attempt or heartbeat */
    double beat_s;
} launcher_link = {.lock = PTHREAD_MUTEX_INITIALIZER, .fd = -1};

void watch_connect(int rank)
{
    struct sockaddr_un address;
    const char *value = getenv(WATCH_VARIABLE);
    char *rest;
    if (!value) return;
    uint64_t token = strtoull(value, &rest, 16);
    socklen_t length = address_of(&address, token);
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (connect(fd, (struct sockaddr *)&address, length) == 0 &&
        send(fd, &rank, sizeof rank, MSG_NOSIGNAL) == (ssize_t)sizeof rank) {
        launcher_link.fd = fd;
        return;
    }
    if (fd >= 0) close(fd);
    launcher_link.hello = (RemoteHello){.token = token, .rank = rank, .process = (int32_t)getpid()};
    host_name(launcher_link.hello.host, sizeof launcher_link.hello.host);
    snprintf(launcher_link.addresses, sizeof launcher_link.addresses, "%s", rest);
}

static bool send_message(int message)
{
    RemoteMessage remote = {.message = message};
    bool is_remote = *launcher_link.addresses;
    const void *data = is_remote ? (const void *)&remote : &message;
    size_t bytes = is_remote ? sizeof remote : sizeof message;
    if (is_remote) remote.work = process_work(getpid());
    pthread_mutex_lock(&launcher_link.lock);
    bool sent = launcher_link.fd >= 0 &&
                send(launcher_link.fd, data, bytes,
                     MSG_NOSIGNAL | (is_remote ? MSG_DONTWAIT : 0)) == (ssize_t)bytes;
    pthread_mutex_unlock(&launcher_link.lock);
    return sent;
}

void watch_report_stage(StartStage stage)
{
    launcher_link.stage = (int)stage;
    (void)send_message(MESSAGE_STAGE - (int)stage);
}

void watch_send_beat(void)
{
    static const double BEAT_S = 0.5, RETRY_S = 2;
    double now_s = clock_s();
    bool connected = launcher_link.fd >= 0;
    if (!*launcher_link.addresses || now_s - launcher_link.beat_s < (connected ? BEAT_S : RETRY_S))
        return;
    launcher_link.beat_s = now_s;
    if (!connected && launcher_link.tries < CONNECT_TRIES) {
        ++launcher_link.tries;
        int fd = remote_connect(launcher_link.addresses, &launcher_link.hello);
        pthread_mutex_lock(&launcher_link.lock);
        launcher_link.fd = fd;
        pthread_mutex_unlock(&launcher_link.lock);
    }
    (void)send_message(MESSAGE_STAGE - launcher_link.stage);
}

bool watch_report_stop(void)
{
    return send_message(MESSAGE_STOP);
}

void watch_report_end(Status status)
{
    (void)send_message(MESSAGE_END - (int)status);
    pthread_mutex_lock(&launcher_link.lock);
    if (launcher_link.fd >= 0) close(launcher_link.fd);
    launcher_link.fd = -1;
    /* prevents further attempts to connect */
    launcher_link.tries = CONNECT_TRIES;
    pthread_mutex_unlock(&launcher_link.lock);
}
