/* Finds orders of ranks whose slowest link is as fast as possible. The ranks, or the nodes, are
 * called points, and an order of all points is called a row. A row is a Hamiltonian path or, if its
 * last point is joined with its first, a Hamiltonian cycle (a ring). A binary search over the
 * sorted rates of the links finds the highest rate for which there is a row whose links all have at
 * least this rate. For each rate, dynamic programming over sets of points shows whether there is
 * such a row: ends[set] are the points at which a path over all points of `set` can end, and they
 * are computed from smaller sets. There is a path if the set of all points has an end. There is a
 * ring if such an end is joined with point 0. The method is that of Held and Karp, "A dynamic
 * programming approach to sequencing problems", 1962, with sets of ends in place of lengths. It
 * finds the best row of up to ORDER_EXACT_MAX points. For more points a heuristic finds a row.
 *
 * The exact search of n points needs 4 * 2^n bytes of memory. For each of about 2 log2(n) rates it
 * makes up to about 2^n n^2 operations. Sets of points are bits of uint32_t, so ORDER_EXACT_MAX
 * must not exceed 31. */
#include "topo.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Points for which a row is searched: ranks, or nodes. */
typedef struct Points {
    int count;
    /* rate of the link between each two points, [count][count]; borrowed */
    const double *rate;
    /* true: the row begins with point 0 */
    bool from_0;
    /* true: the row is a ring, in which the last point is joined with point 0 */
    bool ring;
    /* points at which a path over each set can end, [2^count]; owned */
    uint32_t *ends;
    /* for each point, the set of points to which it has a link that is fast enough */
    uint32_t near[ORDER_EXACT_MAX];
} Points;

static double rate_of(const Points *p, int a, int b)
{
    return p->rate[(int64_t)a * p->count + b];
}

/* ---- exact ---- */

static void fill_ends(Points *p)
{
    const uint32_t sets = (uint32_t)1 << p->count;
    memset(p->ends, 0, (size_t)sets * sizeof *p->ends);
    for (int i = 0; i < (p->from_0 ? 1 : p->count); ++i) p->ends[1u << i] = 1u << i;
    for (uint32_t set = 1; set < sets; ++set)
        for (uint32_t ends = p->ends[set]; ends; ends &= ends - 1) {
            int end = __builtin_ctz(ends);
            for (uint32_t next = p->near[end] & ~set; next; next &= next - 1)
                p->ends[set | (next & -next)] |= next & -next;
        }
}

/* Returns the set of points at which a row can end if all its links must have at least the rate
 * `least`. */
static uint32_t last_points(Points *p, double least)
{
    for (int a = 0; a < p->count; ++a) {
        p->near[a] = 0;
        for (int b = 0; b < p->count; ++b)
            if (a != b && rate_of(p, a, b) >= least) p->near[a] |= 1u << b;
    }
    fill_ends(p);
    uint32_t last = p->ends[((uint32_t)1 << p->count) - 1];
    return p->ring && p->count > 2 ? last & p->near[0] : last;
}

static int compare_rates(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Fills `row` from its end. last: the set of points at which the row can end. Each place gets the
 * possible point with the highest number, so the row is 0, 1, 2, ... if all rates are equal. */
static void trace_back(const Points *p, uint32_t last, int *row)
{
    uint32_t set = ((uint32_t)1 << p->count) - 1;
    for (int i = p->count - 1; i >= 0; --i) {
        row[i] = 31 - __builtin_clz(last);
        set &= ~(1u << row[i]);
        last = set ? p->ends[set] & p->near[row[i]] : 0;
    }
}

static void row_exact(Points *p, int *row)
{
    int links = 0, low = 0, n = p->count;
    double *rate = mem_new((size_t)n * (size_t)n * sizeof *rate);
    p->ends = mem_new(((size_t)1 << n) * sizeof *p->ends);
    for (int a = 0; a < n; ++a)
        for (int b = a + 1; b < n; ++b) rate[links++] = rate_of(p, a, b);
    qsort(rate, (size_t)links, sizeof *rate, compare_rates);
    /* There is a row whose links all have at least rate[low]. There is no row whose links all have
     * at least rate[high]; rate[links], after the end of the array, stands for an infinite rate. */
    for (int high = links; high - low > 1;) {
        int middle = low + (high - low) / 2;
        if (last_points(p, rate[middle]))
            low = middle;
        else
            high = middle;
    }
    trace_back(p, last_points(p, rate[low]), row);
    mem_free(&p->ends);
    mem_free(&rate);
}

/* ---- heuristic ---- */

static double slowest_of(const Points *p, const int *row)
{
    double slowest = INFINITY;
    for (int i = 0; i + 1 < p->count; ++i) slowest = fmin(slowest, rate_of(p, row[i], row[i + 1]));
    return p->ring ? fmin(slowest, rate_of(p, row[p->count - 1], row[0])) : slowest;
}

static void reverse(int *row, int from, int to)
{
    for (; from < to; ++from, --to) {
        int kept = row[from];
        row[from] = row[to];
        row[to] = kept;
    }
}

static void swap(int *a, int *b)
{
    int kept = *a;
    *a = *b;
    *b = kept;
}

/* Returns the number of links of a row. Link i joins points i and i + 1 of the row; in a ring, the
 * last one joins the last point and the first. */
static int link_count(const Points *p)
{
    return p->ring ? p->count : p->count - 1;
}

static double link_rate(const Points *p, const int *row, int link)
{
    return rate_of(p, row[link], row[(link + 1) % p->count]);
}

/* Returns true if a reversal of points i to k of the row makes its slowest link faster. The
 * reversal replaces links i - 1 and k. Returns false if one of the slowest links, slow[slow_count],
 * is not among these two. */
static bool is_better(const Points *p, const int *row, int i, int k, const int *slow,
                      int slow_count)
{
    double slowest = link_rate(p, row, slow[0]);
    for (int s = 0; s < slow_count; ++s)
        if (slow[s] != i - 1 && slow[s] != k) return false;
    return rate_of(p, row[i - 1], row[k]) > slowest &&
           (k >= link_count(p) || rate_of(p, row[i], row[(k + 1) % p->count]) > slowest);
}

/* Reverses the first part of the row whose reversal makes the row's slowest link faster. Returns
 * false if there is no such part, or if more than two links share the lowest rate. Only parts that
 * begin or end at a slowest link are tried, so a call for a row of n points takes a time in
 * proportion to n. */
static bool reverse_one(const Points *p, int *row)
{
    int slow[2], slow_count = 0;
    double slowest = slowest_of(p, row);
    for (int i = 0; i < link_count(p); ++i)
        if (link_rate(p, row, i) == slowest) {
            if (slow_count == 2) return false;
            slow[slow_count++] = i;
        }
    for (int i = 1; i < p->count; ++i) {
        bool begins = slow[0] == i - 1 || (slow_count > 1 && slow[1] == i - 1);
        int last = slow[slow_count - 1];
        for (int k = begins ? i + 1 : last; k > i && k < p->count && (begins || k == last); ++k)
            if (is_better(p, row, i, k, slow, slow_count)) {
                reverse(row, i, k);
                return true;
            }
    }
    return false;
}

static void row_heuristic(const Points *p, int *row)
{
    for (int i = 0; i < p->count; ++i) row[i] = i;
    for (int i = 0; i + 1 < p->count; ++i) {
        int next = i + 1;
        for (int k = i + 2; k < p->count; ++k)
            if (rate_of(p, row[i], row[k]) > rate_of(p, row[i], row[next])) next = k;
        swap(&row[i + 1], &row[next]);
    }
    while (reverse_one(p, row)) continue;
}

/* Finds a row of the points. Returns true if it is certainly the best row. */
static bool find_row(Points *p, int *row)
{
    row[0] = 0;
    if (p->count == 1) return true;
    bool exact = p->count <= ORDER_EXACT_MAX;
    if (exact)
        row_exact(p, row);
    else
        row_heuristic(p, row);
    return exact;
}

/* ---- ranks ---- */

/* Finds a row of the ranks of a node. first: the rank with which the row begins; -1: any rank.
 * Returns the number of ranks. Clears *exact if the row may not be the best. */
static int node_row(const Topology *t, int node, int first, int *row, bool *exact)
{
    int count = 0;
    int *member = mem_new((size_t)t->ranks * sizeof *member);
    if (first >= 0) member[count++] = first;
    for (int r = 0; r < t->ranks; ++r)
        if (t->node[r] == node && r != first) member[count++] = r;
    double *rate = mem_new((size_t)count * (size_t)count * sizeof *rate);
    for (int a = 0; a < count; ++a)
        for (int b = 0; b < count; ++b) rate[a * count + b] = topo_rate(t, member[a], member[b]);
    Points p = {.count = count, .rate = rate, .from_0 = first >= 0};
    *exact = find_row(&p, row) && *exact;
    for (int i = 0; i < count; ++i) row[i] = member[row[i]];
    mem_free(&rate);
    mem_free(&member);
    return count;
}

/* Finds a row of the nodes. from_0: the row begins with node 0. The rate between two nodes is that
 * of their fastest pair of ranks. Clears *exact if the row may not be the best. */
static void nodes_row(const Topology *t, bool from_0, bool ring, int *row, bool *exact)
{
    int n = t->nodes;
    double *rate = mem_new((size_t)n * (size_t)n * sizeof *rate);
    for (int a = 0; a < t->ranks; ++a)
        for (int b = 0; b < t->ranks; ++b) {
            double *fastest = &rate[t->node[a] * n + t->node[b]];
            if (topo_rate(t, a, b) > *fastest) *fastest = topo_rate(t, a, b);
        }
    Points p = {.count = n, .rate = rate, .from_0 = from_0, .ring = ring};
    *exact = find_row(&p, row) && *exact;
    mem_free(&rate);
}

/* Finds a row of all ranks, node by node. from_0: the row begins with rank 0, which is on node 0.
 * Returns true if the order of the nodes and the orders inside all nodes are certainly the best. */
static bool levels_row(const Topology *t, bool from_0, bool ring, int *row)
{
    bool exact = true;
    int at = 0, *node = mem_new((size_t)t->nodes * sizeof *node);
    nodes_row(t, from_0, ring, node, &exact);
    for (int i = 0; i < t->nodes; ++i)
        at += node_row(t, node[i], from_0 && i == 0 ? 0 : -1, row + at, &exact);
    mem_free(&node);
    return exact;
}

static void rate_order(const Topology *t, bool ring, Order *order)
{
    order->slowest = INFINITY;
    order->slowest_at = -1;
    for (int i = 0; i < t->ranks - !ring && t->ranks > 1; ++i) {
        double rate = topo_rate(t, order->rank[i], order->rank[(i + 1) % t->ranks]);
        if (rate >= order->slowest) continue;
        order->slowest = rate;
        order->slowest_at = i;
    }
}

static void find_order(const Topology *t, bool ring, Order *order)
{
    *order = (Order){.rank = mem_new((size_t)t->ranks * sizeof *order->rank)};
    if (t->ranks <= ORDER_EXACT_MAX) {
        Points p = {.count = t->ranks, .rate = t->bytes_per_s, .from_0 = ring, .ring = ring};
        /* find_row is exact here, and order->search is already ORDER_EXACT, which is 0 */
        find_row(&p, order->rank);
    } else {
        order->search = levels_row(t, ring, ring, order->rank) ? ORDER_LEVELS : ORDER_HEURISTIC;
    }
    rate_order(t, ring, order);
}

void topo_ring(const Topology *t, Order *order)
{
    find_order(t, true, order);
}

void topo_path(const Topology *t, Order *order)
{
    find_order(t, false, order);
}

void order_fini(Order *order)
{
    mem_free(&order->rank);
}

int *topo_places_by_node(const Topology *t)
{
    int *map = mem_new((size_t)t->ranks * sizeof *map);
    int *at = mem_new((size_t)(t->nodes + 1) * sizeof *at);
    for (int r = 0; r < t->ranks; ++r) ++at[t->node[r] + 1];
    for (int n = 0; n < t->nodes; ++n) at[n + 1] += at[n];
    for (int r = 0; r < t->ranks; ++r) map[at[t->node[r]]++] = r;
    mem_free(&at);
    return map;
}

int *topo_places(const Topology *t, OrderSearch *search)
{
    int *map = mem_new((size_t)t->ranks * sizeof *map);
    *search = levels_row(t, true, false, map) ? ORDER_LEVELS : ORDER_HEURISTIC;
    return map;
}
