/* Finds the lowest free place in memory for a tensor that is alive from one tick to another. A
 * binary tree divides the ticks. A tensor is stored at the largest nodes whose ticks are all in its
 * life, so a search visits only some nodes of each level instead of all placed tensors. A node
 * stores the union of its tensors' byte spans; adjacent spans are merged.
 *
 *     ticks   0 1 2 3 4 5 6 7        a tensor of ticks 2 to 7 is in `across` of [2 3] and [4 7],
 *             [      0 7     ]       and in `inside` of [0 7] and [0 3]
 *             [0 3]     [4 7]
 *             [01][23]  [45][67] */
#include "chunk.h"

#include <string.h>

/* A set of bytes as sorted spans, with gaps between them. */
typedef struct SpanSet {
    /* the spans, [capacity]; owned */
    Span *span;
    int count, capacity;
} SpanSet;

struct PlaceTree {
    /* number of ticks, a power of two */
    int ticks;
    /* The two arrays have an entry for each tree node; node 1 is the root, 2n and 2n + 1 are the
     * children of n; owned. */
    /* bytes of tensors that are alive at all ticks of the node, but not at all of its parent's */
    SpanSet *across;
    /* bytes of tensors that are alive at some, but not all, of the node's ticks */
    SpanSet *inside;
};

/* A search for a place that is free from tick `first` to tick `last`, and the sets of bytes that
 * the place must not overlap: at most four for each level of the tree. */
enum { SETS_MOST = 4 * 32 };
typedef struct Search {
    int first, last, count;
    const SpanSet *set[SETS_MOST];
} Search;

/* Returns the index of the first span that ends at or after `end`. */
static int find_span(const SpanSet *set, int64_t end)
{
    int low = 0, high = set->count;
    while (low < high) {
        int middle = low + (high - low) / 2;
        if (set->span[middle].end < end)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void add_span(SpanSet *set, Span span)
{
    int from = find_span(set, span.begin), to = from;
    for (; to < set->count && set->span[to].begin <= span.end; ++to) {
        if (set->span[to].begin < span.begin) span.begin = set->span[to].begin;
        if (set->span[to].end > span.end) span.end = set->span[to].end;
    }
    if (from == to && set->count == set->capacity) {
        set->capacity = set->capacity ? 2 * set->capacity : 2;
        set->span = mem_resize(set->span, (size_t)set->capacity * sizeof *set->span);
    }
    memmove(set->span + from + 1, set->span + to, (size_t)(set->count - to) * sizeof *set->span);
    set->span[from] = span;
    set->count += from + 1 - to;
}

PlaceTree *place_tree_new(int ticks)
{
    PlaceTree *tree = mem_new(sizeof *tree);
    for (tree->ticks = 1; tree->ticks < ticks;) tree->ticks *= 2;
    tree->across = mem_new(2 * (size_t)tree->ticks * sizeof *tree->across);
    tree->inside = mem_new(2 * (size_t)tree->ticks * sizeof *tree->inside);
    return tree;
}

void place_tree_free(PlaceTree **tree)
{
    for (int i = 0; i < 2 * (*tree)->ticks; ++i) {
        mem_free(&(*tree)->across[i].span);
        mem_free(&(*tree)->inside[i].span);
    }
    mem_free(&(*tree)->across);
    mem_free(&(*tree)->inside);
    mem_free(tree);
}

/* Adds a span to the subtree of `node`, which has ticks low to low + ticks - 1. */
static void add_below(PlaceTree *tree, int node, int low, int ticks, int first, int last, Span span)
{
    if (last < low || first >= low + ticks) return;
    if (first <= low && last >= low + ticks - 1) {
        add_span(&tree->across[node], span);
        return;
    }
    add_span(&tree->inside[node], span);
    add_below(tree, 2 * node, low, ticks / 2, first, last, span);
    add_below(tree, 2 * node + 1, low + ticks / 2, ticks / 2, first, last, span);
}

void place_tree_add(PlaceTree *tree, int first, int last, Span span)
{
    add_below(tree, 1, 0, tree->ticks, first, last, span);
}

static void search_add(Search *q, const SpanSet *set)
{
    if (set->count > 0) q->set[q->count++] = set;
}

static void search_below(const PlaceTree *tree, Search *q, int node, int low, int ticks)
{
    if (q->last < low || q->first >= low + ticks) return;
    search_add(q, &tree->across[node]);
    if (q->first <= low && q->last >= low + ticks - 1) {
        search_add(q, &tree->inside[node]);
        return;
    }
    search_below(tree, q, 2 * node, low, ticks / 2);
    search_below(tree, q, 2 * node + 1, low + ticks / 2, ticks / 2);
}

int64_t place_tree_lowest(const PlaceTree *tree, int first, int last, int64_t from, int64_t bytes)
{
    Search q = {.first = first, .last = last};
    int64_t at = from;
    search_below(tree, &q, 1, 0, tree->ticks);
    for (bool moved = true; moved;) {
        moved = false;
        for (int i = 0; i < q.count; ++i) {
            const SpanSet *set = q.set[i];
            for (int k = find_span(set, at + 1); k < set->count && set->span[k].begin < at + bytes;
                 ++k) {
                at = set->span[k].end;
                moved = true;
            }
        }
    }
    return at;
}
