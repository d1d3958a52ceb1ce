/* Finds the channels that can only be removed together. Every layer that introduces channels has
 * one element for each; a node's map gives the element of each channel of its output:
 *
 *     conv1      0 1 2 3
 *     conv2      4 5 6 7         add(conv1, conv2): 0=4 1=5 2=6 3=7
 *     concat     0 1 2 3 4 5 6 7
 *     flatten    0 0 0 1 1 1 ... with three pixels
 *
 * Elements that are united form a unit. The units of one layer, and all units of layers that share
 * one with it, form a group. */
#include "build.h"
#include "model/units.h"

#include <fnmatch.h>
#include <string.h>

enum { CALLER = -1 };

typedef struct Finder {
    Units *to;
    const Graph *graph;
    /* Parents in two disjoint-set forests over elements, whose sets are units and groups; the root
     * is the smallest element; owned. */
    int *unit, *group;
    /* for each root of `group`: index + 1 of the node that needs the group's channels unchanged; 0:
     * none, -1: the caller; owned */
    int *needed_by;
    int elements;
} Finder;

static int root_of(int *parent, int i)
{
    while (parent[i] != i) i = parent[i] = parent[parent[i]];
    return i;
}

static void unite(int *parent, int a, int b)
{
    a = root_of(parent, a);
    b = root_of(parent, b);
    if (a < b)
        parent[b] = a;
    else
        parent[a] = b;
}

static int *map_of(const Finder *f, int node)
{
    return f->to->unit[node + 1];
}

/* Adds one new element for each channel. */
static void open_channels(Finder *f, int node)
{
    int64_t n = graph_channels(f->graph, node);
    size_t bytes = (size_t)(f->elements + n) * sizeof(int);
    f->unit = mem_resize(f->unit, bytes);
    f->group = mem_resize(f->group, bytes);
    for (int64_t c = 0; c < n; ++c) {
        int e = f->elements + (int)c;
        map_of(f, node)[c] = f->unit[e] = e;
        f->group[e] = f->elements;
    }
    f->elements += (int)n;
}

static void same_unit(Finder *f, int a, int b)
{
    unite(f->unit, a, b);
    unite(f->group, a, b);
}

static void keep_map(Finder *f, int node)
{
    const Node *n = &f->graph->node[node];
    int64_t count = graph_channels(f->graph, node);
    memcpy(map_of(f, node), map_of(f, n->in[0]), (size_t)count * sizeof(int));
    for (int k = 1; k < n->spec.x_count; ++k)
        for (int64_t c = 0; c < count; ++c)
            same_unit(f, map_of(f, node)[c], map_of(f, n->in[k])[c]);
}

static void concat_map(Finder *f, int node)
{
    const Node *n = &f->graph->node[node];
    int *to = map_of(f, node);
    for (int k = 0; k < n->spec.x_count; ++k) {
        int64_t count = graph_channels(f->graph, n->in[k]);
        memcpy(to, map_of(f, n->in[k]), (size_t)count * sizeof(int));
        to += count;
    }
}

/* In (N,C,H,W) the pixels of a channel are adjacent, in (N,T,C) the channels of a token. */
static void flatten_map(Finder *f, int node)
{
    const int in = f->graph->node[node].in[0];
    const int *from = map_of(f, in);
    Shape x = graph_output(f->graph, in).shape;
    int64_t count = graph_channels(f->graph, node), in_count = graph_channels(f->graph, in);
    for (int64_t c = 0; c < count; ++c)
        map_of(f, node)[c] = from[x.ndim == 3 ? c % in_count : c / (count / in_count)];
}

static void halves_map(Finder *f, int node)
{
    const int *from = map_of(f, f->graph->node[node].in[0]);
    int64_t count = graph_channels(f->graph, node);
    for (int64_t c = 0; c < count; ++c) {
        same_unit(f, from[c], from[count + c]);
        map_of(f, node)[c] = from[c];
    }
}

static void make_map(Finder *f, int node)
{
    const Node *n = &f->graph->node[node];
    switch (n->kind->channels) {
    case CHANNELS_KEEP:
    case CHANNELS_UNITE:
        keep_map(f, node);
        break;
    case CHANNELS_CONCAT:
        concat_map(f, node);
        break;
    case CHANNELS_FLATTEN:
        flatten_map(f, node);
        break;
    case CHANNELS_HALVES:
        halves_map(f, node);
        break;
    case CHANNELS_OPEN:
        if (node_is_depthwise(n)) {
            keep_map(f, node);
            break;
        }
        open_channels(f, node);
        break;
    case CHANNELS_WHOLE:
    case CHANNELS_UNSET:
        open_channels(f, node);
    }
}

/* ---- groups that stay unchanged ---- */

static void keep_group(Finder *f, int node, int holder)
{
    int64_t count = graph_channels(f->graph, node);
    for (int64_t c = 0; c < count; ++c) {
        int *needed_by = &f->needed_by[root_of(f->group, map_of(f, node)[c])];
        if (*needed_by == 0) *needed_by = holder == CALLER ? -1 : holder + 1;
    }
}

static void keep_layer(Finder *f, int node)
{
    keep_group(f, node, node);
    for (int k = 0; k < f->graph->node[node].spec.x_count; ++k)
        keep_group(f, f->graph->node[node].in[k], node);
}

static Status keep_requested(Finder *f, const char *const *keep, int keep_count)
{
    const Graph *g = f->graph;
    for (int k = 0; k < keep_count; ++k) {
        bool matched = false;
        for (int i = 0; i < g->node_count; ++i) {
            if (fnmatch(keep[k], g->node[i].name, 0) != 0) continue;
            matched = true;
            keep_group(f, i, CALLER);
        }
        if (!matched)
            return fail(ERR_USAGE, "--keep %s: matches no layer; `weft plan` lists them", keep[k]);
    }
    return OK;
}

/* Keeps the data, the channels of layers that need them all, and the channels of layers with a tied
 * parameter. */
static void keep_required(Finder *f)
{
    const Graph *g = f->graph;
    for (int i = 0; i < g->node_count; ++i) {
        for (int k = 0; k < g->node[i].spec.x_count; ++k)
            if (g->node[i].in[k] == NODE_INPUT) keep_group(f, NODE_INPUT, i);
        if (g->node[i].kind->channels == CHANNELS_WHOLE) keep_layer(f, i);
    }
    for (int i = 0; i < g->param_count; ++i) {
        if (g->param[i].tied < 0) continue;
        keep_layer(f, g->param[i].node);
        keep_layer(f, g->param[g->param[i].tied].node);
    }
}

/* ---- numbering units and groups ---- */

/* Numbers the groups in the order of their first elements; number[e]: the group of element e. */
static void number_groups(Finder *f, int *number)
{
    Units *c = f->to;
    for (int e = 0; e < f->elements; ++e)
        if (root_of(f->group, e) == e) number[e] = c->group_count++;
    c->group = mem_new((size_t)(c->group_count + 1) * sizeof *c->group);
    for (int e = 0; e < f->elements; ++e) {
        int root = root_of(f->group, e);
        UnitGroup *group = &c->group[number[e] = number[root]];
        group->parts = 1;
        group->whole = f->needed_by[root] != 0;
        group->holder = f->needed_by[root] - 1;
        if (f->needed_by[root] < 0) group->holder = CALLER;
        if (root_of(f->unit, e) == e) ++group->count;
    }
    for (int i = 1; i < c->group_count; ++i)
        c->group[i].first = c->group[i - 1].first + c->group[i - 1].count;
}

static void number_units(Finder *f)
{
    Units *c = f->to;
    int *number = mem_new((size_t)(f->elements + 1) * sizeof *number);
    int *unit = mem_new((size_t)(f->elements + 1) * sizeof *unit);
    number_groups(f, number);
    int *next = mem_new((size_t)(c->group_count + 1) * sizeof *next);
    c->group_of = mem_new((size_t)(f->elements + 1) * sizeof *c->group_of);
    for (int e = 0; e < f->elements; ++e) {
        int root = root_of(f->unit, e), group = number[e];
        if (root == e) {
            unit[e] = c->group[group].first + next[group]++;
            c->group_of[unit[e]] = group;
            ++c->unit_count;
        }
        unit[e] = unit[root];
    }
    for (int i = NODE_INPUT; i < f->graph->node_count; ++i)
        for (int64_t k = 0; k < graph_channels(f->graph, i); ++k)
            map_of(f, i)[k] = unit[map_of(f, i)[k]];
    mem_free(&next);
    mem_free(&unit);
    mem_free(&number);
}

static void list_layers(Units *c)
{
    const Graph *g = c->graph;
    for (int i = 0; i < g->node_count; ++i) {
        if (!node_opens(&g->node[i])) continue;
        UnitGroup *group = &c->group[c->group_of[c->unit[i + 1][0]]];
        group->layer =
            mem_resize(group->layer, (size_t)(group->layer_count + 1) * sizeof *group->layer);
        group->layer[group->layer_count++] = i;
    }
}

static int common_multiple(int a, int b)
{
    int x = a, y = b;
    while (y) {
        int rest = x % y;
        x = y;
        y = rest;
    }
    return a / x * b;
}

/* The node's output has equal parts. If its group does not consist of exactly these channels in
 * this order, all their groups stay unchanged. */
static void divide(Units *c, int node, int parts, int by)
{
    const int *unit = c->unit[node + 1];
    int64_t count = graph_channels(c->graph, node);
    UnitGroup *group = &c->group[c->group_of[unit[0]]];
    bool same = count == group->count;
    for (int64_t k = 0; same && k < count; ++k) same = unit[k] == group->first + k;
    group->parts = common_multiple(group->parts, parts);
    group->divider = by;
    if ((same && count % group->parts == 0) || group->whole) return;
    for (int64_t k = 0; k < count; ++k) {
        UnitGroup *one = &c->group[c->group_of[unit[k]]];
        if (!one->whole) one->holder = by;
        one->whole = true;
    }
}

static void divide_all(Units *c)
{
    const Graph *g = c->graph;
    for (int i = 0; i < g->node_count; ++i) {
        const Node *node = &g->node[i];
        LayerChannels how = node->kind->channels;
        if (node->spec.groups < 2 || node_groups_single(node)) continue;
        if (how == CHANNELS_OPEN || how == CHANNELS_KEEP) divide(c, i, node->spec.groups, i);
        if (how == CHANNELS_OPEN) divide(c, node->in[0], node->spec.groups, i);
    }
}

Status units_new(Units **units, const Graph *graph, const char *const *keep, int keep_count)
{
    Units *c = *units = mem_new(sizeof *c);
    Finder f = {.to = c, .graph = graph};
    c->graph = graph;
    c->unit = mem_new((size_t)(graph->node_count + 1) * sizeof *c->unit);
    for (int i = NODE_INPUT; i < graph->node_count; ++i)
        c->unit[i + 1] = mem_new((size_t)graph_channels(graph, i) * sizeof(int));
    open_channels(&f, NODE_INPUT);
    for (int i = 0; i < graph->node_count; ++i) make_map(&f, i);
    f.needed_by = mem_new((size_t)(f.elements + 1) * sizeof *f.needed_by);
    keep_required(&f);
    Status status = keep_requested(&f, keep, keep_count);
    if (status == OK) {
        number_units(&f);
        list_layers(c);
        divide_all(c);
    }
    mem_free(&f.unit);
    mem_free(&f.group);
    mem_free(&f.needed_by);
    if (status != OK) units_free(units);
    return status;
}

void units_free(Units **units)
{
    Units *c = *units;
    if (!c) return;
    for (int i = 0; i <= c->graph->node_count; ++i) mem_free(&c->unit[i]);
    for (int i = 0; i < c->group_count; ++i) mem_free(&c->group[i].layer);
    mem_free(&c->unit);
    mem_free(&c->group);
    mem_free(&c->group_of);
    mem_free(units);
}
