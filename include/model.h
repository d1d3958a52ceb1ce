/* model: a DAG of layer nodes in topological order, built by name from the zoo or from a
 * configuration's list of layers; the table of parameters; rewrites of the graph (fusion,
 * tensor-parallel slices, planning, cutting). Not collective: every rank builds the same graph. */
#ifndef WEFT_MODEL_H
#define WEFT_MODEL_H

#include "layers.h"

/* value of Node.in for the data */
enum { NODE_INPUT = -1 };
/* vocabulary of the published GPT-2 models */
enum { GPT2_VOCAB = 50257 };

typedef struct Node {
    /* owned, unique: "layer1.0.conv2" (PyTorch's names in the zoo) */
    char *name;
    /* borrowed; NULL for a reorder inserted by graph_plan */
    const LayerKind *kind;
    /* attributes, with which the shape rule can run again */
    LayerSize size;
    OpSpec spec;
    /* indexes of earlier nodes, or NODE_INPUT */
    int in[SPEC_INPUTS];
    /* indexes into Graph.param, spec.w_count of them */
    int param[SPEC_PARAMS];
    /* the planned operation; owned; NULL until graph_plan */
    Op *op;
} Node;

/* How a parameter is divided among the ranks of a tensor-parallel group. Dimension `dim` consists
 * of `parts` parts side by side (queries, keys, values); parts is 0 if the parameter is not
 * divided. The first part has `units` units of lead * unit rows each (a query head, or all query
 * heads that share a key head), each other part `others` units of `unit` rows. Each part's units
 * are divided among the ranks by slice_first. */
typedef struct ParamCut {
    int dim, parts;
    int64_t units, others, unit, lead;
} ParamCut;

/* One row of the table of parameters and running statistics. */
typedef struct Param {
    /* owned: "layer1.0.conv2.weight" */
    char *name;
    /* shape on this rank, after slicing, in plain order (dimensions as in PyTorch) */
    Shape shape;
    /* the parameter is w[slot] of the spec of Graph.node[node] */
    int node, slot;
    LayerParam info;
    /* index of the earlier parameter to which this parameter is tied, or -1. A tied parameter has a
     * gradient of its own, which is added to the earlier parameter's gradient at the end of a step;
     * value, optimizer state and entries in checkpoints are those of the earlier parameter. */
    int tied;
    ParamCut cut;
    /* true: the parameter is not trained and has neither gradient nor optimizer state; a frozen
     * running statistic does not change. Tied parameters are frozen together. */
    bool frozen;
    /* true: each rank of the tensor-parallel group computes a part of the gradient, and the parts
     * are summed over the ranks */
    bool partial;
    /* offset and length, in floats, as stored, in an arena of all parameters of the graph; set by
     * graph_plan. offset is a multiple of 16; a tied parameter has the earlier parameter's. A run
     * has arenas with other offsets (Plan.param_offset). */
    int64_t offset, elements;
} Param;

/* A sparse table: the rows of a bag, by 64-bit ids. A table is no parameter: it is not in the
 * arenas, and ranks have different rows of it. */
typedef struct SparseTable {
    /* the bag's name, or "NAME.3" for field 3 if each field has its own table; owned */
    char *name;
    /* node: the bag's node. field: the field of the bag, counted from 0, or -1 for all fields. */
    int node, field;
    /* number of rows; with 0 any id is allowed, and each id that occurs gets a row */
    uint64_t rows;
    /* true: a hash maps ids to rows, so ids may share a row. false: an id is the number of its row,
     * and an id of `rows` or more is ERR_DATA; if rows is 0, each id has a row of its own. */
    bool hashed;
    /* values per row */
    int width;
    Init init;
    /* meaning as in LayerParam; INIT_UNIFORM: U(-scale, scale) */
    float scale;
    /* true: its rows are not trained */
    bool frozen;
} SparseTable;

/* The ids in the data. */
typedef struct GraphIds {
    /* number of fields of ids per sample; 0 if the data has no ids */
    int64_t fields;
    /* all ids are below this number; 0 if their range is unknown */
    uint64_t rows;
} GraphIds;

/* Hash table from a node's name to its index, with open addressing. A slot has a node's index + 1,
 * or 0 if it is empty. */
typedef struct NodeNames {
    /* owned */
    int *slot;
    /* slots: number of slots, a power of two, at least twice the number of names, or 0 before the
     * first name is added. count: number of names. */
    int slots, count;
} NodeNames;

typedef struct Graph {
    int node_count, param_count;
    /* number of allocated nodes and parameters */
    int node_capacity, param_capacity;
    /* number of bags; number of sparse tables */
    int bag_count, table_count;
    /* in the order of bags, then of fields; owned */
    SparseTable *table;
    /* owned */
    Node *node;
    NodeNames names;
    /* owned */
    Param *param;
    /* description of one micro-batch of data */
    Desc input;
    GraphIds ids;
    /* number of classes, of tokens in the vocabulary, or of targets of a sample */
    int64_t classes;
    /* losses for boxes: largest number of boxes in a micro-batch */
    int64_t box_rows;
    /* true (losses for numbers): weights of targets may differ from sample to sample */
    bool weights_vary;
    /* floats in the parameter arena, padding included; set by graph_plan */
    int64_t arena_elements;
    /* description of the input of one application of the model: `input`, or in a rollout the input
     * of each step */
    Desc step_input;
    /* number of times that the model is applied; names of steps 2, 3, ... begin with "step2." */
    int steps;
    /* Used while a step of a rollout is added. prefix: prefix of names, borrowed, or NULL. source:
     * index + 1 of the node that NODE_INPUT means, or 0 if it means the data. */
    const char *prefix;
    int source;
    /* arrays that OpSpec.channel_sums borrow; owned */
    ChannelSum **sums;
    int sums_count;
    /* index of the loss, which is the last node */
    int loss_node;
    /* index of the last node whose output the loss reads; Node.in of the loss has all of them */
    int logits_node;
    /* Tensor parallelism: the undivided graph, of which this graph is one rank's slice. It has the
     * same parameters in the same order and is never planned. Owned; NULL if the graph is not
     * divided. */
    struct Graph *whole;
    /* rank in the tensor-parallel group, and size of the group; 0 and 0 if the graph is not
     * divided */
    int rank, ranks;
} Graph;

/* Builds the model that config describes, for micro-batches of shape input (int32 (N,T) for token
 * models) and `classes` classes. Errors are ERR_CONFIG with file:line:column. The caller owns
 * *graph. */
Status graph_build(Graph **graph, const Config *config, Desc input, int64_t classes);
/* Does the same as graph_build for data with ids. */
Status graph_build_ids(Graph **graph, const Config *config, Desc input, GraphIds ids,
                       int64_t classes);
/* largest number of steps of a rollout, and bytes of the prefix of a step's names */
enum { ROLLOUT_STEPS = 32, GRAPH_PREFIX = 24 };
/* A model that is applied several times, to its own outputs (src/model/rollout.c). z of a step is
 * the part of the graph's output that belongs to the step: the step's output or, if the model
 * predicts changes, the sum of the outputs so far. All arrays are borrowed for the call. */
typedef struct GraphRollout {
    int steps;
    /* inputs: number of channels that a step reads; targets: number of channels of its output */
    int inputs, targets;
    /* (steps, inputs): the channels that each step reads. ChannelTerm.input 0 is the data; k is z
     * of step k, counted from 1. */
    const ChannelSum *state;
    /* (targets): z of each step after the first. ChannelTerm.input 0 is the step's output; 1 is z
     * of the step before. z of the first step is its output. */
    const ChannelSum *output;
} GraphRollout;
/* Builds a model that is applied several times. input: micro-batches of data; classes: number of
 * channels of a step's output. The loss reads z of all steps, one after the other along the
 * channels. The parameters of later steps are tied to those of the first step. ERR_CONFIG: the
 * model has running statistics, sparse tables or several outputs. */
Status graph_build_rollout(Graph **graph, const Config *config, Desc input,
                           const GraphRollout *rollout, int64_t classes);
/* Returns a node's or parameter's name without the prefix of its step. */
const char *graph_step_name(const Graph *graph, const char *name);
/* Frees the graph with its operations; call it before the backend is closed. */
void graph_free(Graph **graph);

/* index that functions return if a node could not be added */
enum { GRAPH_FAILED = -2 };
/* Adds a layer; models of the zoo are built with it. Attributes are pairs of texts,
 * NULL-terminated:
 *
 *     x = graph_add(g, "conv2d", "conv1", (int[]){x}, 1, "channels", "64", "stride", "2", NULL);
 *
 * Returns the node's index, or GRAPH_FAILED with a message (fail). Returns GRAPH_FAILED if an input
 * is GRAPH_FAILED, so that callers need to check only the last node. */
int graph_add(Graph *graph, const char *kind, const char *name, const int *in, int in_count, ...);

/* Ties parameter `slot` of node to the earlier parameter `name` (GPT-2's head to its embedding).
 * Both layers then store the parameter in plain order, which only dense, embedding and positions
 * can do. ERR_CONFIG if the layers cannot, the shapes differ, or there is no such parameter. */
Status graph_tie(Graph *graph, int node, int slot, const char *name);

/* True if one of the patterns "a,b" (fnmatch) matches the parameter's name or its layer's name. */
bool param_matches(const char *patterns, const char *name);
/* Returns the length of the layer's name in a parameter's name: all before the last dot. */
int param_layer_chars(const char *name);
/* True if the parameter is trained and only one layer uses it: it is not tied to another parameter,
 * and no parameter is tied to it. */
bool graph_has_one_use(const Graph *graph, int param);
/* Sets depth_group[i] to the depth group of parameter i, for optim.layer_decay: 0 for the stem,
 * then one for each block (names up to their first number: layer1.0, h.3), the last for the head.
 * Without blocks, each layer with parameters is a group. A tied parameter is in the group of the
 * parameter that it is tied to. Returns the number of groups. */
int graph_depth_groups(const Graph *graph, int *depth_group);

/* Replaces *graph by the slice of rank `rank` in a tensor-parallel group of `ranks`. Pairs of dense
 * layers are divided by columns and rows, attention between them by heads, embedding and softmax
 * loss by vocabulary, and the other layers by the sequence if all of them allow it. slices: number
 * of slices, a power of two, into which every sum over a divided dimension is cut (OpSpec.slices
 * and OpSpec.tokens), so that results do not depend on `ranks`. There are fewer slices if a layer
 * has fewer units. With slices 0 each rank sums its part of the terms as a whole. With one rank the
 * graph stays whole; its sums are cut if several ranks could divide it. Call it after graph_build
 * and before graph_fuse, on every rank with the same arguments but rank. ERR_CONFIG if nothing, or
 * too little, can be divided among several ranks. */
Status graph_split(Graph **graph, const Config *config, int rank, int ranks, int slices);
/* If there are several replicas, makes all layers that can do so compute their statistics over the
 * micro-batches of all replicas (OpSpec.synced). Call it before graph_plan. Frozen layers are left
 * out. ERR_CONFIG, naming train.sync_batch_norm, if the model has no such layer. */
Status graph_sync_statistics(Graph *graph, const Config *config, int replicas);
/* True if the loss reads the node's output, directly or in another layout. */
bool graph_is_output(const Graph *graph, int node);
/* Returns the number of values in a rank's slice of a parameter. */
int64_t param_slice_count(const Graph *graph, int param, int rank);
/* Copy a rank's slice from the whole parameter (get) or into it (put); slice and whole are in plain
 * order. */
void param_slice_get(const Graph *graph, int param, int rank, const float *whole, float *slice);
void param_slice_put(const Graph *graph, int param, int rank, const float *slice, float *whole);
/* Returns the undivided graph, which is `graph` itself without tensor parallelism. */
const Graph *graph_whole(const Graph *graph);

/* Cuts a planned graph into contiguous chunks so that the costliest chunk is as cheap as possible;
 * of several such cuts, the cut with the fewest bytes over its boundaries is chosen. Chunk k is
 * nodes first[k] .. first[k+1]-1 (first[0..chunks], first[0] = 0). A node's cost is node_cost. The
 * data never crosses a boundary: a node whose output is a view of the data, without a copy, is in
 * the same chunk as its readers. The loss is in the chunk of the logits. In a rollout, if chunks is
 * a multiple of Graph.steps, the first step is cut by cost, and the other steps before the same
 * layers if that is possible. grid.cuts may name the first layer of each chunk except the first.
 * ERR_CONFIG if the graph cannot be cut into that many chunks, or grid.cuts does not name layers
 * that can begin a chunk. A pure function. */
Status graph_partition(const Graph *graph, const Config *config, int chunks, int *first);
/* Returns ERR_CONFIG if a planned graph cannot be cut into that many chunks. A pure function. */
Status graph_check_cut(const Graph *graph, const Config *config, int chunks);
/* Returns the estimated seconds of forward and backward on one CPU core, from flops and bytes. */
double node_cost(const Node *node);

/* True if the node has a parameter or a table that is trained. */
bool node_is_trained(const Graph *graph, const Node *node);
/* Return the number of elements of all parameters, and of trained parameters, of the undivided
 * graph. A value that tied parameters share is counted once; running statistics and tables are not
 * counted. */
int64_t graph_param_count(const Graph *graph);
int64_t graph_trained_count(const Graph *graph);
/* Returns the number of elements of the frozen tables or of the trained tables. A table with an
 * unknown number of rows counts as 0. */
int64_t graph_table_values(const Graph *graph, bool frozen);
/* Returns the number of multiply-adds of forward for one sample, in the operations that count them
 * (OpInfo.macs): convolutions, also transposed ones, dense layers, feature interactions and
 * attention, of causal attention only the half that is not masked. The graph is the undivided
 * one. */
double graph_forward_macs(const Graph *graph);
/* Fuses neighbours that the backend runs as one operation:
 *  - on every backend: batch_norm, group_norm or instance_norm + relu or relu6; batch_norm + add,
 *    with or without relu or relu6 after it; conv2d, dense or add + relu; relu + max_pool (as
 *    max_pool + relu: max and relu commute)
 *  - if `table` supports them: batch_norm + silu; dense + gelu; dense + add, with or without a relu
 *    after it
 * Names, parameters and results do not change. */
Status graph_fuse(Graph *graph, const BackendTable *table);
/* Sets closed[i] for all node_count + 1 boundaries: true if a boundary before node i would separate
 * two dense layers of which the second computes the gradient of the activation between them
 * (OpSpec.x_act). Neither a chunk nor a recomputed block may begin at node i. */
void graph_close_act_boundaries(const Graph *graph, bool *closed);
/* Plans every node's operation, inserts reorders where a node prefers another layout, and sets the
 * offsets in the parameter table. */
Status graph_plan(Graph *graph, Backend *backend);
/* Prints the layers with shapes, parameters and flops, then counts, tables, ties and kernels. */
void graph_print(const Graph *graph, FILE *out);
/* Does the same as graph_print with another column at the end: `title`, and the text mark[i] for
 * node i. */
void graph_print_marked(const Graph *graph, const char *title, const char *const *mark, FILE *out);
/* Writes the initial values of this rank's slice of a parameter, in plain order. */
void param_init(const Graph *graph, int param, uint64_t seed, float *plain);

typedef struct ZooEntry {
    const char *name, *help;
    /* the keys of section model that this model uses and others do not, such as "width heads";
     * "blocks" stands for model.layers as a number. May be NULL. */
    const char *uses;
    /* defaults of the keys in `uses`: "width=10 hidden=[400,400]". May be NULL. */
    const char *defaults;
    /* names of the layers that the loss reads, "a,b"; NULL if the loss reads the layer that `build`
     * returns */
    const char *outputs;
    /* true: the model maps fields to fields of the same size, with a channel for each target */
    bool fields;
    /* Adds the layers from the data (NODE_INPUT) to the logits. Returns the index of the logits'
     * node, which is the last one, or GRAPH_FAILED. */
    int (*build)(Graph *graph, const Config *config);
} ZooEntry;
/* model_check: ERR_BUG, with the name of the model or of the pruning method, if its const table is
 * incomplete. zoo_row_check checks one model. */
Status model_check(void);
Status zoo_row_check(const ZooEntry *row);
/* All models of the zoo, NULL-terminated. */
extern const ZooEntry *const zoo[];
/* Returns the model of that name, or NULL. */
const ZooEntry *zoo_find(const char *name);
/* Returns ERR_CONFIG if model.name is not a model of the zoo; the message has file, line and
 * similar names. OK if model.name is empty or model.layers is a list. */
Status zoo_check(const Config *config);

/* Words of model.stem (for resnets) and of model.positions (for gpt2). */
#define STEM_WORDS(W)      W(STEM_IMAGENET, "imagenet") W(STEM_SMALL, "small")
#define POSITIONS_WORDS(W) W(POSITIONS_LEARNED, "learned") W(POSITIONS_ROTARY, "rotary")
/* Words of model.freeze_norm: the part of a frozen batch norm that does not change. */
#define FREEZE_NORM_WORDS(W)                                                                       \
    W(FREEZE_NORM_ALL, "all") W(FREEZE_NORM_AFFINE, "affine") W(FREEZE_NORM_NONE, "none")
typedef enum Stem { STEM_WORDS(LIST_CONSTANT) } Stem;
typedef enum Positions { POSITIONS_WORDS(LIST_CONSTANT) } Positions;
typedef enum FreezeNorm { FREEZE_NORM_WORDS(LIST_CONSTANT) } FreezeNorm;
/* Words of model.norm, model.up and model.down (for models of fields). */
#define FIELD_NORM_WORDS(W)                                                                        \
    W(FIELD_NORM_GROUP, "group")                                                                   \
    W(FIELD_NORM_BATCH, "batch")                                                                   \
    W(FIELD_NORM_INSTANCE, "instance")                                                             \
    W(FIELD_NORM_LAYER, "layer") W(FIELD_NORM_NONE, "none")
#define UP_WORDS(W)                                                                                \
    W(UP_TRANSPOSE, "transpose")                                                                   \
    W(UP_NEAREST, "nearest") W(UP_BILINEAR, "bilinear")
#define DOWN_WORDS(W) W(DOWN_MAX, "max") W(DOWN_MEAN, "mean")
typedef enum FieldNorm { FIELD_NORM_WORDS(LIST_CONSTANT) } FieldNorm;
typedef enum Up { UP_WORDS(LIST_CONSTANT) } Up;
typedef enum Down { DOWN_WORDS(LIST_CONSTANT) } Down;
enum { MODEL_WORDS = 7 };
extern const ConfigWords model_words[MODEL_WORDS];

#endif
