/* Plans recursive halving: which slices each rank exchanges with which peers in each round. Also
 * counts the messages of the ranks. The transports send the messages. */
#include "halving.h"

#include "base.h"

static int floor_log2(int n)
{
    return 31 - __builtin_clz((unsigned)n);
}

/* A node of the tree: ranks first .. first + size - 1. */
typedef struct Block {
    int first, size;
} Block;

/* Returns the block of 2^level neighbouring ranks that starts at rank `first`. The last block of a
 * level may have fewer ranks. The size is 0 if there is no such block. */
static Block block_from(int first, int level, int ranks)
{
    int left = ranks > first ? ranks - first : 0;
    return (Block){first, left < 1 << level ? left : 1 << level};
}

/* Returns the rank that keeps a slice in the block, by the rule in halving.h. */
static int keeper(Block block, int slice)
{
    while (slice >= block.size) slice &= ~(1 << floor_log2(slice));
    return block.first + slice;
}

int halving_rounds(int ranks)
{
    return ranks > 1 ? 32 - __builtin_clz((unsigned)ranks - 1) : 0;
}

/* Returns how many of the slices 0 .. slices - 1 a member of a block of `size` ranks keeps. slices:
 * a power of two; member: number of the member in the block. The member keeps the slices whose
 * lowest bits equal those of its number. The comparison uses the smallest number of bits that
 * distinguishes the member from all others. */
static int count_kept_slices(int slices, int size, int member)
{
    int bits = floor_log2(size);
    bool longer = size != 1 << bits && (member >= 1 << bits || member < size - (1 << bits));
    return slices >> (bits + longer);
}

int halving_sends(int rank, int ranks)
{
    int sends = 0;
    for (int level = 0; level < halving_rounds(ranks); ++level) {
        int first = rank >> level << level;
        Block mine = block_from(first, level, ranks),
              theirs = block_from(first ^ 1 << level, level, ranks);
        bool lower = first < theirs.first;
        if (theirs.size == 0) continue;
        sends += lower ? rank - first < theirs.size
                       : count_kept_slices(theirs.size, mine.size, rank - first);
    }
    return sends;
}

/* Returns the number of messages that a rank sends while spreading: one for each round in which its
 * block has a neighbour. */
static int spread_sends(int rank, int ranks)
{
    int sends = 0;
    for (int level = 0; level < halving_rounds(ranks); ++level)
        sends += block_from((rank >> level << level) ^ 1 << level, level, ranks).size > 0;
    return sends;
}

int halving_most_sent(int ranks, bool collect, bool spread)
{
    /* if ranks is a power of two, all ranks send the same number of messages */
    int most = 0, different = ranks & (ranks - 1) ? ranks : 1;
    for (int r = 0; r < different; ++r) {
        int sends = (collect ? halving_sends(r, ranks) : 0) + (spread ? spread_sends(r, ranks) : 0);
        if (sends > most) most = sends;
    }
    return most;
}

/* Computes the maximum without visiting every rank. The ranks are a full block of 2^level ranks,
 * followed by a rest of `rest` ranks, which is divided in the same way: the loop visits the rests,
 * the largest first. In the round that joins a rest with its full block, two members of the rest
 * whose numbers have the same lowest bits may share the slices with these bits; each of the two
 * then sends half as many messages as a member that shares with none. outer: number of messages
 * that a rank sends to the full blocks visited so far if it shares its slices in each such round.
 * wide: number of all messages of a rank that shares its slices in each such round but the
 * newest. */
int halving_most_sends(int ranks)
{
    int level = floor_log2(ranks), rest = ranks - (1 << level), outer = 0;
    int most = level + (rest > 0);
    while (rest > 0) {
        int inner = floor_log2(rest), next = rest - (1 << inner);
        int wide = outer + (1 << (level - inner)) + inner;
        outer += 1 << (level - inner) >> 1;
        if (wide > most) most = wide;
        if (next > 0 && outer + inner + 1 > most) most = outer + inner + 1;
        level = inner;
        rest = next;
    }
    return most;
}

int64_t halving_all_sends(int ranks)
{
    int64_t sends = 0;
    while (ranks > 0) {
        int level = floor_log2(ranks), rest = ranks - (1 << level);
        sends += ((int64_t)level << level) + (rest > 0 ? ranks : 0);
        ranks = rest;
    }
    return sends;
}

/* Sorts the slices by their numbers with reversed bits. */
static void order_slices(Halving *h)
{
    int bits = halving_rounds(h->ranks), position = 0;
    for (int64_t mirrored = 0; mirrored < (int64_t)1 << bits; ++mirrored) {
        int slice = 0;
        for (int b = 0; b < bits; ++b) slice |= (int)(mirrored >> b & 1) << (bits - 1 - b);
        if (slice >= h->ranks) continue;
        h->slice_at[position] = slice;
        h->position[slice] = position++;
    }
}

/* Extends a message to `peer` by the slice at `position` of the stored order. */
static void grow(HalvingMessage *message, int peer, int position)
{
    if (message->begin == message->end) *message = (HalvingMessage){peer, position, position};
    message->end = position + 1;
}

/* Plans the round that joins this rank's block, `mine`, with the neighbouring block `theirs`. */
static void plan_round(Halving *h, int rank, Block mine, Block theirs)
{
    Block both = {mine.first < theirs.first ? mine.first : theirs.first, mine.size + theirs.size};
    HalvingRound *round = &h->round[h->rounds++];
    *round = (HalvingRound){.sent = h->sent + h->sent_count, .is_lower = mine.first < theirs.first};
    int last = -1;
    for (int i = 0; i < h->ranks; ++i) {
        int slice = h->slice_at[i], kept = keeper(both, slice), had = keeper(mine, slice);
        if (kept == rank) grow(&round->received, keeper(theirs, slice), i);
        if (had != rank || kept == rank) continue;
        if (kept != last) h->sent[h->sent_count++] = (HalvingMessage){0};
        grow(&h->sent[h->sent_count - 1], kept, i);
        last = kept;
    }
    round->sends = h->sent_count - (int)(round->sent - h->sent);
}

Halving *halving_new(int rank, int ranks)
{
    Halving *h = mem_new(sizeof *h);
    int levels = halving_rounds(ranks);
    *h = (Halving){.ranks = ranks};
    h->round = mem_new((size_t)(levels + 1) * sizeof *h->round);
    h->slice_at = mem_new((size_t)ranks * sizeof *h->slice_at);
    h->position = mem_new((size_t)ranks * sizeof *h->position);
    /* the rank sends each slice at most once, and never the slice that it keeps to the end */
    h->sent = mem_new((size_t)ranks * sizeof *h->sent);
    order_slices(h);
    for (int level = 0; level < levels; ++level) {
        int first = rank >> level << level;
        Block theirs = block_from(first ^ 1 << level, level, ranks);
        if (theirs.size > 0) plan_round(h, rank, block_from(first, level, ranks), theirs);
    }
    return h;
}

void halving_free(Halving **halving)
{
    Halving *h = *halving;
    if (!h) return;
    mem_free(&h->round);
    mem_free(&h->slice_at);
    mem_free(&h->position);
    mem_free(&h->sent);
    mem_free(&h);
    *halving = NULL;
}
