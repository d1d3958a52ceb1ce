/* Recursive halving and doubling: a sum in log2(ranks) rounds, in the tree's order (tree_sum.h),
 * for any number of ranks (Rabenseifner 2004; Thakur, Rabenseifner, Gropp 2005, section 3, for
 * powers of two).
 *
 * A piece is cut into one slice per rank. The tree's nodes of level q are blocks of 2^q
 * neighbouring ranks; the last block may have fewer. The ranks of a block share its sum: each has
 * some of the slices. In round q a block and its neighbour, if it has one, are joined: each rank
 * keeps some of its slices, sends the others to the ranks that keep them in the joined block, and
 * adds what it receives.
 *
 *     collect   round 0   with r ^ 1: half of the slices are sent, half are received and added
 *               round 1   with r ^ 2: a quarter, sums of two ranks each
 *               ..        at the end each rank has one slice, summed over all ranks
 *     spread    the same rounds backwards: the summed part doubles each time
 *
 * In a block of c ranks, slice t is kept by the rank whose number in the block is t without its
 * highest bits, as many as bring it below c. Therefore a rank sends each slice at most once while
 * collecting, and all ranks together move as many bytes as all to all would. With a power of two of
 * ranks, each has one message per round and the same number of bytes; with other numbers some ranks
 * receive, and send back, up to half more than the mean, and others less. A block of b ranks that
 * is joined with a whole one of 2^q sends 2^q / b messages per rank (with 2^q + 1 ranks the last
 * one sends 2^q, every other one at most q + 1).
 *
 * Slices are stored in an order in which those of each message are adjacent: by their reversed
 * bits, the lowest bit first. Private to the transports. */
#ifndef WEFT_PARALLEL_HALVING_H
#define WEFT_PARALLEL_HALVING_H

#include <stdbool.h>
#include <stdint.h>

/* A message between this rank and `peer`: the slices at positions [begin, end) of the stored
 * order. */
typedef struct HalvingMessage {
    int peer, begin, end;
} HalvingMessage;

/* One round of collecting. Spreading plays it backwards: what was received is sent, and what was
 * sent is received. */
typedef struct HalvingRound {
    HalvingMessage received;
    /* messages sent, [sends]; none where the rank keeps all of its slices; borrowed from Halving */
    const HalvingMessage *sent;
    int sends;
    /* true: this rank's block is the lower of the two, so its sum is the left operand */
    bool first;
} HalvingRound;

/* All messages of one rank, as data; O(ranks) of memory (16 KB per thousand ranks). */
typedef struct Halving {
    int ranks;
    /* rounds in which this rank's block has a neighbour; at most log2(ranks), rounded up */
    int rounds;
    /* [rounds]; owned */
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
/* Rounds of the rank that has most: log2(ranks), rounded up. */
int halving_rounds(int ranks);
/* The largest power of two that divides the number of ranks. A push halves in groups of that many
 * neighbours, whose sum is a node of any tree of pushes; the groups then exchange their sums all to
 * all, slice t between the ranks that have t's lowest bits. */
static inline int halving_group(int ranks)
{
    return ranks & -ranks;
}
/* Number of messages that a rank sends to collect, which is also the number that it receives to
 * spread. The rank exchanges messages with at least as many other ranks. O(log ranks). */
int halving_sends(int rank, int ranks);
/* Number of messages that the busiest rank sends: to collect, to spread, or both. O(ranks log
 * ranks). */
int halving_most_sent(int ranks, bool collect, bool spread);
/* halving_sends of the busiest rank. O(log ranks). */
int halving_most_sends(int ranks);
/* Sum of halving_sends over all ranks. O(log ranks). */
int64_t halving_all_sends(int ranks);
/* Removes the next contiguous slices, *first to *last, from the front of a message: all slices left
 * in an even cut, where they are contiguous, otherwise one slice. Returns false if none is left. */
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
