/* Private header of the model module: functions that add nodes one by one, passes over a graph, and
 * helpers of the models in the zoo. */
#ifndef WEFT_MODEL_BUILD_H
#define WEFT_MODEL_BUILD_H

#include "model.h"

/* A node before its shape rule has run. layer_set_attr sets its attributes, in spec and size. */
typedef struct Draft {
    const LayerKind *kind;
    /* borrowed */
    const char *name;
    OpSpec spec;
    LayerSize size;
    /* indexes of earlier nodes, or NODE_INPUT */
    int in[SPEC_INPUTS];
} Draft;

/* Begins a draft: checks the name and the number of inputs, and sets the inputs' shapes and the
 * kind's defaults. */
Status draft_begin(const Graph *graph, Draft *draft, const LayerKind *kind, const char *name,
                   const int *in, int in_count);
/* Runs the shape rule and appends the node, its parameters and its tables. If the kind needs a
 * layer before it (LayerKind.inserted_before), appends that layer first. *index: the node's
 * index. */
Status draft_finish(Graph *graph, Draft *draft, int *index);

/* ---- rollout.c ---- */
/* A function that adds the model's layers, from NODE_INPUT to the model's only output. *output:
 * index of that output's node. */
typedef Status (*StepAdd)(Graph *graph, const Config *config, int *output);
/* Calls `add` once for each step, and adds the nodes that connect the steps. *all_steps_node: index
 * of the node that concatenates the outputs of all steps (z in GraphRollout) along the channels. */
Status graph_add_steps(Graph *graph, const Config *config, const GraphRollout *rollout, StepAdd add,
                       int *all_steps_node);

/* Adds a channel_sum layer with `count` sums. node: array of length `nodes`; each entry is the
 * index of a node, or NODE_INPUT for the data. ChannelTerm.input is an index into this array. Nodes
 * that no term reads do not become inputs of the layer. Returns the new node's index, or
 * GRAPH_FAILED. */
int graph_add_sums(Graph *graph, const char *name, const ChannelSum *sum, int count,
                   const int *node, int nodes);

/* ---- node_names.c ---- */
/* Returns the index of the first node with this name, or GRAPH_FAILED. node: the graph's array of
 * nodes (Graph.node). */
int names_find(const NodeNames *names, const Node *node, const char *name);
/* Adds the name of node[index], unless an earlier node has the same name. node: the graph's array
 * of nodes (Graph.node). */
void names_add(NodeNames *names, const Node *node, int index);
void names_fini(NodeNames *names);
/* Rebuilds graph->names after nodes have moved. */
void graph_index_names(Graph *graph);

/* ---- graph.c, freeze.c ---- */
/* Returns the index of the node with this name, or GRAPH_FAILED. While a step of a rollout is
 * added, Graph.prefix is put before the name. */
int graph_find(const Graph *graph, const char *name);
bool graph_name_taken(const Graph *graph, const char *name);
/* Returns the description of a node's output. For NODE_INPUT it is that of the data or, while a
 * step of a rollout is added, that of the node that replaces the data (Graph.source). */
Desc graph_output(const Graph *graph, int node);
/* Returns the number of channels of the output that graph_output describes. */
int64_t graph_channels(const Graph *graph, int node);
/* Sets uses[i] to the number of times that nodes read the output of node i. A node that reads it
 * through two inputs counts twice. */
void graph_count_uses(const Graph *graph, int *uses);
/* Freezes the parameters and tables that model.freeze names. ERR_CONFIG if a pattern matches
 * nothing. */
Status graph_freeze(Graph *graph, const Config *config);
/* Sets need_dx, frozen and x_shared of every node's spec. */
void graph_set_need_dx(Graph *graph);
/* Returns the number of multiply-adds of forward for one micro-batch; 0 if OpInfo does not count
 * them for this operation. */
double node_macs(const Node *node);
/* Returns the facts about the node's operation. */
static inline const OpInfo *node_info(const Node *node)
{
    return op_info(node->spec.kind);
}

/* Returns whether the layer has more than one channel, each channel is a group of its own, and the
 * layer has as many channels as its input: a depthwise convolution, or a group norm with one
 * channel per group. */
static inline bool node_has_single_groups(const Node *node)
{
    const OpSpec *s = &node->spec;
    return node->kind &&
           (node->kind->channels == CHANNELS_NEW || node->kind->channels == CHANNELS_KEEP) &&
           s->groups > 1 && s->groups == s->x[0].shape.dim[1] && s->groups == s->y.shape.dim[1];
}

/* Returns whether the node is a depthwise convolution with as many channels as its input. */
static inline bool node_is_depthwise(const Node *node)
{
    return node_has_single_groups(node) && node->kind->channels == CHANNELS_NEW;
}

/* Returns whether an attribute of the layer itself, not another layer, decides how many output
 * channels it has. */
static inline bool node_has_own_width(const Node *node)
{
    return node->kind && node->kind->channels == CHANNELS_NEW && !node_is_depthwise(node);
}

/* Sets the channels of the layers that model.widths names, and the shapes of all layers after them
 * (widths.c). No layers are added or removed. ERR_CONFIG if model.widths names a layer that does
 * not exist or whose channels another layer decides, or if shapes no longer fit. */
Status graph_set_widths(Graph *graph, const Config *config);

/* Adds the layers of config->model.layer in their order (layer_list.c). *last: index of the last
 * node. Errors name file and line of the configuration. */
Status graph_add_list(Graph *graph, const Config *config, int *last);

/* ---- helpers of the models in the zoo (zoo.c) ---- */
/* In these functions x is the index of the node that gives the input. Functions that add layers
 * return the index of the last new node, or GRAPH_FAILED. */
/* Adds dropout with the probability model.dropout, or default_value if that key is not set. Returns
 * x itself if the probability is 0. */
int zoo_dropout(Graph *graph, const Config *config, const char *name, int x, double default_value);
/* Adds a dense layer whose initial weights are N(0, 1/fan_in). */
int zoo_dense(Graph *graph, const char *name, int x, int64_t width);
/* Adds for each width i a layer NAME.i with zoo_dense, a relu NAME.i.relu and, if model.dropout is
 * above 0, a dropout NAME.i.dropout. */
int zoo_hidden(Graph *graph, const Config *config, const char *name, int x,
               const ConfigList *widths);
/* Adds a bag of all fields of the data, with one more attribute, `key` = `value`. Its tables have
 * model.vocab rows, to which ids are hashed unless all ids are known to be below model.vocab.
 * Without model.vocab the tables have a row for each possible id. If the number of possible ids is
 * unknown or above INT32_MAX, they have a row for each id that occurs instead. */
int zoo_bag(Graph *graph, const Config *config, const char *name, int64_t width, const char *key,
            const char *value);
/* zoo_number and zoo_real write a number to `out`, as the text of an attribute for graph_add, and
 * return `out`. */
enum { ZOO_NUMBER = 32 };
char *zoo_number(int64_t n, char out[ZOO_NUMBER]);
char *zoo_real(double value, char out[ZOO_NUMBER]);

#endif
