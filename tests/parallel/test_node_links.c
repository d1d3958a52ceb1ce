/* Tests the socket of the first node, to which thousands of nodes send datagrams. One process sends
 * the datagrams of all nodes in the order of their times, and receives them as the watchdog of the
 * first node does. The kernel delivers datagrams inside a host at once, so the test need not
 * wait. */
#include "harness.h"
#include "parallel/watch/node_links.h"

#include <ifaddrs.h>
#include <math.h>
#include <net/if.h>

/* DEFAULT_BYTES: value for setsockopt that gives a receive buffer of Linux's default size, because
 * setsockopt doubles it. */
enum { DEFAULT_BYTES = 212992 / 2, RANKS_EACH = 8, NODES_MOST = 16384 };

static const double BEGIN_S = 1000;

typedef struct Nodes {
    World world;
    /* first: links of the first node; other: links of all other nodes, one after the other, with
     * one socket */
    NodeLinks first, other;
    RankState *rank, mine[RANKS_EACH];
    int nodes;
} Nodes;

/* Initialises the links of another node, with its own socket. */
static void introduce(const Nodes *n, NodeLinks *links)
{
    node_links_init(links, &n->world, true, 0, n->nodes);
    links->token = n->first.token;
    links->first_count = n->first.first_count;
    memcpy(links->first, n->first.first, sizeof n->first.first);
}

/* Returns whether an interface other than the loopback has an address. */
static bool has_address(void)
{
    struct ifaddrs *all = NULL;
    bool found = false;
    CU_ASSERT_EQUAL(getifaddrs(&all), 0);
    for (const struct ifaddrs *a = all; a; a = a->ifa_next)
        found |= a->ifa_addr && (a->ifa_flags & IFF_UP) && !(a->ifa_flags & IFF_LOOPBACK) &&
                 (a->ifa_addr->sa_family == AF_INET || a->ifa_addr->sa_family == AF_INET6);
    freeifaddrs(all);
    return found;
}

/* Makes the links of all nodes. Returns false, with a message, if this host has no address. */
static bool nodes_init(Nodes *n, int nodes)
{
    *n = (Nodes){.world = world_alone(), .nodes = nodes};
    node_links_init(&n->first, &n->world, true, 0, nodes);
    if (n->first.socket < 0) {
        CU_ASSERT_FALSE(has_address());
        node_links_fini(&n->first);
        printf("skipped: this host has no address but its own\n");
        return false;
    }
    introduce(n, &n->other);
    setsockopt(n->first.socket, SOL_SOCKET, SO_RCVBUF, &(int){DEFAULT_BYTES}, sizeof(int));
    n->rank = mem_new((size_t)nodes * RANKS_EACH * sizeof *n->rank);
    return true;
}

static void nodes_fini(Nodes *n)
{
    node_links_fini(&n->first);
    node_links_fini(&n->other);
    mem_free(&n->rank);
}

/* Sends the state of node k at time BEGIN_S. Its ranks are in step `step`. */
static void speak(Nodes *n, NodeLinks *links, int k, int64_t step)
{
    for (int r = 0; r < RANKS_EACH; ++r)
        n->mine[r] = (RankState){.rank = k * RANKS_EACH + r, .newest = {.step = step}};
    links->node = k;
    links->sent_s = 0;
    node_links_send(links, BEGIN_S, n->mine, RANKS_EACH);
}

static void receive_all(Nodes *n)
{
    node_links_receive(&n->first, n->rank, n->nodes * RANKS_EACH);
}

/* Returns the number of nodes about which the first node knows that all their ranks are in this
 * step. */
static int known(const Nodes *n, int64_t step)
{
    int count = 0;
    for (int k = 1; k < n->nodes; ++k) {
        bool all = n->first.link[k].length > 0;
        for (int r = 0; r < RANKS_EACH; ++r)
            all = all && n->rank[k * RANKS_EACH + r].newest.step == step;
        count += all;
    }
    return count;
}

/* In two periods no datagram is lost, although the socket's buffer has room for only a few
 * hundred. */
static void all_are_received(void)
{
    static const int sizes[] = {2, 3, 100, 500, 2048, NODES_MOST};
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; ++s) {
        Nodes n;
        int nodes = sizes[s];
        if (!nodes_init(&n, nodes)) return;
        double pause_s = node_links_pause_s(nodes);
        for (int64_t step = 1; step <= 2; ++step) {
            double now_s = 0;
            for (int k = 1; k < nodes; ++k) {
                for (; node_links_phase_s(k, nodes) >= now_s + pause_s; now_s += pause_s)
                    receive_all(&n);
                speak(&n, &n.other, k, step);
            }
            receive_all(&n);
            CU_ASSERT_EQUAL(known(&n, step), nodes - 1);
        }
        /* checks that the nodes have received an answer */
        node_links_receive(&n.other, n.rank, 0);
        CU_ASSERT(n.other.link[0].length > 0);
        nodes_fini(&n);
    }
}

/* If all nodes send at the same time, datagrams are lost. This shows that all_are_received can
 * detect losses. */
static void a_burst_is_lost(void)
{
    Nodes n;
    if (!nodes_init(&n, NODES_MOST)) return;
    for (int k = 1; k < n.nodes; ++k) speak(&n, &n.other, k, 1);
    receive_all(&n);
    CU_ASSERT(known(&n, 1) >= 64);
    CU_ASSERT(known(&n, 1) < n.nodes / 2);
    nodes_fini(&n);
}

/* The first node receives at most some thousands of datagrams a second. A live node sends often
 * enough not to be reported as silent. Only few nodes send between two looks of the watchdog. */
static void periods(void)
{
    for (int nodes = 2; nodes <= NODES_MOST; nodes += 1 + nodes % 7) {
        double period_s = node_links_period_s(nodes);
        CU_ASSERT(nodes / period_s <= 4096 && period_s >= CHECK_S && period_s <= 4);
        CU_ASSERT(node_links_phase_s(0, nodes) == 0);
        CU_ASSERT(node_links_phase_s(nodes - 1, nodes) < period_s);
        CU_ASSERT(node_links_pause_s(nodes) <= CHECK_S);
        CU_ASSERT(node_links_pause_s(nodes) * nodes / period_s < 64.5);
        CU_ASSERT(period_s / CHECK_S == floor(period_s / CHECK_S));
        if (nodes <= 2048) CU_ASSERT(period_s == CHECK_S);
    }
}

/* A node sends once in each period, even if its watchdog looks more often. */
static void once_a_period(void)
{
    static const int sizes[] = {2049, 2500, 4097, NODES_MOST};
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; ++s) {
        Nodes n;
        if (!nodes_init(&n, sizes[s])) return;
        speak(&n, &n.other, 5, 1);
        n.mine[0].newest.step = 2;
        for (double at_s = CHECK_S; at_s <= node_links_period_s(sizes[s]); at_s += CHECK_S) {
            receive_all(&n);
            CU_ASSERT_EQUAL(n.rank[5 * RANKS_EACH].newest.step, 1);
            node_links_send(&n.other, BEGIN_S + at_s, n.mine, RANKS_EACH);
        }
        receive_all(&n);
        CU_ASSERT_EQUAL(n.rank[5 * RANKS_EACH].newest.step, 2);
        nodes_fini(&n);
    }
}

/* All nodes are notified of the end, except a node that has never sent, whose address is not
 * known. */
static void all_receive_the_end(void)
{
    enum { NODES = 200, CODE = 74, DUMB = 77 };
    Nodes n;
    if (!nodes_init(&n, NODES)) return;
    NodeLinks *peer = mem_new(NODES * sizeof *peer);
    for (int k = 1; k < NODES; ++k) {
        introduce(&n, &peer[k]);
        if (k != DUMB) speak(&n, &peer[k], k, 1);
        receive_all(&n);
    }
    node_links_end(&n.first, CODE);
    for (int k = 1; k < NODES; ++k) {
        node_links_receive(&peer[k], n.rank, 0);
        CU_ASSERT_EQUAL(peer[k].end_code, k == DUMB ? 0 : CODE);
        node_links_fini(&peer[k]);
    }
    mem_free(&peer);
    nodes_fini(&n);
}

TEST_MAIN("node links", {"all are received", all_are_received},
          {"a burst is lost", a_burst_is_lost}, {"periods", periods},
          {"once a period", once_a_period}, {"all receive the end", all_receive_the_end})
