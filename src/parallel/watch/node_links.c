/* Datagrams (UDP) between nodes. It is not known in advance which addresses of the first node the
 * other nodes can reach, so they try these addresses one after the other until the first node
 * answers. The first node answers to the address from which a datagram has come. */
#include "node_links.h"

#include <ifaddrs.h>
#include <net/if.h>
#include <errno.h>
#include <math.h>
#include <netinet/in.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

/* DATAGRAM_BYTES: largest payload of a datagram. SOCKET_BYTES: size of the receive buffer that is
 * requested; the kernel may grant less. SOCKET_HOLDS: number of datagrams of 1 KB that fit even
 * into Linux's default receive buffer of 208 KB, in which each occupies 2.3 KB. */
enum { DATAGRAM_BYTES = 65000, SOCKET_BYTES = 4 << 20, SOCKET_HOLDS = 64 };
/* Largest number of datagrams per second that all nodes together send to the first node. At 10 us
 * each, reading them needs a twenty-fifth of a core. */
static const double DATAGRAMS_PER_S = 4096;
/* longest time, in seconds, for which node_links_end tries to send */
static const double END_S = 1;

typedef enum NewsKind { NEWS_STATES, NEWS_ANSWER, NEWS_END } NewsKind;
/* The beginning of every datagram. In a datagram of kind NEWS_STATES, RankStates follow it. */
typedef struct News {
    /* NodeLinks.token; datagrams with another token are ignored */
    uint64_t token;
    /* a NewsKind */
    int32_t kind;
    /* number of the sender's node */
    int32_t node;
    /* number of RankStates that follow; 0 with other kinds than NEWS_STATES */
    int32_t count;
    /* exit code of the job with NEWS_END; 0 with other kinds */
    int32_t code;
} News;

enum { STATES_MOST = (DATAGRAM_BYTES - sizeof(News)) / sizeof(RankState) };

double node_links_period_s(int nodes)
{
    return CHECK_S * ceil(nodes / (DATAGRAMS_PER_S * CHECK_S));
}

double node_links_phase_s(int node, int nodes)
{
    return node_links_period_s(nodes) * node / nodes;
}

double node_links_pause_s(int nodes)
{
    return fmin(CHECK_S, SOCKET_HOLDS * node_links_period_s(nodes) / nodes);
}

static void set_port(struct sockaddr_storage *address, in_port_t port)
{
    if (address->ss_family == AF_INET)
        ((struct sockaddr_in *)(void *)address)->sin_port = port;
    else
        ((struct sockaddr_in6 *)(void *)address)->sin6_port = port;
}

static socklen_t length_of(int family)
{
    return family == AF_INET ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6);
}

static int list_addresses(struct sockaddr_storage *out, int family)
{
    struct ifaddrs *all, *a;
    int count = 0;
    if (getifaddrs(&all) != 0) return 0;
    for (a = all; a && count < LINK_ADDRESSES; a = a->ifa_next) {
        if (!a->ifa_addr || a->ifa_addr->sa_family != family) continue;
        if (!(a->ifa_flags & IFF_UP) || a->ifa_flags & IFF_LOOPBACK) continue;
        memcpy(&out[count++], a->ifa_addr, length_of(family));
    }
    freeifaddrs(all);
    return count;
}

/* Opens a socket on any address and any port. Sets *port to the port, in network byte order.
 * Returns -1 on failure. */
static int open_socket(int family, in_port_t *port)
{
    struct sockaddr_storage local = {.ss_family = (sa_family_t)family};
    socklen_t length = length_of(family);
    int file = socket(family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (file < 0) return -1;
    (void)setsockopt(file, SOL_SOCKET, SO_RCVBUF, &(int){SOCKET_BYTES}, sizeof(int));
    if (bind(file, (struct sockaddr *)&local, length) != 0 ||
        getsockname(file, (struct sockaddr *)&local, &length) != 0) {
        close(file);
        return -1;
    }
    *port = family == AF_INET ? ((struct sockaddr_in *)(void *)&local)->sin_port
                              : ((struct sockaddr_in6 *)(void *)&local)->sin6_port;
    return file;
}

/* The addresses of the first node's watchdog, and the token of this start. Rank 0 broadcasts them
 * at set-up. */
typedef struct FirstNode {
    uint64_t token;
    /* number of addresses */
    int32_t count;
    /* AF_INET or AF_INET6, for all addresses */
    int32_t family;
    struct sockaddr_storage address[LINK_ADDRESSES];
} FirstNode;

static void open_first(NodeLinks *links, FirstNode *first_node)
{
    in_port_t port = 0;
    first_node->family = AF_INET;
    first_node->count = list_addresses(first_node->address, AF_INET);
    if (first_node->count == 0) {
        first_node->family = AF_INET6;
        first_node->count = list_addresses(first_node->address, AF_INET6);
    }
    links->socket = first_node->count > 0 ? open_socket(first_node->family, &port) : -1;
    if (links->socket < 0) first_node->count = 0;
    for (int i = 0; i < first_node->count; ++i) set_port(&first_node->address[i], port);
    uint64_t seed[2] = {(uint64_t)getpid(), (uint64_t)(clock_s() * 1e9)};
    first_node->token = hash_bytes(seed, sizeof seed);
}

void node_links_init(NodeLinks *links, const World *world, bool speaks, int node, int nodes)
{
    FirstNode first_node = {0};
    in_port_t port;
    *links = (NodeLinks){.socket = -1, .node = node, .nodes = nodes};
    if (nodes == 1) return;
    if (world->rank == 0) open_first(links, &first_node);
    world_bcast(world, &first_node, sizeof first_node, 0);
    links->token = first_node.token;
    links->first_count = first_node.count;
    links->length = length_of(first_node.family);
    memcpy(links->first, first_node.address, sizeof first_node.address);
    if (speaks && node > 0 && first_node.count > 0)
        links->socket = open_socket(first_node.family, &port);
    links->link = mem_new((size_t)nodes * sizeof *links->link);
}

void node_links_fini(NodeLinks *links)
{
    if (links->socket >= 0) close(links->socket);
    links->socket = -1;
    mem_free(&links->link);
}

/* Sends a datagram. state: the states that follow `news`, or NULL. Returns false if the socket's
 * buffer is full at present; other failures are ignored. */
static bool send_to(const NodeLinks *links, const struct sockaddr_storage *to, const News *news,
                    const RankState *state)
{
    struct iovec part[2] = {{(void *)(uintptr_t)news, sizeof *news},
                            {(void *)(uintptr_t)state, (size_t)news->count * sizeof *state}};
    struct msghdr message = {.msg_name = (void *)(uintptr_t)to,
                             .msg_namelen = links->length,
                             .msg_iov = part,
                             .msg_iovlen = state ? 2 : 1};
    if (sendmsg(links->socket, &message, MSG_NOSIGNAL) >= 0) return true;
    return errno != EAGAIN && errno != ENOBUFS;
}

static News news_of(const NodeLinks *links, NewsKind kind)
{
    return (News){.token = links->token, .kind = kind, .node = links->node};
}

void node_links_send(NodeLinks *links, double now_s, const RankState *state, int count)
{
    if (links->socket < 0 || links->node == 0) return;
    /* a datagram may be early by half of CHECK_S, because the calls are not exactly periodic */
    if (now_s - links->sent_s < node_links_period_s(links->nodes) - CHECK_S / 2) return;
    links->sent_s = now_s;
    News news = news_of(links, NEWS_STATES);
    news.count = count < (int)STATES_MOST ? count : (int)STATES_MOST;
    if (links->link[0].length == 0) links->tried = (links->tried + 1) % links->first_count;
    (void)send_to(links, &links->first[links->tried], &news, state);
}

/* Handles a datagram with the right token. Notes the time of its arrival and, with NEWS_END, the
 * exit code. On the first node also stores the states and answers. bytes: bytes of the datagram
 * after its News; from, length: address of the sender; all, ranks: as for node_links_receive. */
static void handle(NodeLinks *links, const News *news, const RankState *state, size_t bytes,
                   const struct sockaddr_storage *from, socklen_t length, RankState *all, int ranks)
{
    bool first = links->node == 0;
    if (news->token != links->token || news->node < 0 || news->node >= links->nodes) return;
    NodeLink *link = &links->link[first ? news->node : 0];
    link->received_s = clock_s();
    link->from = *from;
    link->length = length;
    if (news->kind == NEWS_END) links->end_code = news->code;
    if (news->kind != NEWS_STATES || !first) return;
    if (news->count < 0 || (size_t)news->count * sizeof *state > bytes) return;
    for (int i = 0; i < news->count; ++i) {
        if (state[i].rank < 0 || state[i].rank >= ranks) continue;
        all[state[i].rank] = state[i];
        all[state[i].rank].newest.doing[BEAT_TEXT - 1] = '\0';
    }
    News answer = news_of(links, NEWS_ANSWER);
    (void)send_to(links, from, &answer, NULL);
}

void node_links_receive(NodeLinks *links, RankState *all, int ranks)
{
    static _Alignas(RankState) char states[DATAGRAM_BYTES];
    News news;
    struct sockaddr_storage from;
    if (links->socket < 0) return;
    for (;;) {
        struct iovec part[2] = {{&news, sizeof news}, {states, sizeof states}};
        struct msghdr message = {
            .msg_name = &from, .msg_namelen = sizeof from, .msg_iov = part, .msg_iovlen = 2};
        ssize_t bytes = recvmsg(links->socket, &message, MSG_DONTWAIT);
        if (bytes < 0) return;
        if ((size_t)bytes < sizeof news) continue;
        handle(links, &news, (const RankState *)(const void *)states, (size_t)bytes - sizeof news,
               &from, message.msg_namelen, all, ranks);
    }
}

void node_links_end(NodeLinks *links, int code)
{
    /* number of datagrams to each node; several, because some may be lost */
    enum { TIMES = 3 };
    if (links->socket < 0) return;
    struct pollfd room = {.fd = links->socket, .events = POLLOUT};
    const double limit_s = clock_s() + END_S;
    News news = news_of(links, NEWS_END);
    news.code = code;
    for (int k = 0; k < TIMES; ++k)
        for (int i = 0; i < links->nodes; ++i) {
            const NodeLink *link = &links->link[i];
            if (link->length == 0) continue;
            while (!send_to(links, &link->from, &news, NULL) && clock_s() < limit_s)
                (void)poll(&room, 1, 1);
        }
}
