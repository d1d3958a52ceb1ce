/* The launcher lists the addresses of its interfaces, because its name may mean nothing on other
 * hosts. A rank tries one address after another. An address may belong to another machine there (a
 * bridge of containers has the same one everywhere), so the launcher answers with the token. It
 * never waits for a stranger: the kernel passes on only connections that have sent something
 * (TCP_DEFER_ACCEPT), and one whose first message is not whole is closed. */
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

enum { CONNECT_MS = 500, ANSWER_MS = 2000, DEFER_S = 2 };

static void set_option(int file, int level, int option, int value)
{
    setsockopt(file, level, option, &value, sizeof value);
}

/* Appends the addresses of all interfaces that are up, as far as there is room. */
static void add_addresses(char where[REMOTE_ADDRESSES], bool six)
{
    struct ifaddrs *all = NULL;
    if (getifaddrs(&all) != 0) return;
    for (const struct ifaddrs *a = all; a; a = a->ifa_next) {
        int family = a->ifa_addr ? a->ifa_addr->sa_family : AF_UNSPEC;
        bool usable = a->ifa_flags & IFF_UP && !(a->ifa_flags & IFF_LOOPBACK);
        char text[64];
        socklen_t bytes =
            family == AF_INET ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6);
        if (!usable || (family != AF_INET && (family != AF_INET6 || !six))) continue;
        if (getnameinfo(a->ifa_addr, bytes, text, sizeof text, NULL, 0, NI_NUMERICHOST) != 0)
            continue;
        /* an address with a '%' is valid on one link only */
        size_t used = strlen(where);
        if (strchr(text, '%') || used + strlen(text) + 2 > REMOTE_ADDRESSES) continue;
        snprintf(where + used, REMOTE_ADDRESSES - used, "/%s", text);
    }
    freeifaddrs(all);
}

int remote_listen(char where[REMOTE_ADDRESSES])
{
    enum { WAITING = 1024 };
    struct sockaddr_in6 address = {.sin6_family = AF_INET6};
    socklen_t bytes = sizeof address;
    where[0] = 0;
    int file = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    bool six = file >= 0;
    if (six)
        set_option(file, IPPROTO_IPV6, IPV6_V6ONLY, 0);
    else
        file = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    set_option(file, IPPROTO_TCP, TCP_DEFER_ACCEPT, DEFER_S);
    /* without bind the kernel chooses a port on all interfaces; it lies at the same place in the
     * addresses of both families */
    if (listen(file, WAITING) != 0 || getsockname(file, (struct sockaddr *)&address, &bytes) != 0) {
        if (file >= 0) close(file);
        return -1;
    }
    snprintf(where, REMOTE_ADDRESSES, "/%d", ntohs(address.sin6_port));
    add_addresses(where, six);
    return file;
}

int remote_accept(int listener, uint64_t token, RemoteHello *hello)
{
    int file = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (file < 0) return -1;
    bool known = recv(file, hello, sizeof *hello, 0) == (ssize_t)sizeof *hello &&
                 hello->token == token && memchr(hello->host, 0, sizeof hello->host) &&
                 send(file, &token, sizeof token, MSG_NOSIGNAL) == (ssize_t)sizeof token;
    if (!known) {
        close(file);
        return -1;
    }
    /* epoll reports the file when a whole message has come */
    set_option(file, SOL_SOCKET, SO_RCVLOWAT, sizeof(RemoteWord));
    return file;
}

static bool wait_for(int file, short events, int limit_ms)
{
    struct pollfd look = {.fd = file, .events = events};
    return poll(&look, 1, limit_ms) == 1;
}

static int connect_to(const struct addrinfo *to, const RemoteHello *hello)
{
    uint64_t answer = 0;
    int error = 0;
    socklen_t bytes = sizeof error;
    int file = socket(to->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (file < 0) return -1;
    bool connected = connect(file, to->ai_addr, to->ai_addrlen) == 0 ||
                     (errno == EINPROGRESS && wait_for(file, POLLOUT, CONNECT_MS) &&
                      getsockopt(file, SOL_SOCKET, SO_ERROR, &error, &bytes) == 0 && error == 0);
    if (connected && send(file, hello, sizeof *hello, MSG_NOSIGNAL) == (ssize_t)sizeof *hello &&
        wait_for(file, POLLIN, ANSWER_MS) &&
        recv(file, &answer, sizeof answer, 0) == (ssize_t)sizeof answer && answer == hello->token)
        return file;
    close(file);
    return -1;
}

int remote_connect(const char *where, const RemoteHello *hello)
{
    static const struct addrinfo hints = {.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV,
                                          .ai_socktype = SOCK_STREAM};
    char text[REMOTE_ADDRESSES], *rest = text, *address;
    int file = -1;
    snprintf(text, sizeof text, "%s", where);
    strsep(&rest, "/");
    const char *port = strsep(&rest, "/");
    while (port && file < 0 && (address = strsep(&rest, "/"))) {
        struct addrinfo *to = NULL;
        if (getaddrinfo(address, port, &hints, &to) != 0) continue;
        file = connect_to(to, hello);
        freeaddrinfo(to);
    }
    return file;
}
