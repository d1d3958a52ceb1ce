/* The tree over micro-batches, with symbols in place of gradients: the stack of partial sums
 * compared with the recursive definition, and the composition of equal blocks compared with the
 * global tree. */
#include "harness.h"
#include "parallel.h"

enum { TEXT = 2048, MICROS = 70 };

/* Joins two texts as "(ab)": leaves are numbers, so every tree has its own text. An empty text is a
 * leaf of padding, -0, which leaves the other one unchanged. */
static void join(char *to, const char *a, const char *b)
{
    char text[TEXT];
    bool both = *a && *b;
    int length = snprintf(text, sizeof text, both ? "(%.*s %.*s)" : "%.*s%.*s", TEXT, a, TEXT, b);
    CU_ASSERT_TRUE(length < TEXT);
    memcpy(to, text, strlen(text) + 1);
}

/* The definition: neighbours 2i and 2i+1 are joined, an odd one moves up. The tree ends in
 * level[0]. */
static void neighbours(char (*level)[TEXT], int n)
{
    for (; n > 1; n = (n + 1) / 2)
        for (int i = 0; 2 * i < n; ++i) {
            if (2 * i + 1 < n)
                join(level[i], level[2 * i], level[2 * i + 1]);
            else if (i > 0)
                memmove(level[i], level[2 * i], TEXT);
        }
}

static void definition(char *out, int first, int micros)
{
    static char level[MICROS][TEXT];
    for (int i = 0; i < micros; ++i) snprintf(level[i], TEXT, "%d", first + i);
    neighbours(level, micros);
    memcpy(out, level[0], TEXT);
}

/* Runs the stack over leaves [first, first + micros), of which those from number `real` on are
 * padding; false if it leaves its arenas. */
static bool run_stack(char *out, int first, int micros, int real)
{
    static char arena[40][TEXT];
    int levels = tree_levels(micros);
    for (int micro = 0; micro < micros; ++micro) {
        TreeStep step = tree_step(micro, micros);
        if (step.write >= levels || step.join_count > 32) return false;
        snprintf(arena[step.write], TEXT, first + micro < real ? "%d" : "", first + micro);
        for (int j = 0; j < step.join_count; ++j) {
            if (step.to[j] < 0 || step.to[j] + 1 >= levels) return false;
            join(arena[step.to[j]], arena[step.to[j]], arena[step.to[j] + 1]);
        }
    }
    memcpy(out, arena[0], TEXT);
    return true;
}

static void stack_is_the_tree(void)
{
    static char got[TEXT], want[TEXT];
    for (int micros = 1; micros <= MICROS; ++micros) {
        definition(want, 0, micros);
        for (int all = micros; all <= micros + 9; ++all) {
            CU_ASSERT_TRUE(run_stack(got, 0, all, micros));
            CU_ASSERT_STRING_EQUAL(got, want);
        }
    }
}

static void levels(void)
{
    static const int want[][2] = {{1, 1}, {2, 2}, {3, 3}, {4, 3},
                                  {5, 4}, {8, 4}, {9, 5}, {1 << 20, 21}};
    for (int i = 0; i < (int)(sizeof want / sizeof want[0]); ++i)
        CU_ASSERT_EQUAL(tree_levels(want[i][0]), want[i][1]);
}

/* Composes the tree of the first `real` micro-batches from dp ranks with `block` micro-batches
 * each. */
static void composition(char *out, int dp, int block, int real)
{
    static char level[MICROS][TEXT];
    for (int r = 0; r < dp; ++r) CU_ASSERT_TRUE(run_stack(level[r], r * block, block, real));
    neighbours(level, dp);
    memcpy(out, level[0], TEXT);
}

static void blocks_compose(void)
{
    static char got[TEXT], want[TEXT];
    int differing = 0, padded = 0;
    for (int dp = 1; dp <= 9; ++dp)
        for (int micros = 1; micros <= MICROS; ++micros) {
            int block = micros_a_replica(micros, dp);
            CU_ASSERT(block * dp >= micros && (block - 1) * dp < micros);
            composition(got, dp, block, micros);
            definition(want, 0, micros);
            if (tree_is_canonical(micros, dp)) CU_ASSERT_STRING_EQUAL(got, want);
            padded += tree_is_canonical(micros, dp) && micros % dp > 0;
            differing += strcmp(got, want) != 0;
        }
    CU_ASSERT_TRUE(padded > 0);
    /* the test can tell trees apart */
    CU_ASSERT_TRUE(differing > 0);
}

static void which_grids_are_canonical(void)
{
    CU_ASSERT_TRUE(tree_is_canonical(7, 1));
    CU_ASSERT_TRUE(tree_is_canonical(12, 3));
    CU_ASSERT_TRUE(tree_is_canonical(4, 4));
    CU_ASSERT_TRUE(tree_is_canonical(4, 3));
    CU_ASSERT_TRUE(tree_is_canonical(3, 2));
    CU_ASSERT_TRUE(tree_is_canonical(8, 64));
    CU_ASSERT_FALSE(tree_is_canonical(12, 4));
    CU_ASSERT_FALSE(tree_is_canonical(12, 5));
    CU_ASSERT_FALSE(tree_is_canonical(8, 3));
    CU_ASSERT_FALSE(tree_is_canonical(6, 2));
}

/* The tree leaves the expected number of partial sums between turns, and one at the end. */
static void levels_between_turns(void)
{
    for (int each = 1; each <= 9; ++each)
        for (int turns = 1; turns <= 40; ++turns) {
            int most = 1, leaves = turns * each;
            for (int m = 0, depth = 0; m < leaves; ++m) {
                TreeStep step = tree_step(m, leaves);
                CU_ASSERT_EQUAL(step.write, depth);
                depth = step.write + 1 - step.join_count;
                if ((m + 1) % each == 0 && depth > most) most = depth;
                if (m == leaves - 1) CU_ASSERT_EQUAL(depth, 1);
            }
            CU_ASSERT_EQUAL(tree_levels_between(turns, each), most);
        }
}

TEST_MAIN("tree", {"the stack is the tree", stack_is_the_tree}, {"levels", levels},
          {"blocks compose", blocks_compose},
          {"which grids are canonical", which_grids_are_canonical},
          {"levels between turns", levels_between_turns})
