/* Tests which rank writes each tensor, and in which turn: all ranks should have work in each
 * turn. */
#include "checkpoint/fixture.h"
#include "checkpoint/owners.h"

enum { TENSORS = 200, RANKS = 7 };

typedef struct Turns {
    CheckpointTensor tensor[TENSORS];
    char path[TENSORS][32];
    CheckpointIo io;
    int owner[TENSORS], order[TENSORS + 1], first[TENSORS + 1], turns, ranks;
} Turns;

/* Makes turns for `count` tensors. Tensors from index `blocks` on are blocks of rows; each data set
 * has `each` blocks. */
static Turns *turns_new(int count, int ranks, int blocks, int each)
{
    Turns *t = mem_new(sizeof *t);
    t->ranks = ranks;
    for (int i = 0; i < count; ++i) {
        bool block = i >= blocks;
        CheckpointTensor *tensor = &t->tensor[i];
        if (block)
            snprintf(t->path[i], sizeof t->path[i], "/tables/%d/rows#%04d", (i - blocks) / each,
                     (i - blocks) % each);
        else
            snprintf(t->path[i], sizeof t->path[i], "/params/%d", i);
        *tensor = (CheckpointTensor){
            .path = t->path[i], .shape = shape_of(1, 1 + i * 7919 % 1000, 1, 1, 1), .block = block};
    }
    t->io = (CheckpointIo){.count = count, .tensor = t->tensor};
    checkpoint_owners(&t->io, ranks, t->owner);
    t->turns = owners_turns(&t->io, t->owner, ranks, t->order, t->first);
    return t;
}

/* Checks that each tensor occurs once, and that a turn is sorted by index and has at most one
 * tensor of each rank. */
static void check_order(const Turns *t)
{
    int seen[TENSORS] = {0}, turn_of[RANKS];
    for (int r = 0; r < t->ranks; ++r) turn_of[r] = -1;
    CU_ASSERT_EQUAL(t->first[0], 0);
    CU_ASSERT_EQUAL(t->first[t->turns], t->io.count);
    for (int turn = 0; turn < t->turns; ++turn) {
        CU_ASSERT(t->first[turn] < t->first[turn + 1]);
        for (int k = t->first[turn]; k < t->first[turn + 1]; ++k) {
            int i = t->order[k], rank = t->owner[i];
            CU_ASSERT_FATAL(i >= 0 && i < t->io.count);
            CU_ASSERT(k == t->first[turn] || t->order[k - 1] < i);
            CU_ASSERT(turn_of[rank] < turn);
            turn_of[rank] = turn;
            ++seen[i];
        }
    }
    for (int i = 0; i < t->io.count; ++i) CU_ASSERT_EQUAL(seen[i], 1);
}

static int most_of_a_rank(const Turns *t)
{
    int tensors[RANKS] = {0}, most = 0;
    for (int i = 0; i < t->io.count; ++i)
        if (++tensors[t->owner[i]] > most) most = tensors[t->owner[i]];
    return most;
}

/* Checks that each rank's tensors are in consecutive turns, the largest first. */
static void check_largest_first(const Turns *t)
{
    int64_t last[RANKS];
    int count[RANKS] = {0};
    for (int turn = 0; turn < t->turns; ++turn)
        for (int k = t->first[turn]; k < t->first[turn + 1]; ++k) {
            int i = t->order[k], rank = t->owner[i];
            int64_t elements = shape_count(t->tensor[i].shape);
            CU_ASSERT_EQUAL(count[rank], turn);
            CU_ASSERT(count[rank] == 0 || elements <= last[rank]);
            last[rank] = elements;
            ++count[rank];
        }
}

static void test_turns(void)
{
    for (int ranks = 1; ranks <= RANKS; ++ranks)
        for (int count = 0; count <= TENSORS; count += count < 12 ? 1 : 47) {
            Turns *t = turns_new(count, ranks, TENSORS, 1);
            check_order(t);
            check_largest_first(t);
            CU_ASSERT_EQUAL(t->turns, most_of_a_rank(t));
            mem_free(&t);
        }
}

/* A turn has tensors of different ranks, also if consecutive tensors have the same owner. */
static void test_owners_alternate(void)
{
    Turns *t = turns_new(6, 3, TENSORS, 1);
    static const int owner[] = {0, 0, 1, 1, 2, 2}, want[] = {1, 2, 4, 0, 3, 5};
    memcpy(t->owner, owner, sizeof owner);
    t->turns = owners_turns(&t->io, t->owner, 3, t->order, t->first);
    CU_ASSERT_EQUAL(t->turns, 2);
    CU_ASSERT_EQUAL(t->first[1], 3);
    CU_ASSERT(memcmp(t->order, want, sizeof want) == 0);
    mem_free(&t);
}

/* No turn has blocks of two data sets, so that a table's rows are sorted once. */
static void test_blocks(void)
{
    enum { BEFORE = 20, EACH = 9 };
    Turns *t = turns_new(TENSORS, RANKS, BEFORE, EACH);
    check_order(t);
    for (int turn = 0; turn < t->turns; ++turn) {
        int first = t->order[t->first[turn]], last = t->order[t->first[turn + 1] - 1];
        CU_ASSERT_EQUAL(first < BEFORE, last < BEFORE);
        if (first >= BEFORE) CU_ASSERT_EQUAL((first - BEFORE) / EACH, (last - BEFORE) / EACH);
    }
    /* the blocks of a data set come before those of the next one */
    for (int k = 1; k < TENSORS; ++k)
        if (t->order[k] >= BEFORE)
            CU_ASSERT((t->order[k - 1] - BEFORE) / EACH <= (t->order[k] - BEFORE) / EACH);
    mem_free(&t);
}

TEST_MAIN("owners", {"turns", test_turns}, {"owners alternate", test_owners_alternate},
          {"blocks of rows", test_blocks})
