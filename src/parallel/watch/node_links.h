/* Datagrams between a watchdog's nodes: each node's first rank tells the first node's what its
 * ranks are at, and is answered. Lost datagrams are no error, but all of them come to one socket,
 * which holds some hundreds: so each node speaks once a period, nodes one after the other and not
 * all at once, and the first node's takes what has come after a pause in which few come.
 *
 *      node 0        hears  |  hears  |  hears  |  hears  |  hears  | ...
 *      nodes 1..           1 2       3 4       5 6       1 2       3 4
 *                          |<----------- period ---------->|
 */
#ifndef WEFT_PARALLEL_NODE_LINKS_H
#define WEFT_PARALLEL_NODE_LINKS_H

#include "rank_state.h"

#include <sys/socket.h>

typedef struct NodeLink {
    /* where its datagrams come from, length 0: none came yet */
    struct sockaddr_storage from;
    socklen_t length;
    /* when the last came, by clock_s */
    double heard_s;
} NodeLink;

enum { LINK_ADDRESSES = 8 };
/* Between two looks at a node's ranks, in seconds. */
#define LOOK_S 0.5

typedef struct NodeLinks {
    /* -1: there is none */
    int socket;
    int node, nodes;
    /* that a stranger's datagram does not have */
    uint64_t token;
    /* of the first node, in turn until it answers */
    struct sockaddr_storage first[LINK_ADDRESSES];
    socklen_t length;
    int first_count, tried;
    /* when it spoke last, by clock_s */
    double told_s;
    /* owned; link[0] on other nodes, link[1..] on the first */
    NodeLink *link;
    /* a node has said that the job ends, with this code; 0: none */
    int end_code;
} NodeLinks;

/* How often a node speaks: at each of its looks, which are LOOK_S apart, or where there are so many
 * nodes that the first one's would do little else, at one of several; when in the period it does;
 * after what pause the first node's hears. Seconds. */
double node_links_period_s(int nodes);
double node_links_phase_s(int node, int nodes);
double node_links_pause_s(int nodes);

/* On a node's first rank (speaks) with a socket; elsewhere with none. Collective on world. */
void node_links_init(NodeLinks *links, const World *world, bool speaks, int node, int nodes);
void node_links_fini(NodeLinks *links);
/* Tells what these ranks are at, once a period; on the first node nothing. now_s: of clock_s. */
void node_links_tell(NodeLinks *links, double now_s, const RankState *state, int count);
/* Takes what has come; on the first node other nodes' states go to all[rank], of `ranks`. */
void node_links_hear(NodeLinks *links, RankState *all, int ranks);
/* The job ends: tells all that are known, for a second at most. */
void node_links_end(NodeLinks *links, int code);

#endif
