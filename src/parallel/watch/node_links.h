/* Datagrams between the watchdogs of different nodes. The first rank of each node sends the states
 * of all ranks of the node to the watchdog of the first node, which answers. A lost datagram is not
 * an error. All datagrams to the first node arrive at one socket, whose buffer may hold as few as
 * 64. Therefore each node sends once per period, the nodes send one after the other, and the
 * watchdog of the first node reads often enough that at most 64 datagrams arrive between two reads.
 *
 *      node 0        reads  |  reads  |  reads  |  reads  |  reads  | ...
 *      nodes 1..           1 2       3 4       5 6       1 2       3 4
 *                          |<----------- period ---------->|
 */
#ifndef WEFT_PARALLEL_NODE_LINKS_H
#define WEFT_PARALLEL_NODE_LINKS_H

#include "rank_state.h"

#include <sys/socket.h>

/* The connection to one other node. */
typedef struct NodeLink {
    /* source address of the node's datagrams */
    struct sockaddr_storage from;
    /* bytes of `from`; 0: no datagram has arrived yet */
    socklen_t length;
    /* time (clock_s) at which the last datagram arrived */
    double received_s;
} NodeLink;

/* largest number of addresses of the first node that are tried */
enum { LINK_ADDRESSES = 8 };
/* seconds between two checks of a node's ranks */
#define CHECK_S 0.5

typedef struct NodeLinks {
    /* UDP socket; -1: this rank does not send or receive datagrams */
    int socket;
    /* number of this node, in the order of the nodes' first ranks */
    int node;
    /* number of nodes */
    int nodes;
    /* number that identifies the datagrams of this start */
    uint64_t token;
    /* addresses of the first node's watchdog, without loopback, [first_count]; other nodes try them
     * in turn until the watchdog answers */
    struct sockaddr_storage first[LINK_ADDRESSES];
    /* bytes of each address in `first` */
    socklen_t length;
    /* number of addresses in `first` */
    int first_count;
    /* index in `first` of the address in use */
    int tried;
    /* time (clock_s) of the last datagram sent */
    double sent_s;
    /* connections to other nodes, [nodes]. On the first node link[i] is the connection to node i,
     * and link[0] is unused; on other nodes only link[0], to the first node, is used. Owned; NULL
     * with one node. */
    NodeLink *link;
    /* exit code with which the watchdog of another node ends the job; 0: none has announced the
     * end */
    int end_code;
} NodeLinks;

/* Returns the seconds between two datagrams of a node: CHECK_S, or with thousands of nodes a
 * multiple of CHECK_S. This limits the time that the first node spends on reading. */
double node_links_period_s(int nodes);
/* Returns the seconds between the start of a period and the time at which node `node` sends. */
double node_links_phase_s(int node, int nodes);
/* Returns the seconds between two reads by the watchdog of the first node. */
double node_links_pause_s(int nodes);

/* Opens a socket on rank 0 and, on each other node, on the rank that sends for the node (speaks =
 * true). Other ranks have no socket. No rank has one if there is only one node, or if the first
 * node has no usable address. node: number of this rank's node; nodes: number of nodes. Collective
 * on world. */
void node_links_init(NodeLinks *links, const World *world, bool speaks, int node, int nodes);
void node_links_fini(NodeLinks *links);
/* Sends the states of this node's ranks to the first node, if a period has passed since the last
 * datagram. Does nothing on the first node. state: [count]; states beyond the 65,000 bytes of a
 * datagram are not sent. now_s: time by clock_s. */
void node_links_send(NodeLinks *links, double now_s, const RankState *state, int count);
/* Reads all datagrams that have arrived. On the first node, stores the states of other nodes' ranks
 * in all[ranks], indexed by the rank's number in the job. */
void node_links_receive(NodeLinks *links, RankState *all, int ranks);
/* Announces to all nodes whose address is known that the job ends with exit code `code`. Returns
 * after at most a second. */
void node_links_end(NodeLinks *links, int code);

#endif
