/* TCP connections between ranks and a launcher on another host. The launcher lists the addresses of
 * its interfaces, because other hosts may be unable to resolve its name. A rank tries one address
 * after another. Seen from the rank's host, an address of the launcher may belong to another
 * machine, because bridges of containers have the same address on every host. A rank therefore
 * keeps a connection only if the peer answers with the token.
 *
 * The launcher never waits for a peer. The kernel reports a connection when data has arrived on it,
 * or after DEFER_S without data (TCP_DEFER_ACCEPT). If the first message is incomplete at that
 * time, the launcher closes the connection. */
#include "remote.h"

#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* CONNECT_MS: a rank's time limit for connecting to one address. ANSWER_MS: a rank's time limit for
 * the launcher's answer. DEFER_S: time after which the kernel reports a connection to the launcher
 * even if no data has arrived on it. */
enum { CONNECT_MS = 500, ANSWER_MS = 2000, DEFER_S = 2 };

static void set_option(int fd, int level, int option, int value)
{
    setsockopt(fd, level, option, &value, sizeof value);
}

/* Appends the addresses of all interfaces that are up, except the loopback, each after a '/', as
 * long as they fit. ipv6: true: IPv6 addresses are included, except link-local ones. */
static void add_addresses(char addresses[REMOTE_ADDRESSES], bool ipv6)
{
    struct ifaddrs *all = NULL;
    if (getifaddrs(&all) != 0) return;
    for (const struct ifaddrs *a = all; a; a = a->ifa_next) {
        int family = a->ifa_addr ? a->ifa_addr->sa_family : AF_UNSPEC;
        bool usable = a->ifa_flags & IFF_UP && !(a->ifa_flags & IFF_LOOPBACK);
        char text[64];
        socklen_t bytes =
            family == AF_INET ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6);
        if (!usable || (family != AF_INET && (family != AF_INET6 || !ipv6))) continue;
        if (getnameinfo(a->ifa_addr, bytes, text, sizeof text, NULL, 0, NI_NUMERICHOST) != 0)
            continue;
        /* an IPv6 address with a '%' is link-local */
        size_t used = strlen(addresses);
        if (strchr(text, '%') || used + strlen(text) + 2 > REMOTE_ADDRESSES) continue;
        snprintf(addresses + used, REMOTE_ADDRESSES - used, "/%s", text);
    }
    freeifaddrs(all);
}

int remote_listen(char addresses[REMOTE_ADDRESSES])
{
    enum { BACKLOG = 1024 };
    struct sockaddr_in6 address = {.sin6_family = AF_INET6};
    socklen_t bytes = sizeof address;
    addresses[0] = 0;
    int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    bool ipv6 = fd >= 0;
    if (ipv6)
        set_option(fd, IPPROTO_IPV6, IPV6_V6ONLY, 0);
    else
        fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    set_option(fd, IPPROTO_TCP, TCP_DEFER_ACCEPT, DEFER_S);
    /* without bind the kernel chooses a port on all interfaces; sin_port and sin6_port have the
     * same offset */
    if (listen(fd, BACKLOG) != 0 || getsockname(fd, (struct sockaddr *)&address, &bytes) != 0) {
        if (fd >= 0) close(fd);
        return -1;
    }
    snprintf(addresses, REMOTE_ADDRESSES, "/%d", ntohs(address.sin6_port));
    add_addresses(addresses, ipv6);
    return fd;
}

int remote_accept(int listener, uint64_t token, RemoteHello *hello)
{
    int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0) return -1;
    bool known = recv(fd, hello, sizeof *hello, 0) == (ssize_t)sizeof *hello &&
                 hello->token == token && memchr(hello->host, 0, sizeof hello->host) &&
                 send(fd, &token, sizeof token, MSG_NOSIGNAL) == (ssize_t)sizeof token;
    if (!known) {
        close(fd);
        errno = EPROTO;
        return -1;
    }
    /* epoll reports the socket when a whole message has arrived */
    set_option(fd, SOL_SOCKET, SO_RCVLOWAT, sizeof(RemoteMessage));
    return fd;
}

static bool wait_for_event(int fd, short events, int limit_ms)
{
    struct pollfd poll_fd = {.fd = fd, .events = events};
    return poll(&poll_fd, 1, limit_ms) == 1;
}

/* Tries one address. Returns the socket if the peer answers with the token, else -1. */
static int connect_to(const struct addrinfo *to, const RemoteHello *hello)
{
    uint64_t answer = 0;
    int error = 0;
    socklen_t bytes = sizeof error;
    int fd = socket(to->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) return -1;
    bool connected = connect(fd, to->ai_addr, to->ai_addrlen) == 0 ||
                     (errno == EINPROGRESS && wait_for_event(fd, POLLOUT, CONNECT_MS) &&
                      getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &bytes) == 0 && error == 0);
    if (connected && send(fd, hello, sizeof *hello, MSG_NOSIGNAL) == (ssize_t)sizeof *hello &&
        wait_for_event(fd, POLLIN, ANSWER_MS) &&
        recv(fd, &answer, sizeof answer, 0) == (ssize_t)sizeof answer && answer == hello->token)
        return fd;
    close(fd);
    return -1;
}

int remote_connect(const char *addresses, const RemoteHello *hello)
{
    static const struct addrinfo hints = {.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV,
                                          .ai_socktype = SOCK_STREAM};
    char text[REMOTE_ADDRESSES], *rest = text, *address;
    int fd = -1;
    snprintf(text, sizeof text, "%s", addresses);
    /* the list is "/PORT/ADDRESS/..." (remote_listen): the text before the first '/' is empty */
    strsep(&rest, "/");
    const char *port = strsep(&rest, "/");
    while (port && fd < 0 && (address = strsep(&rest, "/"))) {
        struct addrinfo *to = NULL;
        if (getaddrinfo(address, port, &hints, &to) != 0) continue;
        fd = connect_to(to, hello);
        freeaddrinfo(to);
    }
    return fd;
}
