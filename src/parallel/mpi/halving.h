/* Recursive halving and doubling: a piece in 2 log2 rounds of one message each, between ranks of a
 * rail that are a power of two (Rabenseifner 2004; Thakur, Rabenseifner, Gropp 2005, section 3).
 *
 *     collect   round 0   with r ^ 1: half of the slices go there, half come and are added
 *               round 1   with r ^ 2: a quarter, sums of two ranks each
 *               ..        at the end a rank has its own slice, summed
 *     spread    the same rounds back: what is summed doubles
 *
 * Neighbours add first, then pairs, then fours: that is the tree of sums, to the bit. In round q
 * rank r keeps the slices of the ranks that have its last q + 1 bits. Private to pieces.c. */
#ifndef WEFT_PARALLEL_HALVING_H
#define WEFT_PARALLEL_HALVING_H

#include <stdbool.h>

/* Rounds of so many ranks; 0: they are no power of two, or one. */
int halving_rounds(int ranks);
/* The last `bits` bits of i, the other way round. */
int halving_mirrored(int i, int bits);

/* What a rank does in a round: with whom, and the first of those whose slices it sends and
 * receives; the others follow `step` apart. */
typedef struct HalvingRound {
    int peer, sent, received, step;
} HalvingRound;
HalvingRound halving_round(int rank, int round, bool collect);

#endif
