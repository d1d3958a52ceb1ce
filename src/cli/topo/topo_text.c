/* Prints a topology as text for people: the ranks of each node, the hardware, and the links. The
 * hardware is printed once for each layout (topo/layout.h), with the ranks of the layout's first
 * node. */
#include "topo/layout.h"
#include "topo_cli.h"

#include <string.h>

enum {
    /* largest number of ranks that are listed on a part of the hardware */
    RANKS_LISTED = 16,
    /* largest number of nodes that are listed for a layout */
    NODES_LISTED = 8,
    /* largest number of slow nodes, and of slow pairs of ranks, that are listed */
    PAIRS_LISTED = 10,
    /* size of a list of CPUs as text, in bytes */
    CPUS_SHOWN_BYTES = 200
};

static void print_nodes(const Topology *t)
{
    printf("%d rank%s on %d node%s\n", t->ranks, t->ranks == 1 ? "" : "s", t->nodes,
           t->nodes == 1 ? "" : "s");
    for (int n = 0; n < t->nodes; ++n) {
        const char *comma = ":";
        printf("  %s", t->host[n]);
        if (t->switches && *t->switches[n]) printf(" (switches %s)", t->switches[n]);
        for (int r = 0; r < t->ranks; ++r) {
            if (t->node[r] != n) continue;
            printf("%s rank %d (CPUs %s)", comma, r, t->cpus[r]);
            comma = ",";
        }
        printf("\n");
    }
}

/* Prints the ranks that run on these CPUs of a node, if there are any. */
static void print_ranks(const Topology *t, int node, const cpu_set_t *cpus)
{
    char *ranks = topo_ranks_on(t, node, cpus, RANKS_LISTED);
    if (*ranks) printf(": rank%s %s", strchr(ranks, ' ') ? "s" : "", ranks);
    mem_free(&ranks);
}

static void print_size(const char *name, int64_t bytes)
{
    char text[16];
    printf("%s %s", name, memory_text(bytes, text));
}

/* Prints one line for as many cores as possible, beginning with part `first`. The cores follow each
 * other inside the same parent, and have consecutive numbers, the same ranks, and L2 caches of
 * equal size. Returns the index of the next part inside the parent, or -1. */
static int print_cores(const Topology *t, int node, const Hardware *h, int first)
{
    char text[CPUS_SHOWN_BYTES];
    int core, next = first, count = 0, last = 0;
    int64_t l2_bytes, l2_first;
    cpu_set_t cpus;
    hardware_is_core(h, first, &core, &l2_first);
    int begin = core;
    CPU_ZERO(&cpus);
    char *ranks = topo_ranks_on(t, node, &h->part[begin].cpus, t->ranks);
    for (; next >= 0; next = hardware_next(h, h->part[first].parent, next + 1)) {
        if (!hardware_is_core(h, next, &core, &l2_bytes) || l2_bytes != l2_first) break;
        char *others = topo_ranks_on(t, node, &h->part[core].cpus, t->ranks);
        bool equal = strcmp(ranks, others) == 0;
        mem_free(&others);
        if (!equal || (count > 0 && h->part[core].number != h->part[last].number + 1)) break;
        CPU_OR(&cpus, &cpus, &h->part[core].cpus);
        last = core;
        ++count;
    }
    printf("%*score%s %d", 2 * h->part[first].depth + 4, "", count > 1 ? "s" : "",
           h->part[begin].number);
    if (count > 1) printf("-%d", h->part[last].number);
    printf(" (CPUs %s)", cpus_write(text, sizeof text, &cpus));
    if (l2_first) print_size(count > 1 ? ", each with L2" : ", L2", l2_first);
    print_ranks(t, node, &cpus);
    printf("\n");
    mem_free(&ranks);
    return next;
}

static void print_part(const Hardware *h, int index)
{
    const Part *part = &h->part[index];
    char text[CPUS_SHOWN_BYTES];
    printf("%*s", 2 * part->depth + 4, "");
    if (part->kind == PART_PACKAGE) printf("socket %d", part->number);
    if (part->kind == PART_NUMA) printf("NUMA node %d,", part->number);
    if (part->kind == PART_NUMA) print_size("", part->bytes);
    if (part->kind == PART_L3) print_size("L3", part->bytes);
    if (part->kind == PART_L2) print_size("L2", part->bytes);
    printf(" (CPUs %s)\n", cpus_write(text, sizeof text, &part->cpus));
}

/* Prints all parts of a node's hardware that are inside part `parent` (-1: inside the node). */
static void print_inside(const Topology *t, int node, const Hardware *h, int parent)
{
    for (int i = hardware_next(h, parent, 0); i >= 0;) {
        int core;
        int64_t l2_bytes;
        if (hardware_is_core(h, i, &core, &l2_bytes)) {
            i = print_cores(t, node, h, i);
            continue;
        }
        print_part(h, i);
        print_inside(t, node, h, i);
        i = hardware_next(h, parent, i + 1);
    }
}

static void print_numa(int numa)
{
    if (numa >= 0) printf(", NUMA node %d", numa);
}

static void print_cards(const Hardware *h)
{
    for (int i = 0; i < h->card_count; ++i) {
        const Card *card = &h->card[i];
        printf("    network card %s: %s", card->name, card->up ? "up" : "down");
        if (card->bytes_per_s > 0)
            printf(", %.3g Gbit/s", 8e-9 * card->bytes_per_s);
        else
            printf(", speed not known");
        print_numa(card->numa);
        printf("\n");
    }
}

/* Prints the GPUs, and a table with the kind of connection between any two GPUs, and between GPUs
 * and network cards. */
static void print_gpus(const Hardware *h)
{
    for (int i = 0; i < h->gpu_count; ++i) {
        printf("    GPU %d: %s, %s", i, h->gpu[i].name, h->gpu[i].bus);
        print_numa(h->gpu[i].numa);
        printf("\n");
    }
    if (h->note && *h->note) printf("    %s\n", h->note);
    if (h->gpu_count == 0 || h->gpu_count + h->card_count < 2) return;
    printf("    %-12s", "");
    for (int k = 0; k < h->gpu_count; ++k) printf(" %*s%d", k < 10 ? 5 : 4, "GPU", k);
    printf("\n");
    for (int i = 0; i < h->gpu_count; ++i) {
        printf("    GPU%-9d", i);
        for (int k = 0; k < h->gpu_count; ++k) printf(" %6s", h->gpu[i].gpu_link[k]);
        printf("\n");
    }
    for (int i = 0; i < h->card_count; ++i) {
        printf("    %-12s", h->card[i].name);
        for (int k = 0; k < h->gpu_count; ++k) {
            const char *link = h->gpu[k].card_link[i];
            printf(" %6s", *link ? link : "-");
        }
        printf("\n");
    }
}

/* Prints the nodes that have a layout, the hardware, and the ranks of the first such node. layout:
 * number of the layout of each node. number: the layout that is printed. */
static void print_layout(const Topology *t, const int *layout, int number)
{
    int first = 0;
    TextList list;
    text_list_begin(&list, NODES_LISTED);
    while (layout[first] != number) ++first;
    for (int n = first; n < t->nodes; ++n)
        if (layout[n] == number) text_list_add(&list, t->host[n]);
    int nodes = list.count;
    char *names = text_list_end(&list);
    const Hardware *h = topo_hardware(t, first);
    printf("\n%s", names);
    mem_free(&names);
    if (!h) {
        printf(": hardware not described\n");
        return;
    }
    printf("%s%s", *h->cpu ? ": " : "", h->cpu);
    if (nodes > 1 && t->ranks > 0) printf("; ranks of %s", t->host[first]);
    printf("\n");
    char *ranks = topo_ranks_unbound(t, first, RANKS_LISTED);
    if (*ranks) printf("    on all CPUs: rank%s %s\n", strchr(ranks, ' ') ? "s" : "", ranks);
    mem_free(&ranks);
    print_inside(t, first, h, -1);
    print_cards(h);
    print_gpus(h);
}

static void print_layouts(const Topology *t)
{
    int count, *layout = topo_layouts(t, &count);
    for (int i = 0; i < count; ++i) print_layout(t, layout, i);
    mem_free(&layout);
}

static void print_matrix(const Topology *t, const char *title, const double *matrix, double scale)
{
    printf("\n%s\n     ", title);
    for (int b = 0; b < t->ranks; ++b) printf(" %8d", b);
    printf("\n");
    for (int a = 0; a < t->ranks; ++a) {
        printf("%5d", a);
        for (int b = 0; b < t->ranks; ++b) {
            double value = matrix[(int64_t)a * t->ranks + b];
            if (a == b)
                printf(" %8s", "-");
            else
                printf(" %8.3g", scale * value);
        }
        printf("\n");
    }
}

/* Prints a line for each class of links, such as those inside a node. */
static void print_classes(const Topology *t)
{
    LinkSummary summary[LINK_CLASS_COUNT];
    topo_summarize(t, summary);
    printf("\n%-18s %9s %11s %12s %21s %14s\n", "links", "pairs", "latency us", "alone GB/s",
           "least to most", "together GB/s");
    for (int i = 0; i < LINK_CLASS_COUNT; ++i) {
        const LinkSummary *s = &summary[i];
        if (s->pairs == 0) continue;
        printf("%-18s %9d %11.3g %12.3g %10.3g %10.3g %14.3g\n", link_class_name((LinkClass)i),
               s->pairs, 1e6 * s->latency_s, 1e-9 * s->bytes_per_s, 1e-9 * s->bytes_per_s_min,
               1e-9 * s->bytes_per_s_max, 1e-9 * s->together_bytes_per_s);
    }
}

static void print_slow_nodes(const Topology *t)
{
    SlowNode *node;
    int count = topo_slow_nodes(t, &node);
    for (int i = 0; i < count && i < PAIRS_LISTED; ++i)
        printf("%s%s: fastest link to another node %.3g GB/s, the median of nodes is %.3g\n",
               i == 0 ? "\nslow nodes\n  " : "  ", t->host[node[i].node],
               1e-9 * node[i].bytes_per_s, 1e-9 * node[i].nodes_median);
    if (count > PAIRS_LISTED) printf("  and %d more\n", count - PAIRS_LISTED);
    mem_free(&node);
}

static void print_slow_pairs(const Topology *t)
{
    SlowPair *pair;
    int count = topo_slow_pairs(t, &pair);
    for (int i = 0; i < count && i < PAIRS_LISTED; ++i)
        printf("%srank %d on %s and rank %d on %s: %.3g GB/s, the median of pairs %s is %.3g\n",
               i == 0 ? "\nslow links\n  " : "  ", pair[i].a, t->host[t->node[pair[i].a]],
               pair[i].b, t->host[t->node[pair[i].b]], 1e-9 * pair[i].bytes_per_s,
               link_class_name(pair[i].class), 1e-9 * pair[i].class_median);
    if (count > PAIRS_LISTED) printf("  and %d more\n", count - PAIRS_LISTED);
    mem_free(&pair);
}

void topo_print_text(const Topology *t)
{
    if (t->ranks > 0) print_nodes(t);
    print_layouts(t);
    if (t->ranks == 1) printf("\none rank has no links; to measure some: -n RANKS, or srun\n");
    if (t->ranks < 2) return;
    if (!t->bytes_per_s) {
        printf("\nlinks not measured\n");
        return;
    }
    if (t->ranks <= MATRIX_RANKS_MAX) {
        print_matrix(t, "latency of a small message, us", t->latency_s, 1e6);
        print_matrix(t, "rate of a pair alone, in each direction, GB/s", t->bytes_per_s, 1e-9);
        print_matrix(t, "rate while all ranks send, GB/s", t->together_bytes_per_s, 1e-9);
    }
    print_classes(t);
    print_slow_nodes(t);
    print_slow_pairs(t);
}
