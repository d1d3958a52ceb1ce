/* Finds the channels that can only be removed together. Every channel that a layer introduces is an
 * element. The map of a node is an array with the element of each channel of the node's output:
 *
 *     conv1      0 1 2 3
 *     conv2      4 5 6 7         add(conv1, conv2): 0=4 1=5 2=6 3=7
 *     concat     0 1 2 3 4 5 6 7
 *     flatten    0 0 0 1 1 1 ... with three pixels
 *
 * Elements that are united form a unit. All units of layers that share units form a group. */
#include "build.h"
#include "model/units.h"

#include <fnmatch.h>
#include <string.h>

/* value of Finder.needed_by and UnitGroup.kept_by: the caller asked to keep the channels */
enum { CALLER = -1 };

typedef struct Finder {
    /* the result; its `unit` has the maps until units are numbered; borrowed */
    Units *units;
    /* borrowed */
    const Graph *graph;
    /* parent of each element in a disjoint-set forest whose sets are units; a root is the smallest
     * element of its set; owned */
    int *unit;
    /* parent of each element in a forest of the same form whose sets are groups; owned */
    int *group;
    /* for each root of `group`: index + 1 of the node that needs all channels of the group, 0 if no
     * node does, or CALLER if the caller asked to keep them; owned */
    int *needed_by;
    /* number of elements so far */
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
    return f->units->unit[node + 1];
}

/* Makes the map of a node (or, for NODE_INPUT, of the data) with a new element for each channel;
 * all of them are in one new group. */
static void new_channels(Finder *f, int node)
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

static void unite_elements(Finder *f, int a, int b)
{
    unite(f->unit, a, b);
    unite(f->group, a, b);
}

/* Makes the map of a layer that keeps the channels of its first input. The channels of its other
 * inputs are united with them. */
static void keep_map(Finder *f, int node)
{
    const Node *n = &f->graph->node[node];
    int64_t count = graph_channels(f->graph, node);
    memcpy(map_of(f, node), map_of(f, n->in[0]), (size_t)count * sizeof(int));
    for (int k = 1; k < n->spec.x_count; ++k)
        for (int64_t c = 0; c < count; ++c)
            unite_elements(f, map_of(f, node)[c], map_of(f, n->in[k])[c]);
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

/* Makes the map of flatten. If its input is (N,C,H,W), the values of a channel are adjacent in a
 * sample; if its input is (N,T,C), the values of a token are adjacent. */
static void flatten_map(Finder *f, int node)
{
    const int in = f->graph->node[node].in[0];
    const int *from = map_of(f, in);
    Shape x = graph_output(f->graph, in).shape;
    int64_t count = graph_channels(f->graph, node), in_count = graph_channels(f->graph, in);
    for (int64_t c = 0; c < count; ++c)
        map_of(f, node)[c] = from[x.ndim == 3 ? c % in_count : c / (count / in_count)];
}

/* Makes the map of a layer that computes channel i from channel i of each half of its input. */
static void halves_map(Finder *f, int node)
{
    const int *from = map_of(f, f->graph->node[node].in[0]);
    int64_t count = graph_channels(f->graph, node);
    for (int64_t c = 0; c < count; ++c) {
        unite_elements(f, from[c], from[count + c]);
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
    case CHANNELS_NEW:
        if (node_is_depthwise(n)) {
            keep_map(f, node);
            break;
        }
        new_channels(f, node);
        break;
    case CHANNELS_FIXED:
    case CHANNELS_UNSET:
        new_channels(f, node);
    }
}

/* ---- groups whose channels are all kept ---- */

/* Keeps the groups of a node's output channels, because the node with index `holder` needs them or,
 * if holder is CALLER, because the caller asked to keep them. */
static void keep_group(Finder *f, int node, int holder)
{
    int64_t count = graph_channels(f->graph, node);
    for (int64_t c = 0; c < count; ++c) {
        int *needed_by = &f->needed_by[root_of(f->group, map_of(f, node)[c])];
        if (*needed_by == 0) *needed_by = holder == CALLER ? CALLER : holder + 1;
    }
}

/* Keeps all input and output channels of a node. */
static void keep_layer(Finder *f, int node)
{
    keep_group(f, node, node);
    for (int k = 0; k < f->graph->node[node].spec.x_count; ++k)
        keep_group(f, f->graph->node[node].in[k], node);
}

/* Keeps the output channels of layers whose name matches one of the caller's patterns. ERR_USAGE if
 * a pattern matches no layer. */
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

/* Keeps all channels of the data, of layers that need all their channels, and of layers with a tied
 * parameter. */
static void keep_required(Finder *f)
{
    const Graph *g = f->graph;
    for (int i = 0; i < g->node_count; ++i) {
        for (int k = 0; k < g->node[i].spec.x_count; ++k)
            if (g->node[i].in[k] == NODE_INPUT) keep_group(f, NODE_INPUT, i);
        if (g->node[i].kind->channels == CHANNELS_FIXED) keep_layer(f, i);
    }
    for (int i = 0; i < g->param_count; ++i) {
        if (g->param[i].tied_param < 0) continue;
        keep_layer(f, g->param[i].node);
        keep_layer(f, g->param[g->param[i].tied_param].node);
    }
}

/* ---- numbering units and groups ---- */

/* Numbers the groups in the order of their first elements, and fills them except for their layers.
 * Sets group_of[e] to the group of element e. */
static void number_groups(Finder *f, int *group_of)
{
    Units *units = f->units;
    for (int e = 0; e < f->elements; ++e)
        if (root_of(f->group, e) == e) group_of[e] = units->group_count++;
    units->group = mem_new((size_t)(units->group_count + 1) * sizeof *units->group);
    for (int e = 0; e < f->elements; ++e) {
        int root = root_of(f->group, e);
        UnitGroup *group = &units->group[group_of[e] = group_of[root]];
        group->parts = 1;
        group->is_kept = f->needed_by[root] != 0;
        group->kept_by = f->needed_by[root] - 1;
        if (f->needed_by[root] == CALLER) group->kept_by = CALLER;
        if (root_of(f->unit, e) == e) ++group->count;
    }
    for (int i = 1; i < units->group_count; ++i)
        units->group[i].first = units->group[i - 1].first + units->group[i - 1].count;
}

/* Numbers the units, and replaces elements by units in all maps. */
static void number_units(Finder *f)
{
    Units *units = f->units;
    /* group_of: group of each element; unit: unit of each element; next: number of units of each
     * group so far */
    int *group_of = mem_new((size_t)(f->elements + 1) * sizeof *group_of);
    int *unit = mem_new((size_t)(f->elements + 1) * sizeof *unit);
    number_groups(f, group_of);
    int *next = mem_new((size_t)(units->group_count + 1) * sizeof *next);
    units->group_of = mem_new((size_t)(f->elements + 1) * sizeof *units->group_of);
    for (int e = 0; e < f->elements; ++e) {
        int root = root_of(f->unit, e), group = group_of[e];
        if (root == e) {
            unit[e] = units->group[group].first + next[group]++;
            units->group_of[unit[e]] = group;
            ++units->unit_count;
        }
        unit[e] = unit[root];
    }
    for (int i = NODE_INPUT; i < f->graph->node_count; ++i)
        for (int64_t k = 0; k < graph_channels(f->graph, i); ++k)
            map_of(f, i)[k] = unit[map_of(f, i)[k]];
    mem_free(&next);
    mem_free(&unit);
    mem_free(&group_of);
}

/* Lists in each group the layers that introduce its channels. */
static void list_layers(Units *units)
{
    const Graph *g = units->graph;
    for (int i = 0; i < g->node_count; ++i) {
        if (!node_has_own_width(&g->node[i])) continue;
        UnitGroup *group = &units->group[units->group_of[units_of_channels(units, i)[0]]];
        group->layer =
            mem_resize(group->layer, (size_t)(group->layer_count + 1) * sizeof *group->layer);
        group->layer[group->layer_count++] = i;
    }
}

/* Returns the least common multiple. */
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

/* Records that the node with index `by` needs the channels of `node` in `parts` equal parts. If the
 * group does not consist of exactly these channels in this order, or cannot be divided into equal
 * parts, every group with one of the channels keeps all its units. */
static void divide(Units *units, int node, int parts, int by)
{
    const int *unit = units_of_channels(units, node);
    int64_t count = graph_channels(units->graph, node);
    UnitGroup *group = &units->group[units->group_of[unit[0]]];
    bool same = count == group->count;
    for (int64_t k = 0; same && k < count; ++k) same = unit[k] == group->first + k;
    group->parts = common_multiple(group->parts, parts);
    group->divided_by = by;
    if (same && count % group->parts == 0) return;
    for (int64_t k = 0; k < count; ++k) {
        UnitGroup *touched = &units->group[units->group_of[unit[k]]];
        if (!touched->is_kept) touched->kept_by = by;
        touched->is_kept = true;
    }
}

static void divide_all(Units *units)
{
    const Graph *g = units->graph;
    for (int i = 0; i < g->node_count; ++i) {
        const Node *node = &g->node[i];
        LayerChannels channels = node->kind->channels;
        if (node->spec.groups < 2 || node_has_single_groups(node)) continue;
        if (channels == CHANNELS_NEW || channels == CHANNELS_KEEP)
            divide(units, i, node->spec.groups, i);
        if (channels == CHANNELS_NEW) divide(units, node->in[0], node->spec.groups, i);
    }
}

Status units_new(Units **units, const Graph *graph, const char *const *keep, int keep_count)
{
    Units *u = *units = mem_new(sizeof *u);
    Finder f = {.units = u, .graph = graph};
    u->graph = graph;
    u->unit = mem_new((size_t)(graph->node_count + 1) * sizeof *u->unit);
    for (int i = NODE_INPUT; i < graph->node_count; ++i)
        u->unit[i + 1] = mem_new((size_t)graph_channels(graph, i) * sizeof(int));
    new_channels(&f, NODE_INPUT);
    for (int i = 0; i < graph->node_count; ++i) make_map(&f, i);
    f.needed_by = mem_new((size_t)(f.elements + 1) * sizeof *f.needed_by);
    keep_required(&f);
    Status status = keep_requested(&f, keep, keep_count);
    if (status == OK) {
        number_units(&f);
        list_layers(u);
        divide_all(u);
    }
    mem_free(&f.unit);
    mem_free(&f.group);
    mem_free(&f.needed_by);
    if (status != OK) units_free(units);
    return status;
}

void units_free(Units **units)
{
    Units *u = *units;
    if (!u) return;
    for (int i = 0; i <= u->graph->node_count; ++i) mem_free(&u->unit[i]);
    for (int i = 0; i < u->group_count; ++i) mem_free(&u->group[i].layer);
    mem_free(&u->unit);
    mem_free(&u->group);
    mem_free(&u->group_of);
    mem_free(units);
}
