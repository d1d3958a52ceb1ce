/* model: a DAG of layer nodes in topological order, built by name from the zoo or from a config's
 * list; the one table of parameters; rewrites that fuse neighbours. Not collective: every rank
 * builds the same graph. */
#ifndef WEFT_MODEL_H
#define WEFT_MODEL_H

#include "layers.h"

/* as a node's input: the data */
enum { NODE_INPUT = -1 };
/* tokens of gpt2's sizes that have a name */
enum { GPT2_VOCAB = 50257 };

typedef struct Node {
    /* owned, unique: "layer1.0.conv2" (PyTorch's names in the zoo) */
    char *name;
    /* borrowed; NULL for a reorder that the planner put in */
    const LayerKind *kind;
    /* as asked for, with which its shape rule can run again */
    LayerSize size;
    OpSpec spec;
    /* earlier nodes, or NODE_INPUT */
    int in[SPEC_INPUTS];
    /* into Graph.param, spec.w_count of them */
    int param[SPEC_PARAMS];
    /* owned; NULL until graph_plan */
    Op *op;
} Node;

/* Which part of a parameter a rank of a tensor group has. Its dimension `dim` is `parts` parts side
 * by side (queries, keys, values), each of `units` units of `unit` rows (heads), cut as slice_first
 * says; the first part's units are `lead` times as large (the heads of queries that share a head of
 * keys). parts 0: it is whole. */
typedef struct ParamCut {
    int dim, parts;
    int64_t units, unit, lead;
} ParamCut;

/* the one table of parameters and running statistics */
typedef struct Param {
    /* owned: "layer1.0.conv2.weight" */
    char *name;
    /* model's own order, ndim as PyTorch's; of this rank's slice */
    Shape shape;
    /* whose it is: nodes[node].spec.w[slot] */
    int node, slot;
    LayerParam info;
    /* an earlier parameter of the same shape whose value this one IS, or -1. It has a gradient of
     * its own, which is added to that one's at a step's end; nothing else: no value, no state, no
     * place in a checkpoint */
    int tied;
    ParamCut cut;
    /* It stays as it is: no gradient, no state; a running statistic does not move. Of tied ones all
     * or none are. */
    bool frozen;
    /* each rank of a tensor group has a part of its gradient, which is the sum over them */
    bool partial;
    int64_t offset,
        elements; /* in the parameter arena, in floats, stored order (after graph_plan); offset is a
                                  * multiple of 16. The gradient arena has the same offsets */
} Param;

/* A sparse table: rows of a bag, by 64-bit ids. It is no parameter: it has no place in the arenas,
 * and ranks have different rows of it. */
typedef struct SparseTable {
    /* owned: its bag's, or "NAME.3" of field 3 where each of the bag's fields has its own */
    char *name;
    /* the bag; its field, from 0 among its own, or -1: all of them */
    int node, field;
    /* ids are below it; 0: any id, and there are as many rows as ids */
    uint64_t rows;
    /* an id is brought below `rows` by a hash, so that ids may share a row; else one beyond it is
     * ERR_DATA */
    bool hashed;
    /* numbers of a row */
    int width;
    Init init;
    /* as LayerParam's; INIT_UNIFORM: U(-scale, scale) */
    float scale;
    bool frozen;
} SparseTable;

/* What there is of ids in the data: fields of a sample, 0: none; ids are below rows, 0: any. */
typedef struct GraphIds {
    int64_t fields;
    uint64_t rows;
} GraphIds;

/* Nodes by their names: open addressing. Each place holds a node's number + 1; 0: it is empty. */
typedef struct NodeNames {
    /* owned */
    int *place;
    /* a power of two, at least twice as many as there are names; 0: none was added */
    int places, count;
} NodeNames;

typedef struct Graph {
    int node_count, param_count;
    /* nodes and parameters that there is memory for */
    int node_room, param_room;
    /* bags, and their tables in the order of bags, then fields */
    int bag_count, table_count;
    /* owned */
    SparseTable *table;
    /* owned */
    Node *node;
    NodeNames names;
    /* owned */
    Param *param;
    /* one micro-batch of data */
    Desc input;
    GraphIds ids;
    int64_t classes;
    /* floats in the parameter arena, padding included (after graph_plan) */
    int64_t arena_elements;
    /* index of the loss node, the last one */
    int loss;
    /* the node whose output the loss reads */
    int logits;
    /* Tensor parallelism: the graph that this one is a rank's slice of, with the same parameters in
     * the same order, never planned. Owned; NULL and 0 where nothing is divided. */
    struct Graph *whole;
    int rank, ranks;
} Graph;

/* Builds what config names for micro-batches of shape input (int32 (N,T) for token models) and
 * `classes` classes. Errors are ERR_CONFIG with file:line:column. Owner: the caller. */
Status graph_build(Graph **graph, const Config *config, Desc input, int64_t classes);
/* The same of data that have ids, too. */
Status graph_build_ids(Graph **graph, const Config *config, Desc input, GraphIds ids,
                       int64_t classes);
/* frees the ops, too: before the backend is closed */
void graph_free(Graph **graph);

/* instead of a node: it could not be added */
enum { GRAPH_FAILED = -2 };
/* Zoo files build with it. Attributes come as text pairs, NULL-terminated:
 *
 *     x = graph_add(g, "conv2d", "conv1", (int[]){x}, 1, "channels", "64", "stride", "2", NULL);
 *
 * Returns the node's index, or GRAPH_FAILED with fail() set; a failed input propagates. */
int graph_add(Graph *graph, const char *kind, const char *name, const int *in, int in_count, ...);

/* Parameter `slot` of node becomes tied to the earlier parameter `name` (GPT-2's head to its
 * embedding). Both layers then store it in its plain order, which dense, embedding and positions
 * can. ERR_CONFIG where the shapes differ. */
Status graph_tie(Graph *graph, int node, int slot, const char *name);

/* Does one of the patterns "a,b" (fnmatch) stand for a parameter of that name, or for its layer? */
bool param_listed(const char *patterns, const char *name);
/* Characters of a parameter's name without its last word: its layer's. */
int param_layer_chars(const char *name);
/* Where each parameter stands between data and loss, for optim.layer_decay: tier[i] is 0 for the
 * stem, then one number for each block (names up to their first number: layer1.0, h.3), and the
 * last for the head. Without blocks each layer with parameters is a tier. A tied parameter is what
 * it is tied to. Returns how many there are. */
int graph_tiers(const Graph *graph, int *tier);

/* Makes *graph the slice of rank `rank` of a tensor group: pairs of dense layers by columns and
 * rows, attention between them by heads, embedding and softmax loss by vocabulary, the rest by the
 * sequence where it can be. After graph_build, before graph_fuse. ERR_CONFIG where nothing, or too
 * little, can be divided. Every rank of the group calls it alike. */
Status graph_split(Graph **graph, const Config *config, int rank, int ranks);
/* Layers that can take their statistics over all replicas' micro-batches do so where there are
 * several (OpSpec.synced). Before graph_plan. ERR_CONFIG, under train.sync_batch_norm, where there
 * is no such layer. */
Status graph_sync(Graph *graph, const Config *config, int replicas);
/* Rank's slice of a parameter in plain order: how many numbers; from the whole one; and back into
 * it. */
int64_t param_slice_count(const Graph *graph, int param, int rank);
void param_slice_get(const Graph *graph, int param, int rank, const float *whole, float *mine);
void param_slice_put(const Graph *graph, int param, int rank, const float *mine, float *whole);
/* Of the whole model, whatever this rank has of it. */
const Graph *graph_whole(const Graph *graph);

/* Cuts the nodes into `parts` contiguous chunks of which the costliest is as cheap as can be, after
 * graph_plan. first[0..parts]: chunk k is nodes first[k] .. first[k+1]-1, first[0] = 0. Node cost:
 * estimated seconds of forward and backward, from flops and bytes. The data never crosses a
 * boundary: a node whose output is the data's own memory stays with its readers. Nor do the logits:
 * the loss stays with them. Of equal cuts, the one with the fewest bytes over its boundaries. cuts:
 * names of the first layer of each chunk but the first, "a,b", or "". ERR_CONFIG where there are
 * fewer layers than parts or cuts names no layer. A pure function. */
Status graph_partition(const Graph *graph, const Config *config, int parts, int *first);
/* ERR_CONFIG where the model has fewer layers than parts. After graph_plan. A pure function. */
Status graph_can_cut(const Graph *graph, const Config *config, int parts);
/* that estimate */
double node_cost(const Node *node);

/* Has the node a parameter, or a table, that is trained? */
bool node_trains(const Graph *graph, const Node *node);
/* elements of parameters, and of those that are trained; neither running statistics nor tables
 * count */
int64_t graph_param_count(const Graph *graph);
int64_t graph_trained_count(const Graph *graph);
/* elements of the tables whose rows are known, of those that are trained or of those that are
 * frozen */
int64_t graph_table_values(const Graph *graph, bool frozen);
double graph_forward_macs(
    const Graph *graph); /* of conv, dense and attention (its causal half), one sample */
/* Neighbours that the backend runs as one: batch_norm+relu(6), batch_norm+add+relu,
 * conv/dense+relu, add+relu, relu+max_pool (as max_pool+relu: max and relu commute), dense+gelu and
 * dense+add(+relu) where `table` says so. Names, parameters and results stay. Decided on the whole
 * graph. */
Status graph_fuse(Graph *graph, const BackendTable *table);
/* parts[i]: would a boundary in front of node i part a dense from the one that has its act's slope
 * (OpSpec.x_act)? Neither a chunk nor a block that is recomputed begins there. parts has node_count
 * + 1 entries. */
void graph_parts_act(const Graph *graph, bool *parts);
/* Plans every node's op, puts in reorders where a node wishes another layout, fills offsets in the
 * parameter table. */
Status graph_plan(Graph *graph, Backend *backend);
/* Layers with shapes, parameters and flops, as text. */
void graph_print(const Graph *graph, FILE *out);
/* The same with a last column: its title, and a text for each node. */
void graph_print_marked(const Graph *graph, const char *title, const char *const *mark, FILE *out);
/* Initial values of a parameter in plain order, of this rank's slice. */
void param_init(const Graph *graph, int param, uint64_t seed, float *plain);

typedef struct ZooEntry {
    const char *name, *help;
    /* Keys of model that it has a use for, beside those of all models: "width heads"; "blocks":
     * model.layers as a number. May be NULL. */
    const char *uses;
    /* and what they are where nothing is said of them: "width=10 hidden=[400,400]". May be NULL. */
    const char *defaults;
    /* Adds layers from the data (NODE_INPUT) to the logits; returns the logits' node or
     * GRAPH_FAILED. */
    int (*build)(Graph *graph, const Config *config);
} ZooEntry;
/* NULL-terminated */
extern const ZooEntry *const zoo[];
/* NULL: the zoo has no such model. */
const ZooEntry *zoo_find(const char *name);
/* ERR_CONFIG where model.name is a name that the zoo does not have; the message says the place, and
 * which names may be meant. OK where there is none, or a list of layers. */
Status zoo_check(const Config *config);

/* The words of model.stem, which resnets have, of model.positions, which gpt2 has; those of
 * model.name are the zoo's; */
#define STEM_WORDS(W)      W(STEM_IMAGENET, "imagenet") W(STEM_SMALL, "small")
#define POSITIONS_WORDS(W) W(POSITIONS_LEARNED, "learned") W(POSITIONS_ROTARY, "rotary")
/* and of model.freeze_norm: what of a frozen batch norm stays as it is */
#define FREEZE_NORM_WORDS(W)                                                                       \
    W(FREEZE_NORM_ALL, "all") W(FREEZE_NORM_AFFINE, "affine") W(FREEZE_NORM_NONE, "none")
typedef enum Stem { STEM_WORDS(LIST_CONSTANT) } Stem;
typedef enum Positions { POSITIONS_WORDS(LIST_CONSTANT) } Positions;
typedef enum FreezeNorm { FREEZE_NORM_WORDS(LIST_CONSTANT) } FreezeNorm;
enum { MODEL_WORDS = 4 };
extern const ConfigWords model_words[MODEL_WORDS];

#endif
