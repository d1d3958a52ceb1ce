/* Tests the summation tree over micro-batches. With texts in place of gradients, the stack of
 * partial sums is compared with the recursive definition. With numbers, the sums of any number of
 * replicas are compared with those of one rank. */
#include "harness.h"
#include "tree_case.h"

#include "parallel.h"
#include "parallel/order/tree_sum.h"

enum { TEXT = 2048, MICROS = 70 };

/* Joins two texts to "(a b)". The text of a leaf is its number, so different trees have different
 * texts. An empty text stands for a leaf of padding, -0, and leaves the other text unchanged. */
static void join(char *to, const char *a, const char *b)
{
    char text[TEXT];
    bool both = *a && *b;
    int length = snprintf(text, sizeof text, both ? "(%.*s %.*s)" : "%.*s%.*s", TEXT, a, TEXT, b);
    CU_ASSERT_TRUE(length < TEXT);
    memcpy(to, text, strlen(text) + 1);
}

/* Computes the text of the tree by definition: neighbours 2i and 2i+1 are joined, and a last one
 * without a neighbour is taken over to the next level. The result is in level[0]. */
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

static void definition(char *out, int first, int micro_batches)
{
    static char level[MICROS][TEXT];
    for (int i = 0; i < micro_batches; ++i) snprintf(level[i], TEXT, "%d", first + i);
    neighbours(level, micro_batches);
    memcpy(out, level[0], TEXT);
}

/* Adds leaves `first` to `first` + `micro_batches` - 1 to the stack; leaves from number `real` on
 * are padding. Returns false if the stack needs more levels than tree_levels says. */
static bool run_stack(char *out, int first, int micro_batches, int real)
{
    static char arena[40][TEXT];
    int levels = tree_levels(micro_batches);
    for (int micro = 0; micro < micro_batches; ++micro) {
        TreeStep step = tree_step(micro, micro_batches);
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
    for (int micro_batches = 1; micro_batches <= MICROS; ++micro_batches) {
        definition(want, 0, micro_batches);
        for (int all = micro_batches; all <= micro_batches + 9; ++all) {
            CU_ASSERT_TRUE(run_stack(got, 0, all, micro_batches));
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

/* ---- replicas ---- */

enum { MOST = 48, WIDTH = 3, LEVELS = 40 };

/* A step of dp replicas. The gradients are the numbers of tree_value. Micro-batches from number
 * `real` on are padding. */
typedef struct Step {
    Deal deal;
    int dp, micro_batches, real;
    /* local: stack of each replica, [replica][level][element]; partial: partial sums between
     * pushes, [level][element] */
    float local[MOST][LEVELS][WIDTH], partial[LEVELS][WIDTH];
    /* number of times that each micro-batch was dealt */
    int seen[2 * MOST];
} Step;

/* Adds consecutive micro-batches of one replica to its stack. */
static void add_run(Step *s, int rank, MicroRun run)
{
    for (int i = 0; i < run.count; ++i) {
        int number = deal_number(s->deal, run.first + i, s->micro_batches, rank, s->dp);
        TreeStep step = tree_step(i, run.count);
        CU_ASSERT_FATAL(number >= 0 && number < s->micro_batches * s->dp);
        ++s->seen[number];
        for (int e = 0; e < WIDTH; ++e)
            s->local[rank][step.write][e] = number < s->real ? tree_value(number, e, 0) : -0.0f;
        for (int j = 0; j < step.join_count; ++j)
            for (int e = 0; e < WIDTH; ++e)
                s->local[rank][step.to[j]][e] += s->local[rank][step.to[j] + 1][e];
    }
}

/* Adds the sums of all replicas' consecutive micro-batches to the tree, as a push does. The last
 * push writes the complete sum to the memory of its leaves. */
static void push_run(Step *s, MicroRun run)
{
    float *in[MOST], *level[LEVELS];
    for (int r = 0; r < s->dp; ++r) in[r] = s->local[r][0];
    for (int k = 0; k < LEVELS; ++k) level[k] = s->partial[k];
    TreePush push = {.level = level,
                     .in = (const float *const *)in,
                     .ins = s->dp,
                     .first = run.first / run.count * s->dp,
                     .leaves = ((s->micro_batches - 1) / run.count + 1) * s->dp,
                     .out = in,
                     .outs = s->dp};
    tree_push(&push, WIDTH, 1);
}

static int wrong_bits(const float *got, int real)
{
    int wrong = 0;
    for (int e = 0; e < WIDTH; ++e) {
        float want = tree_reference(real, e, 0);
        wrong += memcmp(&want, &got[e], sizeof want) != 0;
    }
    return wrong;
}

/* Returns the number of replicas' elements whose bits differ from those of one rank. */
static int play_step(Deal deal, int micro_batches_global, int dp)
{
    static Step s;
    int runs = 0, wrong = 0, levels;
    s = (Step){.deal = deal,
               .dp = dp,
               .micro_batches = micro_batches_a_replica(micro_batches_global, dp),
               .real = micro_batches_global};
    levels = deal_levels(deal, s.micro_batches, dp);
    for (int k = levels; k < LEVELS; ++k)
        for (int e = 0; e < WIDTH; ++e) s.partial[k][e] = 77;
    for (int micro = 0; micro < s.micro_batches; ++runs) {
        MicroRun run = deal_micro_run(deal, micro, s.micro_batches);
        CU_ASSERT_EQUAL_FATAL(run.first, micro);
        for (int i = 0; i < run.count; ++i)
            CU_ASSERT_EQUAL(deal_micro_run(deal, micro + i, s.micro_batches).first, micro);
        for (int r = 0; r < dp; ++r) add_run(&s, r, run);
        push_run(&s, run);
        micro += run.count;
    }
    CU_ASSERT_EQUAL(runs, deal_runs(deal, s.micro_batches));
    for (int m = 0; m < s.micro_batches * dp; ++m) CU_ASSERT_EQUAL(s.seen[m], 1);
    for (int k = levels; k < LEVELS; ++k) CU_ASSERT_EQUAL(s.partial[k][0], 77);
    for (int r = 0; r < dp; ++r) wrong += wrong_bits(s.local[r][0], micro_batches_global);
    return wrong;
}

/* If micro-batches are dealt as subtrees, any number of replicas gives the bits of one rank. If
 * they are dealt as blocks, this is only so if each replica's number of micro-batches is a power of
 * two; subtrees and blocks are then the same. */
static void any_number_of_replicas(void)
{
    int differing = 0;
    for (int dp = 1; dp <= MOST; ++dp)
        for (int micro_batches = 1; micro_batches <= MOST; ++micro_batches) {
            int each = micro_batches_a_replica(micro_batches, dp);
            bool power = (each & (each - 1)) == 0;
            CU_ASSERT(each * dp >= micro_batches && (each - 1) * dp < micro_batches);
            CU_ASSERT_EQUAL(play_step(DEAL_SUBTREES, micro_batches, dp), 0);
            CU_ASSERT_EQUAL(play_step(DEAL_TURNS, micro_batches, dp), 0);
            if (dp == 1 || power) CU_ASSERT_EQUAL(play_step(DEAL_BLOCKS, micro_batches, dp), 0);
            if (!power) differing += play_step(DEAL_BLOCKS, micro_batches, dp) > 0;
            for (int i = 0; i < each && power; ++i)
                CU_ASSERT_EQUAL(deal_number(DEAL_SUBTREES, i, each, dp - 1, dp),
                                deal_number(DEAL_BLOCKS, i, each, dp - 1, dp));
            CU_ASSERT(!power || deal_runs(DEAL_SUBTREES, each) == 1);
        }
    /* other trees do give other bits, so the test can fail */
    CU_ASSERT_TRUE(differing > 100);
}

/* deal_levels returns the largest number of partial sums that the tree has between turns. At the
 * end the tree has one sum. */
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
            CU_ASSERT_EQUAL(deal_levels(DEAL_TURNS, turns, each), most);
        }
}

static void deals(void)
{
    /* two replicas with seven micro-batches each, dealt in groups of 4, 2 and 1 */
    static const int want[2][7] = {{0, 1, 2, 3, 8, 9, 12}, {4, 5, 6, 7, 10, 11, 13}};
    for (int r = 0; r < 2; ++r)
        for (int i = 0; i < 7; ++i) {
            CU_ASSERT_EQUAL(deal_number(DEAL_SUBTREES, i, 7, r, 2), want[r][i]);
            CU_ASSERT_EQUAL(deal_number(DEAL_BLOCKS, i, 7, r, 2), 7 * r + i);
            CU_ASSERT_EQUAL(deal_number(DEAL_TURNS, i, 7, r, 2), 2 * i + r);
        }
    CU_ASSERT_EQUAL(deal_runs(DEAL_SUBTREES, 7), 3);
    /* the first push has 8 leaves; after the second there are 12, which are two partial sums */
    CU_ASSERT_EQUAL(deal_levels(DEAL_SUBTREES, 7, 2), 2);
}

TEST_MAIN("tree", {"the stack is the tree", stack_is_the_tree}, {"levels", levels},
          {"any number of replicas", any_number_of_replicas},
          {"levels between turns", levels_between_turns}, {"deals", deals})
