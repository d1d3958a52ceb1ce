/* Tests the algorithm halving among up to 4,096 ranks, which are simulated in one process. Numbers
 * are added in the order of the rounds and compared with the definition of the summation tree. All
 * ranks receive the sums. Messages are counted and compared with the planned numbers. */
#include "../../src/parallel/order/halving.h"

#include "harness.h"
#include "parallel.h"
#include "tree_case.h"

enum { RANKS_MOST = 4096 };

static Halving *plan[RANKS_MOST];

static void plan_all(int ranks)
{
    for (int r = 0; r < ranks; ++r) plan[r] = halving_new(r, ranks);
}

static void free_all(int ranks)
{
    for (int r = 0; r < ranks; ++r) halving_free(&plan[r]);
}

/* Returns the round of rank r in which blocks of 2^level ranks are joined, or NULL if the rank has
 * no such round. */
static const HalvingRound *round_at(int r, int level)
{
    for (int i = 0; i < plan[r]->rounds; ++i)
        if ((r ^ plan[r]->round[i].received.peer) >> level == 1) return &plan[r]->round[i];
    return NULL;
}

static bool has(const HalvingMessage *message, int position)
{
    return position >= message->begin && position < message->end;
}

/* Counts the messages that a rank sends in a round although the receiver does not wait for them. */
static int64_t unmatched(int r, int level)
{
    const HalvingRound *round = round_at(r, level);
    int64_t bad = round && round->received.begin >= round->received.end;
    for (int i = 0; round && i < round->sends; ++i) {
        const HalvingMessage *sent = &round->sent[i];
        const HalvingRound *other = round_at(sent->peer, level);
        bad += !other || other->received.peer != r || other->received.begin != sent->begin ||
               other->received.end != sent->end || other->is_lower == round->is_lower;
    }
    return bad;
}

/* Checks that each sent message is received, and that each message that a rank waits for is
 * sent. */
static int64_t check_messages(int ranks)
{
    int64_t bad = 0, most = 0, all = 0;
    for (int level = 0; level < halving_rounds(ranks); ++level) {
        int sent = 0, received = 0;
        for (int r = 0; r < ranks; ++r) {
            const HalvingRound *round = round_at(r, level);
            bad += unmatched(r, level);
            sent += round ? round->sends : 0;
            received += round != NULL;
        }
        bad += sent != received;
    }
    for (int r = 0; r < ranks; ++r) {
        const Halving *h = plan[r];
        bad += h->sent_count != halving_sends(r, ranks) || h->rounds > halving_rounds(ranks);
        all += h->sent_count;
        if (h->sent_count > most) most = h->sent_count;
    }
    /* a rank sends on average at most log2(ranks) messages, and exactly this number if the number
     * of ranks is a power of two */
    bad += all > (int64_t)ranks * halving_rounds(ranks);
    if ((ranks & (ranks - 1)) == 0) bad += most != halving_rounds(ranks);
    return bad;
}

/* Simulates the reduce-scatter of one slice. Its sum must end on its owner, and no rank may send a
 * slice that it does not have. */
static int64_t collect(int ranks, int slice)
{
    static float value[RANKS_MOST], next[RANKS_MOST];
    static bool holds[RANKS_MOST], holds_next[RANKS_MOST];
    int64_t bad = 0;
    int position = plan[0]->position[slice];
    for (int r = 0; r < ranks; ++r) {
        value[r] = tree_value(r, slice, 0);
        holds[r] = true;
    }
    for (int level = 0; level < halving_rounds(ranks); ++level) {
        memcpy(next, value, sizeof next);
        memcpy(holds_next, holds, sizeof holds);
        for (int r = 0; r < ranks; ++r) {
            const HalvingRound *round = round_at(r, level);
            for (int i = 0; round && i < round->sends; ++i) {
                if (!has(&round->sent[i], position)) continue;
                bad += !holds[r];
                holds_next[r] = false;
            }
            if (!round || !has(&round->received, position)) continue;
            int peer = round->received.peer;
            bad += !holds[r] || !holds[peer] || round->is_lower != (r < peer);
            next[r] = round->is_lower ? value[r] + value[peer] : value[peer] + value[r];
        }
        memcpy(value, next, sizeof next);
        memcpy(holds, holds_next, sizeof holds);
    }
    float wanted = tree_reference(ranks, slice, 0);
    for (int r = 0; r < ranks; ++r) bad += holds[r] != (r == slice);
    return bad + (memcmp(&wanted, &value[slice], sizeof wanted) != 0);
}

/* Simulates the all-gather of one slice, which must be sent once to each rank that does not have
 * it. */
static int64_t spread(int ranks, int slice)
{
    static int has_it[RANKS_MOST], next[RANKS_MOST];
    int64_t bad = 0;
    int position = plan[0]->position[slice];
    for (int r = 0; r < ranks; ++r) has_it[r] = r == slice;
    for (int level = halving_rounds(ranks) - 1; level >= 0; --level) {
        memcpy(next, has_it, sizeof next);
        for (int r = 0; r < ranks; ++r) {
            const HalvingRound *round = round_at(r, level);
            for (int i = 0; round && i < round->sends; ++i)
                if (has(&round->sent[i], position)) next[r] += has_it[round->sent[i].peer];
            bad += round && has(&round->received, position) && !has_it[r];
        }
        memcpy(has_it, next, sizeof next);
    }
    for (int r = 0; r < ranks; ++r) bad += has_it[r] != 1;
    return bad;
}

static int64_t check_ranks(int ranks)
{
    int64_t bad = 0;
    int step = ranks <= 40 ? 1 : ranks / 7;
    plan_all(ranks);
    bad += check_messages(ranks);
    for (int slice = 0; slice < ranks; slice += step)
        bad += collect(ranks, slice) + spread(ranks, slice);
    bad += collect(ranks, ranks - 1) + spread(ranks, ranks - 1);
    free_all(ranks);
    return bad;
}

static void test_all_to_160(void)
{
    for (int ranks = 1; ranks <= 160; ++ranks) CU_ASSERT_EQUAL(check_ranks(ranks), 0);
}

static void test_large(void)
{
    static const int ranks[] = {255, 257, 384, 511, 513, 600, 1000, 1023, 1024, 1025, 2731, 4096};
    for (int i = 0; i < (int)(sizeof ranks / sizeof *ranks); ++i)
        CU_ASSERT_EQUAL(check_ranks(ranks[i]), 0);
}

/* The positions of slices are a permutation of all slices. */
static void test_places(void)
{
    int64_t bad = 0;
    for (int ranks = 1; ranks <= 300; ++ranks) {
        Halving *h = halving_new(0, ranks);
        for (int i = 0; i < ranks; ++i)
            bad +=
                h->position[i] < 0 || h->position[i] >= ranks || h->slice_at[h->position[i]] != i;
        halving_free(&h);
        CU_ASSERT_PTR_NULL(h);
    }
    CU_ASSERT_EQUAL(bad, 0);
}

/* COMM_BY_RULE chooses the algorithm with the smaller expected time, for any link. */
static void test_rule(void)
{
    const Link far = {.latency_s = 5e-4, .s_per_byte = 1e-10},
               near = {.latency_s = 1e-6, .s_per_byte = 1e-9};
    int halved = 0, wrong = 0;
    for (int ranks = 2; ranks <= 70; ++ranks)
        for (int64_t elements = 100; elements < 1 << 25; elements *= 3) {
            SumShape shape = {.ranks = ranks,
                              .width = 1,
                              .arena_elements = 1 << 25,
                              .elements = elements,
                              .collect = true,
                              .spread = ranks % 3 > 0};
            SumAlgorithm algorithm = sum_algorithm(&shape, COMM_BY_RULE),
                         other = COMM_HALVING + COMM_ALL_TO_ALL - algorithm;
            halved += algorithm == COMM_HALVING;
            wrong +=
                sum_cost(&shape, algorithm, far).seconds > sum_cost(&shape, other, far).seconds;
            wrong +=
                sum_cost(&shape, algorithm, near).seconds > sum_cost(&shape, other, near).seconds;
        }
    CU_ASSERT_EQUAL(wrong, 0);
    CU_ASSERT_TRUE(halved > 300);
}

/* The costs for 64 ranks and 11,534,336 floats (22 pieces of 2^19) are those that were computed by
 * hand. */
static void test_cost(void)
{
    const SumShape shape = {.ranks = 64,
                            .width = 1,
                            .arena_elements = 44 << 18,
                            .elements = 44 << 18,
                            .collect = true,
                            .spread = true};
    const Link link = {.latency_s = 3e-6, .s_per_byte = 1e-10};
    SumCost halving = sum_cost(&shape, COMM_HALVING, link),
            all = sum_cost(&shape, COMM_ALL_TO_ALL, link);
    double bytes = 2.0 * (44 << 18) * 4 * 63 / 64;
    CU_ASSERT_EQUAL(sum_algorithm(&shape, COMM_BY_RULE), COMM_HALVING);
    CU_ASSERT_EQUAL(halving.pieces, 22);
    CU_ASSERT_EQUAL(halving.messages, 2 * 6 * 22);
    CU_ASSERT_EQUAL(halving.partners, 6);
    CU_ASSERT_EQUAL(halving.rounds, 12);
    CU_ASSERT_EQUAL(all.messages, 2 * 63 * 22);
    CU_ASSERT_EQUAL(all.rounds, 2);
    CU_ASSERT_DOUBLE_EQUAL(halving.bytes, bytes, 1);
    CU_ASSERT_DOUBLE_EQUAL(all.bytes, bytes, 1);
    CU_ASSERT_DOUBLE_EQUAL(halving.seconds, 1e-6 * (2 * 12 + 264) + bytes * 1e-10, 1e-12);
    CU_ASSERT_DOUBLE_EQUAL(all.seconds, 1e-6 * (2 * 2 + 2772) + bytes * 1e-10, 1e-12);
}

/* 2^20 floats are divided into shards of 4,096 floats, which only one of 64 ranks has. Halving
 * needs no more pieces than for equal shards. All-to-all processes a slice of 48 floats of each
 * shard at a time, and needs more pieces. With equal shards and wide node groups it needs fewer
 * pieces. */
static void test_few_shards(void)
{
    SumShape shape = {.ranks = 16384,
                      .width = 1,
                      .arena_elements = 1 << 24,
                      .elements = 1 << 20,
                      .longest = 4096,
                      .collect = true};
    SumCost halving = sum_cost(&shape, COMM_HALVING, (Link){0});
    CU_ASSERT_EQUAL(halving.pieces, 2);
    CU_ASSERT_EQUAL(halving.messages, 2 * 14);
    CU_ASSERT_DOUBLE_EQUAL(halving.bytes, 4.0 * (1 << 20) * 16383 / 16384, 1e-3);
    CU_ASSERT_FALSE(sum_by_slices(&shape, COMM_HALVING));
    CU_ASSERT_EQUAL(sum_pieces(&shape, COMM_ALL_TO_ALL), 4096 / 48 + 1);
    shape.ranks = 64;
    shape.width = 8;
    shape.longest = (1 << 20) / 64;
    CU_ASSERT_TRUE(sum_by_slices(&shape, COMM_HALVING));
    CU_ASSERT_EQUAL(sum_pieces(&shape, COMM_HALVING), 1);
}

/* The formulas for the number of messages of all ranks, and of the rank that sends most, agree with
 * the sum and the maximum over ranks. */
static void test_most_and_all(void)
{
    int64_t bad = 0;
    for (int ranks = 1; ranks <= 2100; ++ranks) {
        int64_t all = 0;
        int most = 0;
        for (int r = 0; r < ranks; ++r) {
            int sends = halving_sends(r, ranks);
            all += sends;
            if (sends > most) most = sends;
        }
        bad += most != halving_most_sends(ranks) || all != halving_all_sends(ranks);
    }
    CU_ASSERT_EQUAL(bad, 0);
}

/* In halving, the last of 2^k + 1 ranks sends to all other ranks. If leaves are pushed to a growing
 * tree, halving runs only in groups of ranks whose leaves form a subtree. 24 ranks are three groups
 * of eight; a rank has three rounds, and two more messages to the other groups. */
static void test_odd_one(void)
{
    SumShape shape = {.ranks = 17, .width = 1, .arena_elements = 1 << 24, .elements = 1 << 24};
    CU_ASSERT_EQUAL(halving_sends(16, 17), 16);
    CU_ASSERT_EQUAL(halving_sends(1, 17), 4);
    shape.is_push = true;
    CU_ASSERT_EQUAL(sum_algorithm(&shape, COMM_HALVING), COMM_ALL_TO_ALL);
    shape.ranks = 16;
    CU_ASSERT_EQUAL(sum_algorithm(&shape, COMM_HALVING), COMM_HALVING);
    CU_ASSERT_EQUAL(sum_algorithm(&shape, COMM_ALL_TO_ALL), COMM_ALL_TO_ALL);
    shape.ranks = 24;
    shape.collect = shape.spread = true;
    CU_ASSERT_EQUAL(sum_algorithm(&shape, COMM_HALVING), COMM_HALVING);
    CU_ASSERT_EQUAL(halving_group(24), 8);
    SumCost cost = sum_cost(&shape, COMM_HALVING, (Link){0});
    CU_ASSERT_EQUAL(cost.messages, 2 * 5 * cost.pieces);
    CU_ASSERT_EQUAL(cost.rounds, 2 * 4);
    CU_ASSERT_EQUAL(cost.partners, 5);
    CU_ASSERT_EQUAL(cost.bytes, sum_cost(&shape, COMM_ALL_TO_ALL, (Link){0}).bytes);
    shape.ranks = 32;
    shape.width = 2;
    CU_ASSERT_EQUAL(sum_algorithm(&shape, COMM_HALVING), COMM_HALVING);
    shape = (SumShape){.ranks = 2, .width = 1, .arena_elements = 1 << 24, .elements = 1 << 24};
    CU_ASSERT_EQUAL(sum_algorithm(&shape, COMM_HALVING), COMM_ALL_TO_ALL);
}

TEST_MAIN("halving", {"all numbers to 160", test_all_to_160}, {"large numbers", test_large},
          {"places", test_places}, {"the rule", test_rule}, {"figures by hand", test_cost},
          {"few shards", test_few_shards}, {"most and all", test_most_and_all},
          {"the odd one", test_odd_one})
