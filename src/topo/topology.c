/* Topologies in memory: slow pairs, and the slowest links of a grid. */
#include "topo.h"

#include <math.h>
#include <stdlib.h>

static const double SLOW_BELOW = 0.8;

void topo_fini(Topology *t)
{
    for (int i = 0; t->host && i < t->nodes; ++i) mem_free(&t->host[i]);
    for (int i = 0; t->cpus && i < t->ranks; ++i) mem_free(&t->cpus[i]);
    mem_free(&t->host);
    mem_free(&t->node);
    mem_free(&t->cpus);
    mem_free(&t->latency_s);
    mem_free(&t->bytes_s);
    mem_free(&t->together_bytes_s);
}

/* Median rate of the pairs within nodes, or of those between nodes; 0 if there are none. */
static double class_median(const Topology *t, bool within)
{
    int count = 0;
    double *rate = mem_new(((size_t)t->ranks * (size_t)t->ranks + 1) * sizeof *rate);
    for (int a = 0; a < t->ranks; ++a)
        for (int b = a + 1; b < t->ranks; ++b)
            if ((t->node[a] == t->node[b]) == within) rate[count++] = topo_rate(t, a, b);
    double middle = count ? median(rate, count) : 0;
    mem_free(&rate);
    return middle;
}

static int compare_pairs(const void *a, const void *b)
{
    const SlowPair *x = a, *y = b;
    double left = x->bytes_s / x->class_median, right = y->bytes_s / y->class_median;
    if (left != right) return left < right ? -1 : 1;
    return x->a != y->a ? x->a - y->a : x->b - y->b;
}

int topo_slow_pairs(const Topology *t, SlowPair **pairs)
{
    const double middle[] = {class_median(t, false), class_median(t, true)};
    int count = 0;
    *pairs = mem_new(((size_t)t->ranks * (size_t)t->ranks + 1) * sizeof **pairs);
    for (int a = 0; a < t->ranks; ++a)
        for (int b = a + 1; b < t->ranks; ++b) {
            double rate = topo_rate(t, a, b), of = middle[t->node[a] == t->node[b]];
            if (rate < SLOW_BELOW * of) (*pairs)[count++] = (SlowPair){a, b, rate, of};
        }
    qsort(*pairs, (size_t)count, sizeof **pairs, compare_pairs);
    return count;
}

/* Sets *slowest to the rate between two ranks of the grid if that is lower. */
static void take_link(const Topology *t, const int *map, int a, int b, double *slowest)
{
    double rate = topo_rate(t, map ? map[a] : a, map ? map[b] : b);
    if (rate < *slowest) *slowest = rate;
}

GridLinks topo_grid_links(const Topology *t, GridShape shape, const int *map)
{
    GridLinks links = {INFINITY, INFINITY, INFINITY};
    for (int a = 0; a < t->ranks; ++a) {
        int tp = a % shape.tp, dp = a / shape.tp % shape.dp, pp = a / (shape.tp * shape.dp);
        for (int k = tp + 1; k < shape.tp; ++k) take_link(t, map, a, a - tp + k, &links.tp);
        for (int k = dp + 1; k < shape.dp; ++k)
            take_link(t, map, a, a + (k - dp) * shape.tp, &links.dp);
        if (pp + 1 < shape.pp) take_link(t, map, a, a + shape.dp * shape.tp, &links.pp);
    }
    return links;
}
