/* One rank's bytes to some others, along a binary tree of them.
 *
 *     nodes   a a a  b b b b  c c         0 sends to 1 and 3: those behind it are cut in two at the
 *     ranks   0 1 2  3 4 5 6  7 8         border between nodes that is next to their middle
 *
 *             0 -> 1 -> 2
 *               -> 3 -> 4 -> 5            a node is entered once; within it the rest is halved
 *                         -> 6
 *                    -> 7 -> 8
 */
#ifndef WEFT_PARALLEL_MULTICAST_H
#define WEFT_PARALLEL_MULTICAST_H

#include "parallel/world.h"

typedef struct MulticastPlace {
    /* ranks of the world; -1: none */
    int parent, child[2];
    /* steps from the root to the last member, about */
    int levels;
} MulticastPlace;

/* Of each rank the first rank of its node. Owner: the caller. Collective. */
int *world_nodes(const World *world);
/* Where one of the members stands. member: ranks of the world, the root first, those of its node
 * next, the others node by node; node: of each rank of the world, as world_nodes gives it. A pure
 * function: about 2 log2(count) steps lie between the root and the last member, at most. */
MulticastPlace multicast_place(const int *member, int count, const int *node, int rank);
enum { MULTICAST_PIECES = 4 };
typedef struct Multicast {
    const World *world;
    MulticastPlace place;
    char *data;
    size_t bytes;
    /* of a piece each, in turn: from the parent, to the children */
    MPI_Request in[MULTICAST_PIECES], out[MULTICAST_PIECES][2];
} Multicast;
/* The root's data to all members, in pieces that are passed on while others come: each rank sends
 * at most twice what it receives. After begin all of it is here, and may be read; it may be changed
 * after wait, when it has gone on, too. Collective on the members, both, who begin and wait in the
 * same order; any number of bytes. world and data are borrowed until wait. */
void multicast_begin(Multicast *multicast, const World *world, MulticastPlace place, void *data,
                     size_t bytes);
void multicast_wait(Multicast *multicast);

#endif
