/* Compares the model of the configuration in a checkpoint with the run's model. Fails if both have
 * the same tensors but compute different results from them: another number of heads, another stride
 * or activation, other inputs. Layers are matched by name, or, if a layer without tensors has
 * another name, by kind and inputs. Layers with tensors that only one model has are left to
 * checkpoint_load, which names their missing or surplus tensors; if there are any, inputs are not
 * compared. Dropout is ignored, because evaluation does not have it. */
#include "checkpoint.h"
#include "model.h"

#include <string.h>

enum { DIFFERENCES_LISTED_MAX = 20, NO_MATCH = -2 };

/* The models that are compared: the run's, and the checkpoint's. */
typedef struct Comparison {
    const Graph *ours, *theirs;
    /* for each node of ours its counterpart in theirs, or NO_MATCH; owned */
    int *match;
    /* for each node of theirs: true if it is a counterpart; owned */
    bool *matched;
    TextList list;
} Comparison;

static void add_difference(Comparison *c, char *text)
{
    text_list_add(&c->list, text);
    mem_free(&text);
}

static int find_node(const Graph *graph, const char *name)
{
    for (int i = 0; i < graph->node_count; ++i)
        if (strcmp(graph->node[i].name, name) == 0) return i;
    return NO_MATCH;
}

/* Returns true if the node only copies its input in an evaluation: dropout, the only operation that
 * reads the indexes of samples. */
static bool is_copied(const Node *node)
{
    return op_info(node->kind->op)->reads == READS_SAMPLES;
}

/* Returns the node, or NODE_INPUT, that input i of `node` reads; dropout in between is skipped. */
static int read_node(const Graph *graph, const Node *node, int i)
{
    int in = node->in[i];
    while (in != NODE_INPUT && is_copied(&graph->node[in])) in = graph->node[in].in[0];
    return in;
}

static const char *node_name(const Graph *graph, int node)
{
    return node == NODE_INPUT ? "data" : graph->node[node].name;
}

/* Returns true if input i of our node a and input k of their node b are counterparts. */
static bool same_input(const Comparison *c, const Node *a, int i, const Node *b, int k)
{
    const int ours = read_node(c->ours, a, i), theirs = read_node(c->theirs, b, k);
    return ours == NODE_INPUT ? theirs == NODE_INPUT : c->match[ours] == theirs;
}

/* Returns the index of the first input of a without a counterpart in b, or -1. If the layer adds
 * its inputs up (CHANNELS_UNITE), their order has no effect. */
static int find_other_input(const Comparison *c, const Node *a, const Node *b)
{
    const bool any_order = a->kind->channels == CHANNELS_UNITE;
    for (int i = 0; i < a->spec.x_count; ++i) {
        bool same = same_input(c, a, i, b, i);
        for (int k = 0; any_order && !same && k < b->spec.x_count; ++k)
            same = same_input(c, a, i, b, k);
        if (!same) return i;
    }
    return -1;
}

/* Returns the counterpart of our node a, which has no tensors and a name that is not in theirs: an
 * unmatched node of the same kind with the same inputs. NO_MATCH: none. */
static int find_alike(const Comparison *c, const Node *a)
{
    for (int k = 0; k < c->theirs->node_count; ++k) {
        const Node *b = &c->theirs->node[k];
        if (!c->matched[k] && b->kind == a->kind && b->spec.x_count == a->spec.x_count &&
            find_other_input(c, a, b) < 0)
            return k;
    }
    return NO_MATCH;
}

static void match_nodes(Comparison *c)
{
    for (int i = 0; i < c->ours->node_count; ++i) {
        c->match[i] = find_node(c->theirs, c->ours->node[i].name);
        if (c->match[i] != NO_MATCH) c->matched[c->match[i]] = true;
    }
    for (int i = 0; i < c->ours->node_count; ++i) {
        if (c->match[i] != NO_MATCH || op_has_values(&c->ours->node[i].spec)) continue;
        c->match[i] = find_alike(c, &c->ours->node[i]);
        if (c->match[i] != NO_MATCH) c->matched[c->match[i]] = true;
    }
}

/* Returns true if each layer with tensors has a counterpart. */
static bool tensors_match(const Comparison *c)
{
    for (int i = 0; i < c->ours->node_count; ++i)
        if (c->match[i] == NO_MATCH && op_has_values(&c->ours->node[i].spec)) return false;
    for (int k = 0; k < c->theirs->node_count; ++k)
        if (!c->matched[k] && op_has_values(&c->theirs->node[k].spec)) return false;
    return true;
}

static void compare_inputs(Comparison *c, const Node *a, const Node *b)
{
    if (a->spec.x_count != b->spec.x_count) {
        add_difference(c, mem_format("%s has %d inputs in this model and %d in the checkpoint",
                                     a->name, a->spec.x_count, b->spec.x_count));
        return;
    }
    const int i = find_other_input(c, a, b);
    if (i < 0) return;
    add_difference(c, mem_format("input %d of %s is %s in this model and %s in the checkpoint",
                                 i + 1, a->name, node_name(c->ours, read_node(c->ours, a, i)),
                                 node_name(c->theirs, read_node(c->theirs, b, i))));
}

static void compare_layers(Comparison *c)
{
    const bool wired = tensors_match(c);
    for (int i = 0; i < c->ours->node_count; ++i) {
        if (c->match[i] == NO_MATCH) continue;
        const Node *a = &c->ours->node[i], *b = &c->theirs->node[c->match[i]];
        const OpSpec *const spec[2] = {&a->spec, &b->spec};
        const LayerSize *const size[2] = {&a->size, &b->size};
        AttrDifference d;
        if (a->kind != b->kind)
            add_difference(c, mem_format("%s is %s in this model and %s in the checkpoint", a->name,
                                         a->kind->name, b->kind->name));
        else if (layer_find_difference(a->kind, spec, size, &d))
            add_difference(c, mem_format("%s of %s is %s in this model and %s in the checkpoint",
                                         d.name, a->name, d.value[0], d.value[1]));
        if (wired && !is_copied(a)) compare_inputs(c, a, b);
    }
}

/* Builds the graph of the checkpoint's configuration with this run's input shape and classes. NULL:
 * the checkpoint has no configuration, or its model cannot be built for this input. Owner: the
 * caller. */
static Graph *build_theirs(const char *path, const CheckpointMeta *meta, const Graph *ours)
{
    Config *config = NULL;
    Graph *graph = NULL;
    if (!meta->config || !*meta->config) return NULL;
    if (config_parse(&config, path, meta->config, 0, NULL) != OK ||
        graph_build_ids(&graph, config, ours->step_input, ours->ids, ours->classes) != OK)
        graph = NULL;
    config_free(&config);
    return graph;
}

Status checkpoint_check_layers(const char *path, const CheckpointMeta *meta, const Config *config,
                               const Graph *model)
{
    Graph *ours = NULL, *theirs = build_theirs(path, meta, model);
    if (!theirs) return OK;
    Status st = graph_build_ids(&ours, config, model->step_input, model->ids, model->classes);
    if (st == OK) {
        Comparison c = {.ours = ours,
                        .theirs = theirs,
                        .match = mem_new((size_t)ours->node_count * sizeof *c.match),
                        .matched = mem_new((size_t)theirs->node_count * sizeof *c.matched)};
        text_list_begin(&c.list, DIFFERENCES_LISTED_MAX);
        match_nodes(&c);
        compare_layers(&c);
        const int count = c.list.count;
        char *text = text_list_end(&c.list);
        if (count)
            st = fail(ERR_DATA,
                      "%s: the checkpoint's model has the same tensors but computes something else "
                      "from them: %s",
                      path, text);
        mem_free(&text);
        mem_free(&c.match);
        mem_free(&c.matched);
    }
    graph_free(&ours);
    graph_free(&theirs);
    return st;
}
