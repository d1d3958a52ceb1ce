/* Recursive halving and doubling: a sum in log2 rounds, by the tree (tree_sum.h), for any number of
 * ranks (Rabenseifner 2004; Thakur, Rabenseifner, Gropp 2005, section 3, for powers of two).
 *
 * A piece has a slice a rank. The tree's nodes of level q are blocks of 2^q neighbours, the last
 * one of fewer. A block's ranks have its sum, a part of the slices each, and in round q a block and
 * its neighbour, if it has one, become one: each rank keeps those of its slices that are its own
 * in the joined block, sends the others to who keeps them there, and adds what comes.
 *
 *     collect   round 0   with r ^ 1: half of the slices go there, half come and are added
 *               round 1   with r ^ 2: a quarter, sums of two ranks each
 *               ..        at the end a rank has its own slice, summed
 *     spread    the same rounds back: what is summed doubles
 *
 * In a block of c ranks slice t is kept by the one whose number there is t without its highest
 * bits, as many as make it less than c. So every slice is sent by a rank at most once on the way
 * out, and all ranks together move as many bytes as all to all would. Of a power of two each rank
 * has one message a round and as many bytes as the others; of other numbers some ranks get, and
 * send back, up to half more than the mean, and others less. A block
 * of b ranks that joins a whole one of 2^q sends 2^q / b messages a rank (2^q + 1 ranks: the last
 * one sends 2^q; every other one q + 1 at most).
 *
 * Slices lie in an order in which those of each message are neighbours: by their bits, the lowest
 * first. Private to the transports. */
#ifndef WEFT_PARALLEL_HALVING_H
#define WEFT_PARALLEL_HALVING_H

#include <stdbool.h>
#include <stdint.h>

/* Between this rank and another: the slices at places [begin, end). */
typedef struct HalvingMessage {
    int peer, begin, end;
} HalvingMessage;

/* Of the way to collect. To spread, what was received is sent, and what was sent received. */
typedef struct HalvingRound {
    HalvingMessage received;
    /* borrowed: sends of them, none where all that the rank has is its own */
    const HalvingMessage *sent;
    int sends;
    /* this rank's block is the first of the two: its sum is added to, not added */
    bool first;
} HalvingRound;

/* What a rank does: plan data, O(ranks) of memory (16 KB a thousand). */
typedef struct Halving {
    int ranks;
    /* Rounds in which this rank's block meets another: log2 of ranks, rounded up, at most. */
    int rounds;
    /* owned */
    HalvingRound *round;
    /* owned: the slice at each place, and the place of each slice */
    int *slice, *place;
    /* owned: all messages that are sent, one after the other */
    HalvingMessage *sent;
    int sent_count;
} Halving;
Halving *halving_new(int rank, int ranks);
/* Rounds of the rank that has most: log2 of ranks, rounded up. */
int halving_rounds(int ranks);
/* Messages that a rank sends to collect, and receives where it spreads; it has as many partners at
 * least. O(log ranks). */
int halving_sends(int rank, int ranks);
/* Messages that the rank with most of them sends: to collect, to spread, or both. O(ranks log
 * ranks). */
int halving_most_sent(int ranks, bool collect, bool spread);
/* halving_sends of the rank that has most, and of all ranks together. O(log ranks). */
int halving_most_sends(int ranks);
int64_t halving_all_sends(int ranks);
/* The next run of neighbours of a message that is left, slices *first to *last: where the cut is
 * even all of it lies together, else one slice. False: none is left. */
static inline bool halving_next(const Halving *h, HalvingMessage *left, bool even, int *first,
                                int *last)
{
    if (left->begin == left->end) return false;
    *first = h->slice[left->begin];
    left->begin = even ? left->end : left->begin + 1;
    *last = h->slice[left->begin - 1];
    return true;
}
/* May be of NULL. */
void halving_free(Halving **halving);

#endif
