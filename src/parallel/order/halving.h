/* Plans sums by recursive halving and doubling: log2(ranks) rounds for any number of ranks, with
 * additions in the order of the tree (tree_sum.h). The method is from Rabenseifner 2004; Thakur,
 * Rabenseifner, Gropp 2005, section 3, describes it for powers of two.
 *
 * A range is summed in pieces (parallel/sums.h), and each piece is cut into one slice per rank. A
 * node of level q of the tree is a block of 2^q neighbouring ranks; the last block of a level may
 * have fewer. The ranks of a block share the sum over the block: each rank has some of the slices.
 * Round q joins each block with its neighbouring block, if there is one. Each rank keeps some of
 * its slices, sends its other slices to the ranks that keep them in the joined block, and adds the
 * slices that it receives.
 *
 *     collect   round 0   with r ^ 1: half of the slices are sent, half are received and added
 *               round 1   with r ^ 2: a quarter, sums of two ranks each
 *               ..        at the end each rank has one slice, summed over all ranks
 *     spread    the same rounds backwards: the summed part doubles each time
 *
 * Slice t is kept by one rank of a block of c ranks: the highest bits of t are cleared until the
 * number is below c, and the result is the rank's number in the block. Therefore a rank sends each
 * slice at most once while collecting, and all ranks together send as many bytes as all to all
 * would. If the number of ranks is a power of two, each rank sends one message per round, and all
 * ranks send the same number of bytes. For other numbers of ranks, some ranks receive up to one and
 * a half times the mean number of bytes while collecting, and send the same number while spreading;
 * other ranks receive less than the mean. If a block of b ranks is joined with a block of 2^q
 * ranks, each of the b ranks sends about 2^q / b messages. For example, with 2^q + 1 ranks the last
 * rank sends 2^q messages, and every other rank at most q + 1.
 *
 * Slices are stored in the order of their numbers with reversed bits; in this order the slices of
 * each message are adjacent. Private to the transports. */
#ifndef WEFT_PARALLEL_HALVING_H
#define WEFT_PARALLEL_HALVING_H

#include <stdbool.h>
#include <stdint.h>

/* A message between this rank and rank `peer`. It has the slices at positions begin .. end - 1 of
 * the stored order. */
typedef struct HalvingMessage {
    int peer, begin, end;
} HalvingMessage;

/* One round of collecting. Spreading reverses it: the rank sends the slices that `received` lists,
 * and receives the slices that the messages in `sent` list. */
typedef struct HalvingRound {
    /* the message that this rank receives */
    HalvingMessage received;
    /* messages that this rank sends, [sends]; borrowed from Halving.sent */
    const HalvingMessage *sent;
    /* number of messages in `sent`; 0 if the rank keeps all of its slices */
    int sends;
    /* true: this rank's block is the lower of the two, so its sum is the left operand */
    bool is_lower;
} HalvingRound;

/* The plan of all messages of one rank. It needs O(ranks) of memory, 20 KB per thousand ranks. */
typedef struct Halving {
    int ranks;
    /* number of rounds in which this rank's block has a neighbour; at most log2(ranks), rounded
     * up */
    int rounds;
    /* the rounds in order, [rounds]; owned */
    HalvingRound *round;
    /* number of the slice at each position of the stored order, [ranks]; owned */
    int *slice_at;
    /* position of each slice in the stored order, [ranks]; owned */
    int *position;
    /* messages that this rank sends in all rounds, in the order of the rounds, [sent_count];
     * owned */
    HalvingMessage *sent;
    int sent_count;
} Halving;
Halving *halving_new(int rank, int ranks);
/* Returns the largest number of rounds of any rank: log2(ranks), rounded up. */
int halving_rounds(int ranks);
/* Returns the largest power of two that divides the number of ranks. A push uses halving in groups
 * of this number of neighbours, because the sum of such a group is a node of any tree of pushes.
 * Then the groups exchange their sums all to all: each slice t is exchanged between the ranks, one
 * of each group, whose lowest bits equal those of t. */
static inline int halving_group(int ranks)
{
    return ranks & -ranks;
}
/* Returns the number of messages that a rank sends while collecting. It receives the same number
 * while spreading, and exchanges messages with at least this number of other ranks. O(log
 * ranks). */
int halving_sends(int rank, int ranks);
/* Returns the number of messages that the busiest rank sends while collecting (`collect`), while
 * spreading (`spread`), or in both phases. O(ranks log ranks). */
int halving_most_sent(int ranks, bool collect, bool spread);
/* Returns halving_sends of the rank that sends most messages while collecting. O(log ranks). */
int halving_most_sends(int ranks);
/* Returns the sum of halving_sends over all ranks. O(log ranks). */
int64_t halving_all_sends(int ranks);
/* Removes slices from the front of the message `left` that are adjacent in the arena: with an even
 * cut (even = true) all slices of the message, otherwise one. Sets *first and *last to the numbers
 * of the first and of the last slice removed. Returns false if no slice is left. */
static inline bool halving_next(const Halving *h, HalvingMessage *left, bool even, int *first,
                                int *last)
{
    if (left->begin == left->end) return false;
    *first = h->slice_at[left->begin];
    left->begin = even ? left->end : left->begin + 1;
    *last = h->slice_at[left->begin - 1];
    return true;
}
/* Frees the plan and sets *halving to NULL; *halving may be NULL. */
void halving_free(Halving **halving);

#endif
