/* Halving's rounds between up to 4,096 ranks that are not there: real additions, in the order of
 * the rounds, against the definition of the tree; and what is summed comes to everybody. */
#include "../../src/parallel/mpi/halving.h"

#include "harness.h"
#include "tree_case.h"

enum { RANKS_MOST = 4096 };

static bool has(int slice, int first, int step)
{
    return slice % step == first;
}

/* Both see the same of each other. */
static bool they_agree(HalvingRound mine, HalvingRound theirs, int rank)
{
    return theirs.peer == rank && mine.step == theirs.step && mine.sent == theirs.received &&
           mine.received == theirs.sent;
}

/* Of one slice: its sum ends at the rank whose it is; nobody sends what it does not have. */
static int64_t collect(int ranks, int slice)
{
    static float value[RANKS_MOST], next[RANKS_MOST];
    static bool holds[RANKS_MOST];
    int64_t bad = 0;
    for (int r = 0; r < ranks; ++r) {
        value[r] = tree_value(r, slice, 0);
        holds[r] = true;
    }
    for (int q = 0; q < halving_rounds(ranks); ++q) {
        for (int r = 0; r < ranks; ++r) {
            HalvingRound round = halving_round(r, q, true);
            bad += !they_agree(round, halving_round(round.peer, q, true), r);
            next[r] = value[r];
            if (!has(slice, round.received, round.step)) continue;
            bad += !holds[r] || !holds[round.peer];
            bad += !has(slice, halving_round(round.peer, q, true).sent, round.step);
            next[r] = r < round.peer ? value[r] + value[round.peer] : value[round.peer] + value[r];
        }
        for (int r = 0; r < ranks; ++r) {
            HalvingRound round = halving_round(r, q, true);
            holds[r] = holds[r] && has(slice, round.received, round.step);
            value[r] = next[r];
        }
    }
    float wanted = tree_reference(ranks, slice, 0);
    for (int r = 0; r < ranks; ++r) bad += holds[r] != (r == slice);
    return bad + (memcmp(&wanted, &value[slice], sizeof wanted) != 0);
}

/* A slice goes to who does not have it, once. */
static int64_t spread(int ranks, int slice)
{
    static int has_it[RANKS_MOST], next[RANKS_MOST];
    int64_t bad = 0;
    for (int r = 0; r < ranks; ++r) has_it[r] = r == slice;
    for (int q = halving_rounds(ranks) - 1; q >= 0; --q) {
        for (int r = 0; r < ranks; ++r) {
            HalvingRound round = halving_round(r, q, false);
            bad += !they_agree(round, halving_round(round.peer, q, false), r);
            next[r] = has_it[r];
            if (!has(slice, round.received, round.step)) continue;
            next[r] += has_it[round.peer];
            bad += has_it[round.peer] != has(slice, round.peer % round.step, round.step);
        }
        memcpy(has_it, next, sizeof has_it);
    }
    for (int r = 0; r < ranks; ++r) bad += has_it[r] != 1;
    return bad;
}

static void test_rounds(void)
{
    int64_t bad = 0;
    for (int ranks = 2; ranks <= RANKS_MOST; ranks *= 2) {
        int step = ranks <= 64 ? 1 : ranks / 16 - 1;
        for (int slice = 0; slice < ranks; slice += step)
            bad += collect(ranks, slice) + spread(ranks, slice);
    }
    CU_ASSERT_EQUAL(bad, 0);
}

static void test_powers_of_two(void)
{
    for (int ranks = 1; ranks <= RANKS_MOST; ++ranks) {
        int rounds = halving_rounds(ranks);
        if (1 << rounds != ranks) CU_ASSERT_EQUAL(rounds, 0);
    }
    CU_ASSERT_EQUAL(halving_rounds(4096), 12);
}

/* The slices of a round lie together in the mirrored order. */
static void test_mirrored(void)
{
    int64_t bad = 0;
    const int bits = 7, ranks = 1 << bits;
    for (int step = 1; step <= ranks; step *= 2)
        for (int r = 0; r < ranks; ++r) {
            int first = halving_mirrored(r % step, bits), place = halving_mirrored(r, bits);
            bad += place < first || place >= first + ranks / step;
            bad += halving_mirrored(place, bits) != r;
        }
    CU_ASSERT_EQUAL(bad, 0);
}

TEST_MAIN("halving", {"sums and what becomes of them", test_rounds},
          {"powers of two", test_powers_of_two}, {"the mirrored order", test_mirrored})
