/* Sums by messages between ranks: the choice between all to all and halving, and the expected
 * cost. Does not call MPI. */
#ifndef WEFT_PARALLEL_SUMS_H
#define WEFT_PARALLEL_SUMS_H

#include "base.h"

#include <stdbool.h>
#include <stdint.h>

/* grid.sums: which messages compute a sum. All to all: each rank exchanges messages with all other
 * ranks at once. Halving: rounds of recursive halving and doubling (docs/sums.md). Auto: halving
 * where a rule expects it to wait less. The bits of the sum are the same. */
#define COMM_WAY_WORDS(W)                                                                          \
    W(COMM_BY_RULE, "auto") W(COMM_ALL_TO_ALL, "all") W(COMM_HALVING, "halving")
typedef enum CommWay { COMM_WAY_WORDS(LIST_CONSTANT) } CommWay;

/* One operation to be costed. The ranks are in groups of `width` ranks on a node
 * (comm_group_width). A rail consists of the ranks / width ranks that have the same index in their
 * groups. `elements` floats are moved, in an arena of arena_elements. A sum collects and spreads, a
 * reduce-scatter only collects, an all-gather only spreads. A push collects; the last push of a
 * tree with PUSH_TO_ALL also spreads. */
typedef struct SumShape {
    int ranks, width;
    int64_t arena_elements, elements;
    /* true: the operation has this phase */
    bool collect, spread;
    /* true: a push. The sum is added to a tree that grows with later pushes. If the number of ranks
     * of a rail is not a power of two, the rail's sum is not a node of that tree. Halving then
     * stops at groups whose sums are nodes, and the groups exchange these sums all to all; with an
     * odd number of ranks halving is impossible. */
    bool push;
    /* elements of the longest shard, if the range is cut at given bounds; 0: the range is cut
     * evenly */
    int64_t longest;
} SumShape;

/* An operation moves its range in pieces, a few of them at a time. SUM_PIECES_IN_FLIGHT: the most
 * pieces in flight. sum_pieces_in_flight: the number of pieces in flight for an arena; all pieces
 * in flight together are about as large as the arena at most. */
enum { SUM_PIECES_IN_FLIGHT = 16 };
int sum_pieces_in_flight(int width, int64_t arena_elements);
/* Floats of one piece of a range that is cut evenly: the `width` ranks of a group move it
 * together. */
int64_t sum_piece_elements(int ranks, int width, int64_t arena_elements);
/* Upper limit for the floats of a rank's slice of a piece. */
int64_t sum_slice_elements(int ranks, int width, int64_t arena_elements);

/* True if a range that is cut at given bounds moves in slices: each piece is the next slice of
 * every shard. Otherwise each piece is a consecutive range with the parts of all shards that are in
 * it. All to all has staging memory for slices only. Halving uses slices or ranges, whichever gives
 * fewer pieces: where few ranks have shards, a piece of slices is mostly empty, while a consecutive
 * range is full. A range that is cut evenly moves in consecutive ranges, and each rank has a part
 * of every one. */
bool sum_by_slices(const SumShape *shape, CommWay way);
/* Floats of a piece that is a consecutive range (sum_by_slices). Such a piece fits into the staging
 * memory of one rail. */
int64_t sum_range_elements(int ranks, int width, int64_t arena_elements);
/* Number of pieces in which the operation moves. way: not COMM_BY_RULE. */
int64_t sum_pieces(const SumShape *shape, CommWay way);

/* Linear cost of a link: a message of n bytes takes latency_s + n * s_per_byte seconds (the
 * alpha-beta model). */
typedef struct Link {
    double latency_s, s_per_byte;
} Link;

/* Cost of one operation, for the busiest rank except where a field is a mean. */
typedef struct SumCost {
    int64_t pieces;
    /* messages sent; mean_messages: the mean over all ranks */
    int64_t messages;
    double mean_messages;
    /* number of ranks with which the rank exchanges messages */
    int partners;
    /* consecutive rounds in which one piece waits for messages */
    int rounds;
    /* bytes sent, the mean over all ranks; the same for both ways. If the number of ranks is not a
     * power of two, some ranks send more than the mean when halving spreads the result; in both
     * phases together a rank sends at most 1.25 times the mean. */
    double bytes;
    /* expected time: (latency / 3) * (2 * rounds + (messages + mean_messages) / 2) + bytes *
     * s_per_byte. In this formula, messages counts for each phase the messages of the rank that
     * sends or receives the most. A third of a latency is work of the sender and the receiver,
     * which adds up over messages; the rest is time on the wire, which pieces in flight spend at
     * the same time. */
    double seconds;
} SumCost;
/* way: not COMM_BY_RULE. */
SumCost sum_cost(const SumShape *shape, CommWay way, Link link);
/* The rule of COMM_BY_RULE: the smallest number of pieces with which halving costs less than all
 * to all between the ranks of a rail. The number is the same for every link, because both ways send
 * the same mean number of bytes. INT64_MAX: halving never costs less. The number is lower where
 * halving moves in fewer pieces than all to all. */
int64_t sum_halving_from(int rail);
/* Returns the way of a sum if `requested` is configured: `requested` itself or, for COMM_BY_RULE,
 * the way that the rule chooses. Returns all to all where halving is impossible, and for two
 * ranks, which exchange halves either way. */
CommWay sum_way(const SumShape *shape, CommWay requested);

#endif
