/* Private header of the model module: adding nodes one by one, passes over a graph, and helpers of
 * the zoo. */
#ifndef WEFT_MODEL_BUILD_H
#define WEFT_MODEL_BUILD_H

#include "model.h"

/* A node whose shape rule has not run yet: its attributes are set on spec and size with
 * layer_set_attr. */
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
/* Runs the shape rule and appends the node and its parameters. If the kind needs a layer before it
 * (LayerKind.before), appends that layer first. *index: the node's index. */
Status draft_finish(Graph *graph, Draft *draft, int *index);

/* rollout.c. Adds a model's layers from NODE_INPUT to its only output, *output. */
typedef Status (*StepAdd)(Graph *graph, const Config *config, int *output);
/* Adds the model once for each step, and the nodes that connect the steps. *leads: index of the
 * node that has z of all steps side by side. */
Status graph_add_steps(Graph *graph, const Config *config, const GraphRollout *rollout, StepAdd add,
                       int *leads);

/* Adds a channel_sum of the data and of outputs of nodes. Inputs of the terms are indexes into
 * `node`, where NODE_INPUT is the data; nodes that no term reads are left out. Returns the new
 * node's index, or GRAPH_FAILED. */
int graph_add_sums(Graph *graph, const char *name, const ChannelSum *sum, int count,
                   const int *node, int nodes);

/* node_names.c. Returns the first node with this name, or GRAPH_FAILED. node: array of all
 * nodes. */
int names_find(const NodeNames *names, const Node *node, const char *name);
/* Adds node[index], unless an earlier node has its name. */
void names_add(NodeNames *names, const Node *node, int index);
void names_fini(NodeNames *names);
/* Rebuilds graph->names after nodes have moved. */
void graph_index_names(Graph *graph);

/* Returns the index of the node with this name, or GRAPH_FAILED. While a step of a rollout is
 * added, Graph.prefix is put before the name. */
int graph_find(const Graph *graph, const char *name);
bool graph_name_taken(const Graph *graph, const char *name);
/* Description of a node's output or, for NODE_INPUT, of the data (while a step of a rollout is
 * added, of the step's input: Graph.source). */
Desc graph_output(const Graph *graph, int node);
/* Number of channels of a node's output, or of the data for NODE_INPUT. */
int64_t graph_channels(const Graph *graph, int node);
/* Sets uses[node] to the number of inputs that read the node's output. */
void graph_count_uses(const Graph *graph, int *uses);
/* Freezes the parameters and tables that model.freeze names. ERR_CONFIG if a pattern matches
 * nothing. */
Status graph_freeze(Graph *graph, const Config *config);
/* Sets need_dx, frozen and x_shared of every node's spec. */
void graph_need_dx(Graph *graph);
/* Multiply-adds of forward for one micro-batch; 0 if OpInfo does not count them. */
double node_macs(const Node *node);
/* Description of the node's operation. */
static inline const OpInfo *node_info(const Node *node)
{
    return op_info(node->spec.kind);
}

/* True if each channel is a group and the layer has as many channels as its input: a depthwise
 * convolution, or a group norm with one channel per group. */
static inline bool node_has_single_groups(const Node *node)
{
    const OpSpec *s = &node->spec;
    return node->kind &&
           (node->kind->channels == CHANNELS_NEW || node->kind->channels == CHANNELS_KEEP) &&
           s->groups > 1 && s->groups == s->x[0].shape.dim[1] && s->groups == s->y.shape.dim[1];
}

/* True for a depthwise convolution with as many channels as its input. */
static inline bool node_is_depthwise(const Node *node)
{
    return node_has_single_groups(node) && node->kind->channels == CHANNELS_NEW;
}

/* True if the layer's own attribute decides its number of channels, not another layer. */
static inline bool node_has_own_width(const Node *node)
{
    return node->kind && node->kind->channels == CHANNELS_NEW && !node_is_depthwise(node);
}

/* Sets the channels of the layers that model.widths names, and the shapes of all layers after them.
 * No layers are added or removed. ERR_CONFIG if there is no such layer, or if another layer decides
 * its channels. */
Status graph_set_widths(Graph *graph, const Config *config);

/* Adds the layers of config->model.layer in their order. *logits: the last node.
 * Errors name file and line of the configuration. */
Status graph_add_list(Graph *graph, const Config *config, int *logits);

/* Zoo: adds dropout with config's probability, or with default_value if config gives none; returns
 * x itself if the probability is 0. */
int zoo_dropout(Graph *graph, const Config *config, const char *name, int x, double default_value);
/* Zoo: adds a dense layer with weights N(0, 1/fan_in). */
int zoo_dense(Graph *graph, const char *name, int x, int64_t width);
/* Zoo: adds for each width a zoo_dense layer and relu (and dropout if model.dropout is given):
 * NAME.0, NAME.0.relu and so on. */
int zoo_hidden(Graph *graph, const Config *config, const char *name, int x,
               const ConfigList *widths);
/* Zoo: adds a bag of all fields of the data, with one more attribute key=value. Its tables have
 * model.vocab rows, to which ids are hashed unless all ids are known to be below model.vocab.
 * Without model.vocab the tables have a row for each possible id or, if the range of ids is unknown
 * or exceeds INT32_MAX, for each id that occurs. */
int zoo_bag(Graph *graph, const Config *config, const char *name, int64_t width, const char *key,
            const char *value);
/* Write a number as text, the form of attributes, to out and return it. */
enum { ZOO_NUMBER = 32 };
char *zoo_number(int64_t n, char out[ZOO_NUMBER]);
char *zoo_real(double value, char out[ZOO_NUMBER]);

#endif
