/* Groups the nodes of a topology by layout (topo/layout.h). Also finds the ranks on each part of a
 * node, writes sizes of memory as text, and recognizes parts that are shown as a core. */
#include "topo/layout.h"

#include <string.h>

const Hardware *topo_hardware(const Topology *t, int node)
{
    return t->hardware_index && t->hardware_index[node] >= 0 ? &t->hardware[t->hardware_index[node]]
                                                             : NULL;
}

/* Returns the first rank of a node, not below `from`; t->ranks: there is none. */
static int next_rank(const Topology *t, int node, int from)
{
    while (from < t->ranks && t->node[from] != node) ++from;
    return from;
}

static bool layouts_equal(const Topology *t, int a, int b)
{
    const Hardware *hardware = topo_hardware(t, a);
    if (hardware != topo_hardware(t, b)) return false;
    if (!hardware) return true;
    int rank_a = next_rank(t, a, 0), rank_b = next_rank(t, b, 0);
    while (rank_a < t->ranks && rank_b < t->ranks) {
        if (strcmp(t->cpus[rank_a], t->cpus[rank_b]) != 0) return false;
        rank_a = next_rank(t, a, rank_a + 1);
        rank_b = next_rank(t, b, rank_b + 1);
    }
    return rank_a == rank_b;
}

int *topo_layouts(const Topology *t, int *count)
{
    int *layout = mem_new((size_t)t->nodes * sizeof *layout);
    *count = 0;
    for (int n = 0; n < t->nodes; ++n) {
        int equal = 0;
        while (equal < n && !layouts_equal(t, equal, n)) ++equal;
        layout[n] = equal < n ? layout[equal] : (*count)++;
    }
    return layout;
}

/* Returns all CPUs of a node: the union of the CPUs of its parts. */
static cpu_set_t all_cpus(const Hardware *h)
{
    cpu_set_t all;
    CPU_ZERO(&all);
    for (int i = 0; i < h->part_count; ++i) CPU_OR(&all, &all, &h->part[i].cpus);
    return all;
}

/* Lists ranks of a node. If `cpus` is NULL, lists the ranks that may use all CPUs of the node.
 * Otherwise, lists the ranks that may use a CPU of the set, but not all CPUs of the node. If there
 * are more than `most` ranks, lists the first `most` and then "...". The list is empty if the
 * node's hardware is not described. */
static char *list_ranks(const Topology *t, int node, const cpu_set_t *cpus, int most)
{
    const Hardware *h = topo_hardware(t, node);
    char *list = mem_text("");
    if (!h) return list;
    cpu_set_t all = all_cpus(h), mine, both;
    int listed = 0;
    for (int r = next_rank(t, node, 0); r < t->ranks; r = next_rank(t, node, r + 1)) {
        if (!cpus_read(t->cpus[r], &mine)) continue;
        bool is_unbound = cpus_inside(&all, &mine);
        if (is_unbound != (cpus == NULL)) continue;
        if (cpus) CPU_AND(&both, &mine, cpus);
        if (cpus && CPU_COUNT(&both) == 0) continue;
        char *longer = listed < most ? mem_format("%s%s%d", list, *list ? " " : "", r)
                                     : mem_format("%s ...", list);
        mem_free(&list);
        list = longer;
        if (listed++ == most) break;
    }
    return list;
}

char *topo_ranks_on(const Topology *t, int node, const cpu_set_t *cpus, int most)
{
    return list_ranks(t, node, cpus, most);
}

char *topo_ranks_unbound(const Topology *t, int node, int most)
{
    return list_ranks(t, node, NULL, most);
}

char *memory_text(int64_t bytes, char *out)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
    enum { OUT_BYTES = 16, UNITS = sizeof units / sizeof *units };
    double value = (double)bytes;
    int unit = 0;
    for (; value >= 999.5 && unit + 1 < UNITS; ++unit) value /= 1024;
    snprintf(out, OUT_BYTES, "%.3g %s", value, units[unit]);
    return out;
}

bool hardware_is_core(const Hardware *h, int part, int *core, int64_t *l2_bytes)
{
    *core = part;
    *l2_bytes = 0;
    if (h->part[part].kind == PART_CORE) return true;
    if (h->part[part].kind != PART_L2) return false;
    *core = hardware_next(h, part, part + 1);
    *l2_bytes = h->part[part].bytes;
    return *core >= 0 && h->part[*core].kind == PART_CORE && hardware_next(h, part, *core + 1) < 0;
}
