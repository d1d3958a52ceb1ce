/* Recursive halving and doubling: a sum in log2(ranks) rounds, in the tree's order (tree_sum.h),
 * for any number of ranks (Rabenseifner 2004; Thakur, Rabenseifner, Gropp 2005, section 3, for
 * powers of two).
 *
 * A piece is cut into one slice per rank. The tree's nodes of level q are blocks of 2^q
 * neighbouring ranks; the last block may have fewer. The ranks of a block share its sum: each has
 * some of the slices. In round q each block is joined with its neighbour, if it has one: each rank
 * keeps some of its slices, sends the others to the ranks that keep them in the joined block, and
 * adds the slices that it receives.
 *
 *     collect   round 0   with r ^ 1: half of the slices are sent, half are received and added
 *               round 1   with r ^ 2: a quarter, sums of two ranks each
 *               ..        at the end each rank has one slice, summed over all ranks
 *     spread    the same rounds backwards: the summed part doubles each time
 *
 * In a block of c ranks, the highest bits of slice number t are cleared until the number is below
 * c; the rank with the resulting number in the block keeps slice t. Therefore a rank sends each
 * slice at most once while collecting, and all ranks together move as many bytes as all to all
 * would. With a power of two of ranks, each rank sends one message per round, and all ranks send
 * the same number of bytes; with other numbers of ranks some ranks receive, and send back, up to
 * half more than the mean, and others less. If a block of b ranks is joined with a whole block of
 * 2^q ranks, each of the b ranks sends about 2^q / b messages. For example, with 2^q + 1 ranks the
 * last rank sends 2^q messages, and every other rank at most q + 1.
 *
 * Slices are stored in the order of their numbers with reversed bits; in this order the slices of
 * each message are adjacent. Private to the transports. */
#ifndef WEFT_PARALLEL_HALVING_H
#define WEFT_PARALLEL_HALVING_H

#include <stdbool.h>
#include <stdint.h>

/* A message between this rank and `peer`: the slices at positions [begin, end) of the stored
 * order. */
typedef struct HalvingMessage {
    int peer, begin, end;
} HalvingMessage;

/* One round of collecting. When spreading, a round is reversed: the rank sends the slices of
 * `received` and receives those of the messages in `sent`. */
typedef struct HalvingRound {
    HalvingMessage received;
    /* messages sent, [sends]; sends is 0 if the rank keeps all of its slices; borrowed from
     * Halving.sent */
    const HalvingMessage *sent;
    int sends;
    /* true: this rank's block is the lower of the two, so its sum is the left operand */
    bool first;
} HalvingRound;

/* All messages of one rank, as data; O(ranks) of memory (20 KB per thousand ranks). */
typedef struct Halving {
    int ranks;
    /* rounds in which this rank's block has a neighbour; at most log2(ranks), rounded up */
    int rounds;
    /* the rounds in order, [rounds]; owned */
    HalvingRound *round;
    /* slice at each position of the stored order, [ranks]; owned */
    int *slice_at;
    /* position of each slice, [ranks]; owned */
    int *position;
    /* all messages sent, one round after the other; owned */
    HalvingMessage *sent;
    int sent_count;
} Halving;
Halving *halving_new(int rank, int ranks);
/* Largest number of rounds of any rank: log2(ranks), rounded up. */
int halving_rounds(int ranks);
/* The largest power of two that divides the number of ranks. A push uses halving in groups of that
 * many neighbours, because a group's sum is a node of any tree of pushes. The groups then exchange
 * their sums all to all: slice t between the ranks whose lowest bits are those of t. */
static inline int halving_group(int ranks)
{
    return ranks & -ranks;
}
/* Number of messages that a rank sends while collecting; it receives the same number while
 * spreading. The rank exchanges messages with at least that many other ranks. O(log ranks). */
int halving_sends(int rank, int ranks);
/* Number of messages that the busiest rank sends while collecting, while spreading, or in both
 * phases. O(ranks log ranks). */
int halving_most_sent(int ranks, bool collect, bool spread);
/* halving_sends of the busiest rank. O(log ranks). */
int halving_most_sends(int ranks);
/* Sum of halving_sends over all ranks. O(log ranks). */
int64_t halving_all_sends(int ranks);
/* Removes slices that are adjacent in the arena from the front of a message: all that are left in
 * an even cut (even = true), otherwise one. *first, *last: numbers of the first and of the last
 * slice removed. Returns false if no slice is left. */
static inline bool halving_next(const Halving *h, HalvingMessage *left, bool even, int *first,
                                int *last)
{
    if (left->begin == left->end) return false;
    *first = h->slice_at[left->begin];
    left->begin = even ? left->end : left->begin + 1;
    *last = h->slice_at[left->begin - 1];
    return true;
}
/* *halving may be NULL. */
void halving_free(Halving **halving);

#endif
