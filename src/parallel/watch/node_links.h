/* Datagrams between the watchdogs of different nodes: the first rank of each node sends the states
 * of its node's ranks to the first node's watchdog, which answers. A lost datagram is not an error.
 * All datagrams to the first node arrive at one socket, whose buffer may hold as few as 64.
 * Therefore each node sends once per period, nodes one after the other, and the first node's
 * watchdog reads often enough that at most 64 datagrams arrive between two reads.
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
/* Seconds between two checks of a node's ranks. */
#define LOOK_S 0.5

typedef struct NodeLinks {
    /* UDP socket; -1: this rank does not send or receive datagrams */
    int socket;
    /* number of this node, and number of nodes */
    int node, nodes;
    /* identifies this run's datagrams */
    uint64_t token;
    /* addresses of the first node's watchdog without loopback, [first_count], tried in turn until
     * it answers */
    struct sockaddr_storage first[LINK_ADDRESSES];
    /* bytes of each address */
    socklen_t length;
    /* number of addresses, and index of the address in use */
    int first_count, tried;
    /* time of the last datagram sent, by clock_s */
    double sent_s;
    /* links to other nodes, [nodes]: on the first node link[i] is node i, i > 0; on other nodes
     * only link[0], the first node, is used; owned; NULL with one node */
    NodeLink *link;
    /* exit code with which another node's watchdog ends the job; 0: none */
    int end_code;
} NodeLinks;

/* Seconds between two datagrams of a node: LOOK_S, or with thousands of nodes a multiple of LOOK_S,
 * which limits the time that the first node spends on reading. */
double node_links_period_s(int nodes);
/* Seconds after the start of a period at which a node sends. */
double node_links_phase_s(int node, int nodes);
/* Seconds between two reads of the first node's watchdog. */
double node_links_pause_s(int nodes);

/* Opens a socket on rank 0, and on each other node on the rank that sends for it (speaks = true).
 * Other ranks have none; no rank has one if there is one node, or if the first node has no usable
 * address. node, nodes: number of this rank's node, and number of nodes. Collective on world. */
void node_links_init(NodeLinks *links, const World *world, bool speaks, int node, int nodes);
void node_links_fini(NodeLinks *links);
/* Sends the states of this node's ranks (`count` of them, cut to the 65,000 bytes of a datagram)
 * to the first node, once per period; does nothing on the first node. now_s: by clock_s. */
void node_links_send(NodeLinks *links, double now_s, const RankState *state, int count);
/* Reads all datagrams that have arrived; on the first node, stores the states of other nodes' ranks
 * in all, [ranks], by their numbers in the job. */
void node_links_receive(NodeLinks *links, RankState *all, int ranks);
/* Announces to all nodes whose address is known that the job ends with this code. Returns after a
 * second at most. */
void node_links_end(NodeLinks *links, int code);

#endif
