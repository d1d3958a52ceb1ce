/* Finds the tree of ranks whose slowest link is as fast as possible: a maximum spanning tree
 * (Kruskal, 1956). The root is the middle of a longest path in the tree. */
#include "topo.h"

#include <math.h>
#include <stdlib.h>

typedef struct Edge {
    double rate;
    int a, b;
} Edge;

static int compare_edges(const void *x, const void *y)
{
    const Edge *a = x, *b = y;
    if (a->rate != b->rate) return a->rate > b->rate ? -1 : 1;
    return a->a != b->a ? a->a - b->a : a->b - b->b;
}

static int root_of(int *group, int rank)
{
    while (group[rank] != rank) rank = group[rank] = group[group[rank]];
    return rank;
}

/* Chooses the ranks - 1 edges of the tree. Returns the rate of the slowest edge. */
static double choose_edges(const Topology *t, Edge *chosen)
{
    int n = t->ranks, count = 0, used = 0;
    double slowest = INFINITY;
    Edge *edge = mem_new(((size_t)n * (size_t)n + 1) * sizeof *edge);
    int *group = mem_new((size_t)n * sizeof *group);
    for (int a = 0; a < n; ++a) {
        group[a] = a;
        for (int b = a + 1; b < n; ++b) edge[count++] = (Edge){topo_rate(t, a, b), a, b};
    }
    qsort(edge, (size_t)count, sizeof *edge, compare_edges);
    for (int i = 0; i < count && used < n - 1; ++i) {
        int a = root_of(group, edge[i].a), b = root_of(group, edge[i].b);
        if (a == b) continue;
        group[a] = b;
        chosen[used++] = edge[i];
        slowest = edge[i].rate;
    }
    mem_free(&group);
    mem_free(&edge);
    return slowest;
}

/* Sets the parents of all ranks in the tree with this root. Returns the depth of the tree.
 * *deepest: a rank at this depth. */
static int set_parents(const Edge *edge, int ranks, int root, int *parent, int *deepest)
{
    int reached = 1, depth = 0;
    int *level = mem_new((size_t)ranks * sizeof *level);
    for (int r = 0; r < ranks; ++r) level[r] = -1;
    level[root] = 0;
    *deepest = root;
    parent[root] = -1;
    while (reached < ranks)
        for (int i = 0; i < ranks - 1; ++i) {
            int a = edge[i].a, b = edge[i].b;
            if ((level[a] < 0) == (level[b] < 0)) continue;
            int above = level[a] < 0 ? b : a, below = level[a] < 0 ? a : b;
            parent[below] = above;
            level[below] = level[above] + 1;
            if (level[below] > depth) {
                depth = level[below];
                *deepest = below;
            }
            ++reached;
        }
    mem_free(&level);
    return depth;
}

void topo_tree(const Topology *t, RankTree *tree)
{
    size_t ranks = (size_t)t->ranks;
    Edge *edge = mem_new((ranks + 1) * sizeof *edge);
    *tree = (RankTree){.parent = mem_new(ranks * sizeof *tree->parent)};
    tree->slowest = choose_edges(t, edge);
    /* A longest path: one end is a rank farthest from rank 0, the other end a rank farthest from
     * the first end. The root is its middle. */
    int end, other;
    set_parents(edge, t->ranks, 0, tree->parent, &end);
    int longest = set_parents(edge, t->ranks, end, tree->parent, &other);
    for (int i = 0; i < longest / 2; ++i) other = tree->parent[other];
    tree->root = other;
    tree->depth = set_parents(edge, t->ranks, tree->root, tree->parent, &end);
    mem_free(&edge);
}

void tree_fini(RankTree *tree)
{
    mem_free(&tree->parent);
}
