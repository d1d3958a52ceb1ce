/* Datagrams between the watchdogs of different nodes: the first rank of each node sends the state
 * of its ranks to the first node's, which answers. Losing a datagram is no error. All of them
 * arrive at one socket, which holds a few hundred; therefore each node sends once per period, nodes
 * one after the other, and the first node's watchdog reads after pauses in which only a few arrive.
 *
 *      node 0        reads  |  reads  |  reads  |  reads  |  reads  | ...
 *      nodes 1..           1 2       3 4       5 6       1 2       3 4
 *                          |<----------- period ---------->|
 */
#ifndef WEFT_PARALLEL_NODE_LINKS_H
#define WEFT_PARALLEL_NODE_LINKS_H

#include "rank_state.h"

#include <sys/socket.h>

typedef struct NodeLink {
    /* source address of the node's datagrams; length 0: none has arrived yet */
    struct sockaddr_storage from;
    socklen_t length;
    /* arrival of the last datagram, by clock_s */
    double received_s;
} NodeLink;

enum { LINK_ADDRESSES = 8 };
/* Seconds between two looks at a node's ranks. */
#define LOOK_S 0.5

typedef struct NodeLinks {
    /* -1: none */
    int socket;
    int node, nodes;
    /* identifies this run's datagrams */
    uint64_t token;
    /* addresses of the first node's watchdog, tried in turn until it answers */
    struct sockaddr_storage first[LINK_ADDRESSES];
    socklen_t length;
    int first_count, tried;
    /* time of the last datagram sent, by clock_s */
    double sent_s;
    /* on other nodes link[0], the first node; on the first node link[1..], the others; owned */
    NodeLink *link;
    /* exit code with which another node's watchdog ends the job; 0: none */
    int end_code;
} NodeLinks;

/* Seconds. period: the interval at which a node sends, which is LOOK_S, or a multiple of it where
 * nodes are numerous and the first one would do little else than read. phase: when in the period a
 * node sends. pause: how long the first node waits between two reads. */
double node_links_period_s(int nodes);
double node_links_phase_s(int node, int nodes);
double node_links_pause_s(int nodes);

/* Opens a socket on a node's first rank (speaks); elsewhere none. Collective on world. */
void node_links_init(NodeLinks *links, const World *world, bool speaks, int node, int nodes);
void node_links_fini(NodeLinks *links);
/* Sends the state of this node's ranks, once per period; does nothing on the first node. now_s: by
 * clock_s. */
void node_links_send(NodeLinks *links, double now_s, const RankState *state, int count);
/* Reads all datagrams that have arrived; on the first node other nodes' states go to all[rank] (of
 * `ranks`). */
void node_links_receive(NodeLinks *links, RankState *all, int ranks);
/* Announces to all known nodes that the job ends with this code; takes a second at most. */
void node_links_end(NodeLinks *links, int code);

#endif
