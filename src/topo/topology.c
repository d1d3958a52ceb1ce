/* Frees topologies; computes medians of the classes of links; finds slow pairs, slow nodes, and the
 * slowest links of a grid. */
#include "topo.h"
#include "topo/layout.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* links and nodes with less than this fraction of the median rate are slow */
static const double SLOW_BELOW = 0.8;

void topo_fini_hardware(Topology *t)
{
    for (int i = 0; i < t->hardware_count; ++i) hardware_fini(&t->hardware[i]);
    mem_free(&t->hardware_index);
    mem_free(&t->hardware);
    t->hardware_count = 0;
}

void topo_fini(Topology *t)
{
    for (int i = 0; t->host && i < t->nodes; ++i) mem_free(&t->host[i]);
    for (int i = 0; t->cpus && i < t->ranks; ++i) mem_free(&t->cpus[i]);
    mem_free(&t->host);
    mem_free(&t->node);
    mem_free(&t->cpus);
    mem_free(&t->latency_s);
    mem_free(&t->bytes_per_s);
    mem_free(&t->together_bytes_per_s);
    for (int i = 0; t->switches && i < t->nodes; ++i) mem_free(&t->switches[i]);
    mem_free(&t->switches);
    topo_fini_hardware(t);
}

const char *link_class_name(LinkClass class)
{
    static const char *const names[] = {LINK_CLASSES(LIST_NAME)};
    return names[class];
}

/* Returns the package that contains all CPUs of the rank; -1: there is none, or it is not known. */
static int rank_package(const Topology *t, int rank)
{
    cpu_set_t cpus;
    const Hardware *h = topo_hardware(t, t->node[rank]);
    if (!h || !cpus_read(t->cpus[rank], &cpus) || !CPU_COUNT(&cpus)) return -1;
    return hardware_find(h, PART_PACKAGE, &cpus);
}

/* Returns the package of each rank (-1: none), [ranks], owned by the caller. */
static int *rank_packages(const Topology *t)
{
    int *package = mem_new(((size_t)t->ranks + 1) * sizeof *package);
    for (int r = 0; r < t->ranks; ++r) package[r] = rank_package(t, r);
    return package;
}

static LinkClass link_class(const Topology *t, const int *package, int a, int b)
{
    int node_a = t->node[a], node_b = t->node[b];
    if (node_a == node_b)
        return package[a] >= 0 && package[a] == package[b] ? LINK_PACKAGE : LINK_NODE;
    const char *switches = t->switches ? t->switches[node_a] : "";
    return *switches && strcmp(switches, t->switches[node_b]) == 0 ? LINK_SWITCH : LINK_NODES;
}

/* Returns true for a link between two nodes if one of the nodes is slow. */
static bool is_slow(const Topology *t, const bool *slow, int a, int b)
{
    return t->node[a] != t->node[b] && (slow[t->node[a]] || slow[t->node[b]]);
}

/* Writes the matrix's values for the pairs of a class to `value`, and returns their number. slow:
 * true for each node whose links to other nodes are left out, [nodes]; NULL: none is left out. */
static int class_values(const Topology *t, const int *package, const bool *slow, LinkClass class,
                        const double *matrix, double *value)
{
    int count = 0;
    for (int a = 0; a < t->ranks; ++a)
        for (int b = a + 1; b < t->ranks; ++b)
            if (link_class(t, package, a, b) == class && !(slow && is_slow(t, slow, a, b)))
                value[count++] = matrix[(int64_t)a * t->ranks + b];
    return count;
}

void topo_summarize(const Topology *t, LinkSummary summary[LINK_CLASS_COUNT])
{
    int *package = rank_packages(t);
    double *value = mem_new(((size_t)t->ranks * (size_t)t->ranks + 1) * sizeof *value);
    for (int k = 0; k < LINK_CLASS_COUNT; ++k) {
        LinkSummary *s = &summary[k];
        *s = (LinkSummary){0};
        if (!t->bytes_per_s) continue;
        int count = class_values(t, package, NULL, (LinkClass)k, t->bytes_per_s, value);
        if (count == 0) continue;
        s->pairs = count;
        /* median sorts the values */
        s->bytes_per_s = median(value, count);
        s->bytes_per_s_min = value[0];
        s->bytes_per_s_max = value[count - 1];
        class_values(t, package, NULL, (LinkClass)k, t->latency_s, value);
        s->latency_s = median(value, count);
        class_values(t, package, NULL, (LinkClass)k, t->together_bytes_per_s, value);
        s->together_bytes_per_s = median(value, count);
    }
    mem_free(&value);
    mem_free(&package);
}

static int compare_pairs(const void *a, const void *b)
{
    const SlowPair *x = a, *y = b;
    double left = x->bytes_per_s / x->class_median, right = y->bytes_per_s / y->class_median;
    if (left != right) return left < right ? -1 : 1;
    return x->a != y->a ? x->a - y->a : x->b - y->b;
}

int topo_slow_nodes(const Topology *t, SlowNode **nodes)
{
    int count = 0;
    double *best = mem_new(2 * (size_t)t->nodes * sizeof *best), *sorted = best + t->nodes;
    *nodes = mem_new((size_t)t->nodes * sizeof **nodes);
    for (int a = 0; a < t->ranks && t->bytes_per_s; ++a)
        for (int b = 0; b < t->ranks; ++b)
            if (t->node[a] != t->node[b])
                best[t->node[a]] = fmax(best[t->node[a]], topo_rate(t, a, b));
    memcpy(sorted, best, (size_t)t->nodes * sizeof *best);
    double middle = median(sorted, t->nodes);
    for (int n = 0; n < t->nodes; ++n)
        if (best[n] < SLOW_BELOW * middle) (*nodes)[count++] = (SlowNode){n, best[n], middle};
    mem_free(&best);
    return count;
}

/* Returns true for each slow node, [nodes], owned by the caller. */
static bool *slow_nodes(const Topology *t)
{
    SlowNode *node;
    bool *slow = mem_new((size_t)t->nodes * sizeof *slow);
    int count = topo_slow_nodes(t, &node);
    for (int i = 0; i < count; ++i) slow[node[i].node] = true;
    mem_free(&node);
    return slow;
}

int topo_slow_pairs(const Topology *t, SlowPair **pairs)
{
    int count = 0, *package = rank_packages(t);
    bool *slow = slow_nodes(t);
    double middle[LINK_CLASS_COUNT];
    double *value = mem_new(((size_t)t->ranks * (size_t)t->ranks + 1) * sizeof *value);
    *pairs = mem_new(((size_t)t->ranks * (size_t)t->ranks + 1) * sizeof **pairs);
    for (int k = 0; k < LINK_CLASS_COUNT && t->bytes_per_s; ++k) {
        int links = class_values(t, package, slow, (LinkClass)k, t->bytes_per_s, value);
        middle[k] = links ? median(value, links) : 0;
    }
    for (int a = 0; a < t->ranks && t->bytes_per_s; ++a)
        for (int b = a + 1; b < t->ranks; ++b) {
            LinkClass class = link_class(t, package, a, b);
            double rate = topo_rate(t, a, b);
            if (rate < SLOW_BELOW * middle[class] && !is_slow(t, slow, a, b))
                (*pairs)[count++] = (SlowPair){a, b, class, rate, middle[class]};
        }
    mem_free(&value);
    mem_free(&slow);
    mem_free(&package);
    qsort(*pairs, (size_t)count, sizeof **pairs, compare_pairs);
    return count;
}

/* Lowers *slowest to the rate between two ranks of the grid if this rate is lower. */
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
