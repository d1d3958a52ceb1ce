/* Sends one rank's bytes to some other ranks, along a binary tree.
 *
 *     nodes   a a a  b b b b  c c         0 sends to 1 and 3: the ranks after it are cut in two at
 *     ranks   0 1 2  3 4 5 6  7 8         the change of node that is nearest to their middle
 *
 *             0 -> 1 -> 2
 *               -> 3 -> 4 -> 5            each node gets the bytes from another node once;
 *                         -> 6            its ranks are then halved again and again
 *                    -> 7 -> 8
 */
#ifndef WEFT_PARALLEL_MULTICAST_H
#define WEFT_PARALLEL_MULTICAST_H

#include "parallel/world.h"

/* The place of a rank in the tree. */
typedef struct MulticastPlace {
    /* parent: number of the parent in the world; child: numbers of the children in the world; -1:
     * there is no such rank */
    int parent, child[2];
    /* approximate number of messages on the way from the root to the last member */
    int levels;
} MulticastPlace;

/* Returns, for each rank, the first rank of its node: int[world->size]. The caller owns it.
 * Collective. */
int *world_node_leaders(const World *world);
/* Returns the place of `rank`, one of the members, in the tree. member: ranks of the world,
 * [count]: the root first, then the other ranks of its node, then the remaining ranks node by node.
 * node: the first rank of each rank's node, as world_node_leaders returns it. A pure function. The
 * last member is at most about 2 log2(count) messages away from the root. */
MulticastPlace multicast_place(const int *member, int count, const int *node, int rank);
/* number of pieces that may be in flight */
enum { MULTICAST_PIECES = 4 };
/* A multicast in progress, between multicast_begin and multicast_wait; private to them. */
typedef struct Multicast {
    const World *world;
    MulticastPlace place;
    char *data;
    size_t bytes;
    /* requests of MPI for one piece each, used in turn: `in` receives from the parent, `out` sends
     * to the two children */
    MPI_Request in[MULTICAST_PIECES], out[MULTICAST_PIECES][2];
} Multicast;
/* Sends the root's data to all members, in pieces; a rank passes pieces on while later ones arrive,
 * and sends at most twice the bytes that it receives. When multicast_begin returns, all of data has
 * arrived and may be read. When multicast_wait returns, data has been passed on and may be changed.
 * `bytes` may exceed 2^31. world and data are borrowed until multicast_wait returns. Both functions
 * are collective on the members, and all members call them in the same order. */
void multicast_begin(Multicast *multicast, const World *world, MulticastPlace place, void *data,
                     size_t bytes);
void multicast_wait(Multicast *multicast);

#endif
