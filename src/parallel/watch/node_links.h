/* Datagrams between a watchdog's nodes: each node's first rank tells the first node's what its
 * ranks are at, and is answered. Nothing here waits, and lost datagrams are no error. */
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
    /* owned; link[0] on other nodes, link[1..] on the first */
    NodeLink *link;
    /* a node has said that the job ends, with this code; 0: none */
    int end_code;
} NodeLinks;

/* On a node's first rank (speaks) with a socket; elsewhere with none. Collective on world. */
void node_links_init(NodeLinks *links, const World *world, bool speaks, int node, int nodes);
void node_links_fini(NodeLinks *links);
/* Tells what these ranks are at; on the first node nothing. */
void node_links_tell(NodeLinks *links, const RankState *state, int count);
/* Takes what has come; on the first node other nodes' states go to all[rank], of `ranks`. */
void node_links_hear(NodeLinks *links, RankState *all, int ranks);
/* The job ends: tells all that are known. */
void node_links_end(NodeLinks *links, int code);

#endif
