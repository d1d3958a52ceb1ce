/* The model module's private header: adding nodes one by one, and the passes over a graph. */
#ifndef WEFT_MODEL_BUILD_H
#define WEFT_MODEL_BUILD_H

#include "model.h"

/* A node before its shape rule has run: attributes are set on spec and size with layer_attr. */
typedef struct Draft {
    const LayerKind *kind;
    /* borrowed */
    const char *name;
    OpSpec spec;
    LayerSize size;
    int in[SPEC_INPUTS];
} Draft;

/* Checks the number of inputs and fills in their shapes and the kind's defaults. */
Status draft_begin(const Graph *graph, Draft *draft, const LayerKind *kind, const char *name,
                   const int *in, int in_count);
/* Runs the shape rule and appends the node and its parameters. *index: the node's. */
Status draft_finish(Graph *graph, Draft *draft, int *index);

/* names.c: the first of the nodes with this name, or GRAPH_FAILED; adding node `index`; all of a
 * graph's nodes anew, after they were moved. */
int names_find(const NodeNames *names, const Node *node, const char *name);
void names_add(NodeNames *names, const Node *node, int index);
void names_fini(NodeNames *names);
void graph_name_nodes(Graph *graph);

/* node's index; GRAPH_FAILED if none */
int graph_find(const Graph *graph, const char *name);
bool graph_name_taken(const Graph *graph, const char *name);
/* of a node, or of NODE_INPUT */
Desc graph_output(const Graph *graph, int node);
/* how many channels that has */
int64_t graph_channels(const Graph *graph, int node);
/* uses[node]: how many inputs read it */
void graph_count_uses(const Graph *graph, int *uses);
/* Freezes what model.freeze names. ERR_CONFIG where a pattern names nothing. */
Status graph_freeze(Graph *graph, const Config *config);
/* sets every spec.need_dx and spec.frozen */
void graph_need_dx(Graph *graph);
double node_macs(
    const Node *node); /* forward's multiply-adds, where OpInfo counts them; one micro-batch */
/* What its operation is. */
static inline const OpInfo *node_info(const Node *node)
{
    return op_info(node->spec.kind);
}

/* Each channel is a group of its own, so that it has as many groups as its input has channels: a
 * depthwise convolution, a group norm of single channels. */
static inline bool node_groups_single(const Node *node)
{
    const OpSpec *s = &node->spec;
    return node->kind &&
           (node->kind->channels == CHANNELS_OPEN || node->kind->channels == CHANNELS_KEEP) &&
           s->groups > 1 && s->groups == s->x[0].shape.dim[1] && s->groups == s->y.shape.dim[1];
}

/* A convolution of each channel by itself, which has as many as its input. */
static inline bool node_is_depthwise(const Node *node)
{
    return node_groups_single(node) && node->kind->channels == CHANNELS_OPEN;
}

/* Has it a number of channels of its own, which no other layer decides? */
static inline bool node_opens(const Node *node)
{
    return node->kind && node->kind->channels == CHANNELS_OPEN && !node_is_depthwise(node);
}

/* Gives the layers that model.widths names their channels, and those behind them the shapes that
 * follow. Which layers there are has been decided by then, of the widths that the model says.
 * ERR_CONFIG: no such layer, or one whose channels another one decides. */
Status graph_take_widths(Graph *graph, const Config *config);

/* The layers of config->model.layer, one node each, in their order. Errors carry their place. */
Status graph_add_list(Graph *graph, const Config *config, int *logits);

/* Zoo: a dropout layer with config's probability, or `own` where it gives none; x itself where that
 * is 0. */
int zoo_dropout(Graph *graph, const Config *config, const char *name, int x, double own);
/* Zoo: a dense layer of weights N(0, 1/fan_in); and one with relu (and model.dropout's, where that
 * is given) for each of the widths: NAME.0, NAME.0.relu and so on. */
int zoo_dense(Graph *graph, const char *name, int x, int64_t width);
int zoo_hidden(Graph *graph, const Config *config, const char *name, int x,
               const ConfigList *widths);
/* Zoo: a bag of all of the data's fields, with one more attribute. Its tables have model.vocab
 * rows, which ids share by a hash unless they are known to be below; else as many as
 * there are ids. */
int zoo_bag(Graph *graph, const Config *config, const char *name, int64_t width, const char *key,
            const char *value);
/* Numbers as attributes take them. */
enum { ZOO_NUMBER = 32 };
char *zoo_number(int64_t n, char out[ZOO_NUMBER]);
char *zoo_real(double value, char out[ZOO_NUMBER]);

#endif
