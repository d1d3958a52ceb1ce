/* Sums by messages between ranks: which of two ways they go, and what they are expected to cost. No
 * MPI. */
#ifndef WEFT_PARALLEL_SUMS_H
#define WEFT_PARALLEL_SUMS_H

#include "base.h"

#include <stdbool.h>
#include <stdint.h>

/* grid.sums: how a sum by messages goes. All to all: each rank exchanges with every other one at
 * once. Halving: rounds of recursive halving and doubling (docs/sums.md). Auto: halving where a
 * rule expects it to wait less. The bits are the same. */
#define COMM_WAY_WORDS(W)                                                                          \
    W(COMM_BY_RULE, "auto") W(COMM_ALL_TO_ALL, "all") W(COMM_HALVING, "halving")
typedef enum CommWay { COMM_WAY_WORDS(LIST_CONSTANT) } CommWay;

/* One operation to be costed. The ranks are in groups of `width` ranks on a node; a rail is the
 * ranks with the same number in all groups, ranks / width of them (comm.h). `elements` floats are
 * moved, in an arena of arena_elements. A sum collects and spreads, a reduce-scatter or a push only
 * collects, an all-gather only spreads. */
typedef struct SumShape {
    int ranks, width;
    int64_t arena_elements, elements;
    bool collect, spread;
    /* True for the leaves of a tree that goes on growing. The sum of a rail that is no power of two
     * is no node of that tree: halving then stops at groups whose sums are, which exchange them all
     * to all; with an odd number of ranks halving is impossible. */
    bool push;
    /* elements of the longest shard, where the range is cut at given bounds; 0: it is cut evenly */
    int64_t longest;
} SumShape;

/* SUM_PIECES_IN_FLIGHT: the most pieces in flight at a time. sum_pieces_in_flight: their number for
 * an arena; together they are no larger than the arena. */
enum { SUM_PIECES_IN_FLIGHT = 16 };
int sum_pieces_in_flight(int width, int64_t arena_elements);
/* Floats of one piece of a range that is cut evenly: the part that a group of `width` ranks moves
 * at a time. */
int64_t sum_piece_elements(int ranks, int width, int64_t arena_elements);
/* Upper limit for the floats of a rank's slice of a piece. */
int64_t sum_slice_elements(int ranks, int width, int64_t arena_elements);

/* True if a range that is cut at given bounds moves in slices: each piece is the next slice of
 * every shard. Otherwise pieces are consecutive ranges, with the shards that lie there. All to all
 * has room for slices only. Halving takes whichever gives fewer pieces: where few ranks have
 * shards, most have nothing in a slice, while a range is always full. A range that is cut evenly
 * moves in ranges, and each rank has a slice of every one. */
bool sum_by_slices(const SumShape *shape, CommWay way);
/* Floats of such a consecutive range, which fits into the staging memory of one rail. */
int64_t sum_range_elements(int ranks, int width, int64_t arena_elements);
/* Number of pieces in which the operation moves. way: not COMM_BY_RULE. */
int64_t sum_pieces(const SumShape *shape, CommWay way);

/* Linear cost of a link: a message of n bytes takes latency_s + n * s_per_byte seconds (alpha and
 * beta). */
typedef struct Link {
    double latency_s, s_per_byte;
} Link;

/* Cost of one operation, for the busiest rank except where a field is a mean. */
typedef struct SumCost {
    int64_t pieces;
    /* messages sent; mean_messages: the mean over all ranks */
    int64_t messages;
    double mean_messages;
    /* number of other ranks with which it exchanges messages */
    int partners;
    /* consecutive rounds in which one piece waits for messages */
    int rounds;
    /* bytes sent, the mean over all ranks; the same for both ways. Where ranks are no power of two,
     * spreading by halving sends more from some of them, and both phases together up to 1.25 times
     * the mean. */
    double bytes;
    /* expected time: (latency / 3) * (2 * rounds + (messages + mean_messages) / 2) + bytes *
     * s_per_byte, where messages are those of the rank that sends, or receives, most in each phase.
     * A third of a latency is work of the sender and the receiver, which adds up; the rest is spent
     * on the wire, where all pieces in flight wait at the same time. */
    double seconds;
} SumCost;
/* way: not COMM_BY_RULE. */
SumCost sum_cost(const SumShape *shape, CommWay way, Link link);
/* The rule: the number of pieces from which halving costs less between the ranks of a rail, on any
 * link, since both ways have the same mean bytes. INT64_MAX: never. The number is lower where
 * halving moves in fewer pieces than all to all. */
int64_t sum_halving_from(int rail);
/* Returns the way of a sum for which `requested` is configured: that one or, for COMM_BY_RULE, the
 * one that the rule chooses; all to all where halving is impossible or would be the same (two ranks
 * exchange halves either way). */
CommWay sum_way(const SumShape *shape, CommWay requested);

#endif
