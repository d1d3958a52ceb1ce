/* Sums by messages between ranks: the choice between the algorithms all to all and halving, and
 * their expected costs. Does not call MPI. */
#ifndef WEFT_PARALLEL_SUMS_H
#define WEFT_PARALLEL_SUMS_H

#include "base.h"

#include <stdbool.h>
#include <stdint.h>

/* Values of grid.sums: the algorithm of a sum. All to all: each rank exchanges messages with all
 * other ranks at the same time. Halving: rounds of recursive halving and doubling (docs/sums.md).
 * Auto: halving if it is expected to take less time, else all to all (sum_algorithm). The bits of a
 * sum do not depend on the algorithm. */
#define SUM_ALGORITHM_WORDS(W)                                                                     \
    W(COMM_BY_RULE, "auto") W(COMM_ALL_TO_ALL, "all") W(COMM_HALVING, "halving")
typedef enum SumAlgorithm { SUM_ALGORITHM_WORDS(LIST_CONSTANT) } SumAlgorithm;

/* An operation for which the cost is computed. The ranks are in groups of `width` ranks of a node
 * (comm_group_width). A rail is the ranks / width ranks that have the same index in their groups.
 * Operations have up to two phases: collecting, in which ranks send summands, and spreading, in
 * which ranks send results. A sum has both, a reduce-scatter only collects, an all-gather only
 * spreads. A push (CommPush in parallel/comm.h) collects; the last push of a tree with PUSH_TO_ALL
 * also spreads. */
typedef struct SumShape {
    int ranks, width;
    /* arena_elements: floats in the arena; elements: floats that the operation moves */
    int64_t arena_elements, elements;
    /* true: the operation has this phase */
    bool collect, spread;
    /* true: the operation is a push, so its sum is added to a tree that grows with later pushes. If
     * the number of ranks of a rail is not a power of two, the rail's sum is not a node of that
     * tree. Halving then stops at groups of ranks whose sums are nodes, and the groups exchange
     * these sums all to all. If the number of ranks of a rail is odd, halving is impossible. */
    bool is_push;
    /* floats in the longest shard if the range is cut at given bounds; 0: the range is cut
     * evenly */
    int64_t longest;
} SumShape;

/* An operation moves its range in pieces, of which several are in flight at the same time.
 * SUM_PIECES_IN_FLIGHT: the largest number of pieces in flight. sum_pieces_in_flight returns the
 * number of pieces in flight for an arena; together they are at most about as large as the
 * arena. */
enum { SUM_PIECES_IN_FLIGHT = 16 };
int sum_pieces_in_flight(int width, int64_t arena_elements);
/* Returns the number of floats of one piece of a range that is cut evenly. The `width` ranks of a
 * group move the piece together. */
int64_t sum_piece_elements(int ranks, int width, int64_t arena_elements);
/* Returns an upper limit of the number of floats of one rank's slice of a piece. */
int64_t sum_slice_elements(int ranks, int width, int64_t arena_elements);

/* Returns true if a range that is cut at given bounds moves in slices: each piece is the next slice
 * of every shard. Returns false if each piece is a consecutive range, with the parts of the shards
 * that are in it. All to all has staging memory for slices only. Halving uses the form that gives
 * fewer pieces: if few ranks have shards, a piece of slices is mostly empty, and a consecutive
 * range is full. A range that is cut evenly always moves in consecutive ranges, of which each rank
 * has a part. */
bool sum_by_slices(const SumShape *shape, SumAlgorithm algorithm);
/* Returns the number of floats of a piece that is a consecutive range (sum_by_slices). Such a piece
 * fits into the staging memory of one rail. */
int64_t sum_range_elements(int ranks, int width, int64_t arena_elements);
/* Returns the number of pieces in which the operation moves. algorithm: not COMM_BY_RULE. */
int64_t sum_pieces(const SumShape *shape, SumAlgorithm algorithm);

/* Linear cost of a link: a message of n bytes takes latency_s + n * s_per_byte seconds (the
 * alpha-beta model). */
typedef struct Link {
    double latency_s, s_per_byte;
} Link;

/* Cost of one operation for the rank that sends the most; fields that are means over the ranks say
 * so. */
typedef struct SumCost {
    int64_t pieces;
    /* number of messages sent */
    int64_t messages;
    /* number of messages sent, mean over all ranks */
    double mean_messages;
    /* number of ranks with which the rank exchanges messages */
    int partners;
    /* number of consecutive rounds in which one piece waits for messages */
    int rounds;
    /* bytes sent, mean over all ranks; both algorithms send the same. If the number of ranks is not
     * a power of two, halving makes some ranks send more than the mean when it spreads the result;
     * in both phases together a rank sends at most 1.25 times the mean. */
    double bytes;
    /* expected time in seconds: (latency / 3) * (2 * rounds + (messages + mean_messages) / 2) +
     * bytes * s_per_byte. Here messages is, for each phase, the number of messages of the rank that
     * sends or receives the most. A third of a latency is work of the sender and the receiver,
     * which adds up over messages. The rest is time on the wire, which pieces in flight spend at
     * the same time. */
    double seconds;
} SumCost;
/* Returns the cost of an operation over a link. algorithm: not COMM_BY_RULE. */
SumCost sum_cost(const SumShape *shape, SumAlgorithm algorithm, Link link);
/* Returns the smallest number of pieces from which a sum costs less by halving than all to all,
 * between the `rail` ranks of a rail, if both algorithms move it in the same number of pieces. The
 * result is the same for every link, because both algorithms send the same mean number of bytes.
 * INT64_MAX: halving never costs less. COMM_BY_RULE (sum_algorithm) compares the same costs, but
 * with the number of pieces of each algorithm. */
int64_t sum_halving_from(int rail);
/* Returns the algorithm that a sum uses if grid.sums is `requested`: `requested` itself or, for
 * COMM_BY_RULE, the algorithm that the rule chooses. Returns COMM_ALL_TO_ALL if halving is
 * impossible, and for a rail of two ranks, which exchange halves with either algorithm. */
SumAlgorithm sum_algorithm(const SumShape *shape, SumAlgorithm requested);

#endif
