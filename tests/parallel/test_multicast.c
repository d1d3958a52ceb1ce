/* Tests the tree of a multicast for up to 200 members, on nodes of equal size, of different sizes,
 * and of one rank each. Every member is reached once, in few steps. Each node receives from another
 * node once. No member sends to more than two others. */
#include "harness.h"
#include "parallel.h"

#include <math.h>

enum { RANKS_MOST = 400, MEMBERS_MOST = 200 };

typedef struct Case {
    int ranks, count;
    int node[RANKS_MOST], member[MEMBERS_MOST];
} Case;

/* Makes nodes that have from `least` to `most` ranks. */
static void make_nodes(Case *c, int least, int most)
{
    int node = 0, end = 0;
    for (int r = 0; r < c->ranks; ++r) {
        if (r == end) {
            node = r;
            end += least + rand() % (most - least + 1);
        }
        c->node[r] = node;
    }
}

/* Chooses the root and `count` members at random. Orders the members: first those on the root's
 * node, then those on later nodes, then those on earlier nodes. */
static void make_members(Case *c, int count)
{
    bool in[RANKS_MOST] = {0};
    for (c->count = 0; c->count < count;) {
        int r = rand() % c->ranks;
        c->count += !in[r];
        in[r] = true;
    }
    int root = rand() % c->ranks, first, at = 0;
    while (!in[root]) root = (root + 1) % c->ranks;
    first = c->node[root];
    c->member[at++] = root;
    for (int k = 0; k < c->ranks; ++k) {
        int r = (first + k) % c->ranks;
        if (in[r] && r != root) c->member[at++] = r;
    }
    CU_ASSERT_EQUAL(at, count);
}

typedef struct Walk {
    const Case *of;
    int reached[RANKS_MOST], entered[RANKS_MOST];
    int deepest;
    int64_t bad;
} Walk;

static void walk(Walk *w, int rank, int parent, int depth)
{
    const Case *c = w->of;
    MulticastPlace place = multicast_place(c->member, c->count, c->node, rank);
    w->bad += place.parent != parent;
    if (w->reached[rank]++ > 0) return;
    if (parent < 0 || c->node[rank] != c->node[parent]) ++w->entered[c->node[rank]];
    if (depth > w->deepest) w->deepest = depth;
    for (int k = 0; k < 2; ++k)
        if (place.child[k] >= 0) walk(w, place.child[k], rank, depth + 1);
}

static int check(const Case *c)
{
    Walk w = {.of = c};
    walk(&w, c->member[0], -1, 0);
    int all = 0;
    for (int r = 0; r < c->ranks; ++r) all += w.reached[r];
    CU_ASSERT_EQUAL(all, c->count);
    for (int k = 0; k < c->count; ++k) {
        w.bad += w.reached[c->member[k]] != 1;
        w.bad += w.entered[c->node[c->member[k]]] != 1;
    }
    CU_ASSERT_EQUAL(w.bad, 0);
    return w.deepest;
}

static void test_tree(void)
{
    static const int nodes[][2] = {{1, 1}, {4, 4},  {8, 8},
                                   {1, 3}, {1, 40}, {RANKS_MOST, RANKS_MOST}};
    Case *c = mem_new(sizeof *c);
    srand(1);
    for (int n = 0; n < (int)(sizeof nodes / sizeof *nodes); ++n)
        for (int count = 1; count <= MEMBERS_MOST; ++count)
            for (int again = 0; again < 3; ++again) {
                c->ranks = count + rand() % (RANKS_MOST - count + 1);
                make_nodes(c, nodes[n][0], nodes[n][1]);
                make_members(c, count);
                CU_ASSERT(check(c) <= 2 * log2(count) + 1);
            }
    mem_free(&c);
}

/* If all nodes have the same number of ranks, the tree has at most one step more than a tree that
 * ignores nodes. */
static void test_even(void)
{
    Case *c = mem_new(sizeof *c);
    c->ranks = 128;
    srand(2);
    for (int width = 1; width <= 128; width *= 2) {
        make_nodes(c, width, width);
        make_members(c, 128);
        CU_ASSERT(check(c) <= 8);
    }
    mem_free(&c);
}

TEST_MAIN("multicast", {"every member once", test_tree}, {"nodes of one size", test_even})
