/* model: a DAG of layer nodes in topological order, built by name from the zoo or from a
 * configuration's list of layers; the table of parameters; rewrites of the graph (fusion,
 * tensor-parallel slices, planning, cutting). Not collective: every rank builds the same graph. */
#ifndef WEFT_MODEL_H
#define WEFT_MODEL_H

#include "layers.h"

/* value of Node.in that stands for the data */
enum { NODE_INPUT = -1 };
/* vocabulary of the published GPT-2 models */
enum { GPT2_VOCAB = 50257 };

/* A node of the graph: a layer, or a reorder. */
typedef struct Node {
    /* unique name: "layer1.0.conv2"; in the zoo PyTorch's name; owned */
    char *name;
    /* layer kind; borrowed; NULL for a reorder that graph_plan has inserted */
    const LayerKind *kind;
    /* sizes and choices of the layer, kept because the shape rule may run again */
    LayerSize size;
    OpSpec spec;
    /* index of the node of each input, lower than this node's index, or NODE_INPUT;
     * [spec.x_count] */
    int in[SPEC_INPUTS];
    /* indexes into Graph.param, [spec.w_count] */
    int param[SPEC_PARAMS];
    /* the planned operation; owned; NULL until graph_plan */
    Op *op;
} Node;

/* How a parameter is divided among the ranks of a tensor-parallel group. One dimension consists of
 * parts side by side, for example queries, keys and values. Each part consists of units, which
 * slice_first divides among the ranks. Example, grouped queries: a unit of the first part is all
 * query heads that share a key head; a unit of another part is one key head or value head. */
typedef struct ParamSplit {
    /* dim: the divided dimension; parts: number of parts, 0 if the parameter is not divided */
    int dim, parts;
    /* units: number of units of the first part; other_units: number of units of each other part;
     * unit_rows: rows of a unit of another part; first_unit_ratio * unit_rows: rows of a unit of
     * the first part */
    int64_t units, other_units, unit_rows, first_unit_ratio;
} ParamSplit;

/* One row of the table of parameters and running statistics. */
typedef struct Param {
    /* unique name: "layer1.0.conv2.weight"; owned */
    char *name;
    /* shape of this rank's slice, in plain order (dimensions as in PyTorch) */
    Shape shape;
    /* the parameter is w[slot] of the spec of Graph.node[node] */
    int node, slot;
    LayerParam info;
    /* index of the earlier parameter to which this parameter is tied, or -1. A tied parameter has
     * its own gradient, which is added to the earlier parameter's gradient at the end of a step. It
     * shares the earlier parameter's value, optimizer state and entries in checkpoints. */
    int tied_param;
    ParamSplit split;
    /* true: the parameter is not trained and has neither gradient nor optimizer state; a running
     * statistic does not change. Tied parameters are frozen together. */
    bool frozen;
    /* true: each rank of the tensor-parallel group computes a part of the gradient, and the parts
     * are summed over the ranks */
    bool partial;
    /* offset: first float of the parameter in an arena of all parameters of the graph, a multiple
     * of 16; a tied parameter has the earlier parameter's offset. elements: number of floats that
     * the parameter takes there in its stored (packed) form, which may be more than its shape has.
     * graph_plan sets both. A training run does not use `offset` but Plan.param_offset. */
    int64_t offset, elements;
} Param;

/* A sparse table: rows that a bag looks up by 64-bit ids. A table is no parameter: it is not in the
 * arenas of parameters, and ranks have different rows of it. */
typedef struct SparseTable {
    /* the bag's name or, if each field has its own table, "NAME.3" for field 3; owned */
    char *name;
    /* node: index of the bag's node. field: number of the bag's field, counted from 0, or -1 if the
     * table is for all fields. */
    int node, field;
    /* number of rows; 0: any id is allowed, and each id that occurs gets a row */
    uint64_t rows;
    /* true: a hash maps ids to rows, so ids may share a row. false: an id is the number of its row,
     * and an id of `rows` or more is ERR_DATA; if rows is 0, each id has a row of its own. */
    bool hashed;
    /* floats in a row */
    int width;
    Init init;
    /* INIT_UNIFORM: initial values are U(-scale, scale); other initialisers: as LayerParam.scale */
    float scale;
    /* true: the rows are not trained */
    bool frozen;
} SparseTable;

/* The ids in the data. */
typedef struct GraphIds {
    /* number of fields of ids per sample; 0 if the data has no ids */
    int64_t fields;
    /* all ids are below this number; 0 if their range is unknown */
    uint64_t id_limit;
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

/* A model, or one rank's slice of it. */
typedef struct Graph {
    int node_count, param_count;
    /* number of entries for which `node` and `param` have memory */
    int node_capacity, param_capacity;
    int bag_count, table_count;
    /* sparse tables, ordered by bag and then by field, [table_count]; owned */
    SparseTable *table;
    /* nodes in topological order, [node_count]; owned */
    Node *node;
    NodeNames names;
    /* parameters and running statistics, [param_count]; owned */
    Param *param;
    /* description of one micro-batch of data */
    Desc input;
    GraphIds ids;
    /* number of classes, of tokens in the vocabulary, or of numbers in a sample's target */
    int64_t classes;
    /* losses for boxes: largest number of boxes in a micro-batch */
    int64_t box_rows;
    /* losses for numbers: true if weights of targets may differ from sample to sample */
    bool weights_vary;
    /* floats in the parameter arena, padding included; set by graph_plan */
    int64_t arena_elements;
    /* description of the input of one application of the model: `input`, or in a rollout the input
     * of each step */
    Desc step_input;
    /* number of times (steps) that the model is applied. The name of a node that step k > 1 adds
     * begins with "stepK.": "step2.conv1". */
    int steps;
    /* while a step k > 1 of a rollout is added: the prefix of its nodes' names, borrowed; else
     * NULL */
    const char *prefix;
    /* while a step of a rollout is added: 1 + the index of the node that layers with input
     * NODE_INPUT read; else 0: such layers read the data */
    int source;
    /* arrays to which OpSpec.channel_sums of nodes point, [channel_sum_count]; the array and its
     * entries are owned */
    ChannelSum **channel_sums;
    int channel_sum_count;
    /* index of the loss, which is the last node */
    int loss_node;
    /* index of the last node whose output the loss reads; Node.in of the loss has the indexes
     * of all such nodes */
    int logits_node;
    /* Tensor parallelism: the undivided graph, of which this graph is one rank's slice. It has the
     * same parameters in the same order and is never planned. Owned; NULL if the graph is not
     * divided. */
    struct Graph *undivided;
    /* tp_rank: this rank's number in its tensor-parallel group; tp_ranks: number of ranks of the
     * group. Both are 0 if the graph is not divided. */
    int tp_rank, tp_ranks;
} Graph;

/* Builds the model that config describes. input: a micro-batch of data; token models need int32
 * (N,T). ERR_CONFIG: the model cannot be built; the message begins with file:line:column. The
 * caller owns *graph. */
Status graph_build(Graph **graph, const Config *config, Desc input, int64_t classes);
/* Does what graph_build does, for data that have ids. */
Status graph_build_ids(Graph **graph, const Config *config, Desc input, GraphIds ids,
                       int64_t classes);
/* ROLLOUT_STEPS: largest number of steps of a rollout. GRAPH_PREFIX: bytes of the longest prefix of
 * a step's names, with its final zero. */
enum { ROLLOUT_STEPS = 32, GRAPH_PREFIX = 24 };
/* A model that is applied several times, to its own outputs (src/model/rollout.c). z of a step is
 * what the loss reads of the step. For a channel whose value the model predicts, z is the model's
 * output in this step. For a channel whose change the model predicts, z is the sum of the outputs
 * of this and all earlier steps. All arrays are borrowed for the call. */
typedef struct GraphRollout {
    int steps;
    /* inputs: number of channels that a step reads; targets: number of channels of its output */
    int inputs, targets;
    /* (steps, inputs): how each channel that a step reads is computed. In ChannelTerm.input, 0
     * means the data, and k > 0 means z of step k; the first step is 1. */
    const ChannelSum *input_terms;
    /* (targets): how each channel of z of a step after the first is computed. In ChannelTerm.input,
     * 0 means the model's output in this step, and 1 means z of the step before. z of the first
     * step is the model's output. */
    const ChannelSum *z_terms;
} GraphRollout;
/* Builds a model that is applied several times. input: a micro-batch of data; classes: number of
 * channels of a step's output. The loss reads z of all steps, one after the other along the
 * channels. Parameters of later steps are tied to those of the first step. ERR_CONFIG: the model
 * has running statistics, sparse tables or several outputs. The caller owns *graph. */
Status graph_build_rollout(Graph **graph, const Config *config, Desc input,
                           const GraphRollout *rollout, int64_t classes);
/* Returns a node's or parameter's name without the prefix of its step. */
const char *graph_name_without_step(const Graph *graph, const char *name);
/* Frees the graph with its operations; call it before the backend is closed. */
void graph_free(Graph **graph);

/* value that functions return instead of a node's index if a node could not be added */
enum { GRAPH_FAILED = -2 };
/* Adds a layer; models of the zoo are built with it. Attributes are pairs of texts,
 * NULL-terminated:
 *
 *     x = graph_add(g, "conv2d", "conv1", (int[]){x}, 1, "channels", "64", "stride", "2", NULL);
 *
 * Returns the node's index, or GRAPH_FAILED with a message (fail). Returns GRAPH_FAILED if an input
 * is GRAPH_FAILED, so that callers need to check only the last node. */
int graph_add(Graph *graph, const char *kind, const char *name, const int *in, int in_count, ...);

/* Ties parameter `slot` of node `node` to the earlier parameter with this name, as GPT-2's head to
 * its embedding. Both layers then store the parameter in plain order, which only layers with
 * op_plain_weight can do (dense, embedding, numeric_embedding, positions). ERR_CONFIG: a layer
 * cannot do this, the shapes differ, or there is no such parameter. */
Status graph_tie(Graph *graph, int node, int slot, const char *name);

/* Returns true if one of the patterns "a,b" (fnmatch) matches the parameter's name or its layer's
 * name. */
bool param_matches(const char *patterns, const char *name);
/* Returns the length of the layer's name in a parameter's name, that is of the part before the last
 * dot. */
int param_layer_chars(const char *name);
/* Returns true if the parameter is trained and only one layer uses it: it is not tied to another
 * parameter, and no parameter is tied to it. */
bool graph_has_one_use(const Graph *graph, int param);
/* Sets depth_group[i] to the depth group of parameter i, for optim.layer_decay, and returns the
 * number of groups. Group 0 is the stem, each block is a group, and the last group is the head.
 * Parameters are in one block if their names are equal up to and including the first part between
 * dots that is a number: layer1.0, h.3. If no name has such a part, each layer with parameters is a
 * group. A tied parameter is in the group of the parameter to which it is tied. */
int graph_depth_groups(const Graph *graph, int *depth_group);

/* Replaces *graph by the slice of rank `rank` in a tensor-parallel group of `ranks` ranks. Pairs of
 * dense layers are divided by columns and rows, attention between them by heads, embedding and
 * softmax loss by vocabulary, and the other layers by the sequence if all of them allow it. slices:
 * number of slices, a power of two, into which every sum over a divided dimension is cut
 * (OpSpec.slices and OpSpec.token_slices), so that results do not depend on `ranks`; a layer with
 * fewer units has fewer slices. If slices is 0, each rank adds up its terms without cutting the
 * sum. If ranks is 1, the graph is not divided; its sums are cut if several ranks could divide it.
 * Call it after graph_build and before graph_fuse, on every rank with the same arguments except
 * `rank`. ERR_CONFIG: several ranks cannot divide the graph, a rank would get nothing of a layer,
 * or the number of ranks does not fit `slices`. */
Status graph_split(Graph **graph, const Config *config, int rank, int ranks, int slices);
/* If there are several replicas, makes all layers that support it compute their statistics over the
 * micro-batches of all replicas (OpSpec.synced), except frozen layers. Call it before graph_plan.
 * ERR_CONFIG, naming train.sync_batch_norm: the model has no such layer. */
Status graph_sync_statistics(Graph *graph, const Config *config, int replicas);
/* Returns true if the loss reads the node's output, directly or after a reorder. */
bool graph_is_output(const Graph *graph, int node);
/* Returns the number of values in a rank's slice of a parameter. */
int64_t param_slice_count(const Graph *graph, int param, int rank);
/* param_slice_get copies a rank's slice out of the undivided parameter `whole`; param_slice_put
 * copies it into `whole`. Both arrays are in plain order. */
void param_slice_get(const Graph *graph, int param, int rank, const float *whole, float *slice);
void param_slice_put(const Graph *graph, int param, int rank, const float *slice, float *whole);
/* Returns the undivided graph: `graph` itself if it is not divided. */
const Graph *graph_undivided(const Graph *graph);

/* Cuts a planned graph into contiguous chunks so that the costliest chunk is as cheap as possible;
 * of several such cuts, the cut with the fewest bytes over its boundaries is chosen. Chunk k is
 * nodes first[k] .. first[k+1] - 1; `first` has chunks + 1 entries, and first[0] is 0. The cost of
 * a node is node_cost. Stages do not send the data to each other, so a node whose output is the
 * data's own memory is in the same chunk as all nodes that read it. The loss is in the chunk of the
 * logits. In a rollout whose number of steps divides `chunks`, the first step is cut by cost, and
 * the other steps are cut at the same layers if that is possible. grid.cuts may instead name the
 * first layer of each chunk except the first chunk. ERR_CONFIG: the graph cannot be cut into that
 * number of chunks, or grid.cuts does not name layers that can begin a chunk. A pure function. */
Status graph_partition(const Graph *graph, const Config *config, int chunks, int *first);
/* Returns ERR_CONFIG if a planned graph cannot be cut into that number of chunks. A pure
 * function. */
Status graph_check_cut(const Graph *graph, const Config *config, int chunks);
/* Returns the estimated seconds of the node's forward and backward on one CPU core, from its flops
 * and the bytes that it reads and writes. */
double node_cost(const Node *node);

/* Returns true if the node has a parameter or a table that is trained. */
bool node_is_trained(const Graph *graph, const Node *node);
/* graph_param_elements returns the number of elements of all parameters of the undivided graph,
 * graph_trained_elements of the trained parameters only. A value that tied parameters share is
 * counted once; running statistics and tables are not counted. */
int64_t graph_param_elements(const Graph *graph);
int64_t graph_trained_elements(const Graph *graph);
/* Returns the number of floats of all frozen tables (frozen = true) or of all trained tables. A
 * table with an unknown number of rows counts as 0. */
int64_t graph_table_value_count(const Graph *graph, bool frozen);
/* Returns the number of multiply-adds of the forward pass of one sample, for the undivided graph.
 * Only operations that count them are included (OpInfo.macs): convolutions and transposed
 * convolutions, dense layers, feature interactions, and attention; of causal attention only the
 * part that is not masked. */
double graph_sample_macs(const Graph *graph);
/* Fuses neighbours that the backend runs as one operation:
 *  - on every backend: batch_norm, group_norm or instance_norm + relu or relu6; batch_norm + add,
 *    with or without relu or relu6 after it; conv2d, dense or add + relu; relu + max_pool (as
 *    max_pool + relu: max and relu commute)
 *  - if `table` supports them: batch_norm + silu; dense + gelu; dense + add, with or without a relu
 *    after it
 * Names, parameters and results do not change. */
Status graph_fuse(Graph *graph, const BackendTable *table);
/* Sets closed[i], [node_count + 1], to true if neither a chunk nor a recomputed block may begin at
 * node i. This is so if the boundary before node i would separate two dense layers of which the
 * second computes the gradient of the activation between them (OpSpec.x_act). */
void graph_close_act_boundaries(const Graph *graph, bool *closed);
/* Plans the operation of every node, inserts reorders before nodes that prefer another layout, and
 * sets offset and elements of the parameters. Indexes of nodes may change. Call it once, after
 * graph_fuse. */
Status graph_plan(Graph *graph, Backend *backend);
/* Prints the layers with their shapes, parameters and flops, then totals, tables, ties and
 * kernels. */
void graph_print(const Graph *graph, FILE *out);
/* Does what graph_print does, with another column at the end: its title, and the text mark[i] for
 * node i. */
void graph_print_marked(const Graph *graph, const char *title, const char *const *mark, FILE *out);
/* Writes the initial values of this rank's slice of a parameter, in plain order. */
void param_init(const Graph *graph, int param, uint64_t seed, float *plain);

/* The output of a model for a sample. MAPS_UNSET: the row of the model does not set the field,
 * which is an error. */
typedef enum ZooMaps {
    MAPS_UNSET,
    /* numbers, such as logits or boxes */
    MAPS_TO_NUMBERS,
    /* fields of the same size as the sample's; the output has a channel for each target */
    MAPS_FIELDS,
} ZooMaps;
/* A model of the zoo. */
typedef struct ZooEntry {
    /* name: value of model.name; help: one line */
    const char *name, *help;
    /* keys of section model that not every model uses and this model does, for example "width
     * heads"; other keys of this kind are refused. "blocks" is model.layers as a number. May be
     * NULL. */
    const char *uses;
    /* defaults of the keys in `uses`: "width=10 hidden=[400,400]". May be NULL. */
    const char *defaults;
    /* names of the layers that the loss reads, "a,b"; NULL if the loss reads the layer that `build`
     * returns */
    const char *outputs;
    ZooMaps maps;
    /* Adds the layers from the data (NODE_INPUT) to the logits. Returns the index of the logits'
     * node, which is the last one, or GRAPH_FAILED. */
    int (*build)(Graph *graph, const Config *config);
} ZooEntry;
/* model_check checks the rows of all models and all pruning methods; ERR_BUG names the first one
 * that is incomplete. zoo_row_check checks one model. */
Status model_check(void);
Status zoo_row_check(const ZooEntry *row);
/* All models of the zoo, NULL-terminated. To add a model, add its ZooEntry to MODELS in
 * src/model/zoo.c. */
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
