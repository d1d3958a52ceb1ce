/* Sums of leaves, any of which may be absent, compared with the tree of micro-batches. */
#include "../../src/table/id_numbers.h"

#include "harness.h"
#include "tree_of.h"

/* Sums the leaves at these positions; true if the sums have the same bits. */
static bool joins_alike(const bool *there, int leaves)
{
    static float value[TREE_LEAVES][TREE_WIDTH];
    const float *leaf[TREE_LEAVES];
    int32_t position[TREE_LEAVES];
    float *at[TREE_LEAVES], wanted[TREE_WIDTH];
    int count = 0;
    for (int i = 0; i < leaves; ++i) {
        leaf[i] = there[i] ? value[i] : NULL;
        for (int c = 0; c < TREE_WIDTH; ++c)
            value[i][c] = some_value((uint64_t)(i * TREE_WIDTH + c));
        if (!there[i]) continue;
        position[count] = i;
        at[count++] = value[i];
    }
    tree_of(leaf, leaves, TREE_WIDTH, wanted);
    sparse_tree_sum(position, at, count, TREE_WIDTH);
    return memcmp(at[0], wanted, sizeof wanted) == 0;
}

/* Tries all sets of up to 10 leaves. */
static void test_every_set(void)
{
    bool there[TREE_LEAVES];
    int wrong = 0;
    for (int leaves = 1; leaves <= 10; ++leaves)
        for (int set = 1; set < 1 << leaves; ++set) {
            for (int i = 0; i < leaves; ++i) there[i] = set >> i & 1;
            wrong += !joins_alike(there, leaves);
        }
    CU_ASSERT_EQUAL(wrong, 0);
}

static void test_random_sets(void)
{
    bool there[TREE_LEAVES];
    int wrong = 0;
    for (uint64_t n = 0; n < 3000; ++n) {
        int leaves = 11 + (int)(row_hash(1, n) % (TREE_LEAVES - 10));
        for (int i = 0; i < leaves; ++i)
            there[i] = row_hash(n, (uint64_t)i) % 100 < row_hash(2, n) % 101;
        there[row_hash(3, n) % (uint64_t)leaves] = true;
        wrong += !joins_alike(there, leaves);
    }
    CU_ASSERT_EQUAL(wrong, 0);
}

TEST_MAIN("sums of rows", {"every set of leaves", test_every_set},
          {"random sets of many", test_random_sets})
