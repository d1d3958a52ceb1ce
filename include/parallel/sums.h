/* Sums by messages between ranks: which way they go, and what they are expected to cost. No MPI. */
#ifndef WEFT_PARALLEL_SUMS_H
#define WEFT_PARALLEL_SUMS_H

#include "base.h"

#include <stdbool.h>
#include <stdint.h>

/* grid.sums. How a sum by messages goes: each rank with each other one at once, or in rounds of
 * recursive halving and doubling (docs/sums.md); by the rule: by halving where that has less to
 * wait for. The bits are the same. */
#define COMM_WAY_WORDS(W)                                                                          \
    W(COMM_BY_RULE, "auto") W(COMM_ALL_TO_ALL, "all") W(COMM_HALVING, "halving")
typedef enum CommWay { COMM_WAY_WORDS(LIST_CONSTANT) } CommWay;

/* What moves, in an arena of so many floats; `ranks` in rails of `width` ranks of a node (comm.h).
 * A sum is collected and spread, a reduce-scatter or a push only collected, an all-gather only
 * spread. */
typedef struct SumShape {
    int ranks, width;
    int64_t arena_elements, elements;
    bool collect, spread;
    /* Leaves of a tree that goes on growing: where a rail is no power of two, its sum is no node of
     * that tree, and there is no halving. */
    bool push;
    /* Of the shards where the cut is at given bounds; 0: it is even. */
    int64_t longest;
} SumShape;

/* Pieces under way at a time, and the most of them: what is in flight is no more than the arena. */
enum { SUM_PIECES_IN_FLIGHT = 16 };
int sum_pieces_in_flight(int width, int64_t arena_elements);
/* Floats of one piece: of what a group of `width` ranks moves of a range that is cut evenly. */
int64_t sum_piece_elements(int ranks, int width, int64_t arena_elements);
/* Floats of a rank's slice of a piece, at most. */
int64_t sum_slice_elements(int ranks, int width, int64_t arena_elements);

/* Given bounds: are pieces slices of all shards, of each the next one, or ranges that follow each
 * other, of whatever shards lie there? All to all has room for slices only; halving takes what are
 * fewer: where shards are few, most ranks have nothing in a slice, and a range is as full as ever.
 * An even cut is cut in ranges, of which each rank has a slice. */
bool sum_by_slices(const SumShape *shape, CommWay way);
/* Of such a range, so that one rail has room for all of it. */
int64_t sum_range_elements(int ranks, int width, int64_t arena_elements);
/* Pieces in which that moves. way: not COMM_BY_RULE. */
int64_t sum_pieces(const SumShape *shape, CommWay way);

/* A message of n bytes takes latency_s + n * byte_s (alpha and beta). */
typedef struct Link {
    double latency_s, byte_s;
} Link;

/* Of the rank that has most, but where a mean is said. */
typedef struct SumCost {
    int64_t pieces;
    /* sent; mean_messages: of all ranks in the mean */
    int64_t messages;
    double mean_messages;
    /* other ranks that it sends to or receives from */
    int partners;
    /* one after the other, each waits for messages: of one piece */
    int rounds;
    /* sent, of all ranks in the mean: of both ways the same; the way back of halving between ranks
     * that are no power of two takes some of them more, both ways up to 1.25 times as much */
    double bytes;
    /* Expected: (latency / 3) * (2 * rounds + (messages + mean_messages) / 2) + bytes * byte_s,
     * where messages are those of the rank that sends, or receives, most in each phase. A
     * third of a latency is work of the sender and the receiver, which adds up; the rest is the
     * wire's, for which pieces that are under way at a time wait at once. */
    double seconds;
} SumCost;
/* way: not COMM_BY_RULE. */
SumCost sum_cost(const SumShape *shape, CommWay way, Link link);
/* The rule: halving costs less from so many pieces on between the ranks of a rail, whatever the
 * link, for both ways have the same bytes in the mean; INT64_MAX: never. Where it moves in fewer
 * pieces than all to all, it does from fewer on. */
int64_t sum_halving_from(int rail);
/* The way that is taken where `asked` is asked for: by the rule, or that one, but all to all where
 * halving cannot be, or would be the same: two ranks exchange halves either way. */
CommWay sum_way(const SumShape *shape, CommWay asked);

#endif
