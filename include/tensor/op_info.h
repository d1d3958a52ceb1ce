/* What an operation is, for all who route data to it, fuse, divide or measure it: one const row,
 * whatever the backend. */
#ifndef WEFT_TENSOR_OP_INFO_H
#define WEFT_TENSOR_OP_INFO_H

#include "tensor/op_spec.h"

/* How tensor parallelism divides it among the ranks of a group (graph_split). */
typedef enum OpSplit {
    SPLIT_NEVER,
    /* a product with w[out,in]: by its outputs, or, giving a part of a sum, by its inputs */
    SPLIT_PRODUCT,
    /* queries, keys and values side by side: by heads of keys */
    SPLIT_HEADS,
    /* two halves of the last dimension side by side, to one: each half alike */
    SPLIT_HALVES,
    /* each element of the last dimension by itself: on whatever slice it is given */
    SPLIT_ELEMENTS,
    /* by the rows of its table, giving a part of a sum */
    SPLIT_ROWS,
    /* by the logits that it reads */
    SPLIT_CLASSES,
} OpSplit;

/* What it is to a neighbour (graph_fuse). */
typedef enum OpFuse {
    FUSE_NEVER,
    /* nothing but spec.act of its input: may become its producer's act */
    FUSE_ACT,
    /* a sum: may become the residual of one of its producers */
    FUSE_ADD,
    /* a relu of its input may be one of its output instead, where spec.pool is POOL_MAX */
    FUSE_MAX,
} OpFuse;

/* Whether it adds spec.residual itself. */
typedef enum OpResidual {
    RESIDUAL_NEVER,
    RESIDUAL_ALWAYS,
    /* where BackendTable.adds_to_dense */
    RESIDUAL_BY_BACKEND,
} OpResidual;

/* Whether it talks to the other ranks of a tensor group, by OpRun.exchange. */
typedef enum OpTalks { TALKS_NEVER, TALKS_IF_SLICED, TALKS_ALWAYS } OpTalks;

enum { OP_MOST = 64 };

typedef struct OpInfo {
    const char *name;
    /* Shapes and sizes that every backend needs alike. NULL: there is nothing beyond what all
     * operations need. Errors name the operation. */
    Status (*check)(const OpSpec *spec);
    /* Multiply-adds of forward, of one micro-batch. NULL: memory bounds it, and they do not
     * count. */
    double (*macs)(const OpSpec *spec);
    /* how macs counts, where that is not plain; else NULL */
    const char *macs_note;
    OpSplit split;
    OpFuse fuse;
    OpResidual residual;
    OpTalks talks;
    /* Activations that it can apply to its output: a bit for each, 1u << ACT_RELU. gelu only where
     * BackendTable.fuses_gelu, and never on top of a residual. */
    unsigned acts;
    /* spec.x_act */
    bool takes_x_act;
    /* of (N,T,C): each of the T on its own, so that a slice of them will do */
    bool token_wise;
    /* what it does to a slice depends on spec.slice */
    bool reads_slice;
    /* Can store w in its plain order, so that another operation may have the same. */
    bool plain_weight;
    /* Reads one row of w for each of its output's rows, not all of w. */
    bool looks_up;
    /* Forward and backward go over their input twice: for sums, then for the result. */
    bool two_passes;
    /* spec.synced */
    bool syncs;
    /* Its parameters scale and shift what it has normalised; w is a table of vectors. */
    bool normalizes, is_table;
    /* OpRun.labels: a loss */
    bool reads_labels;
    /* OpRun.targets: a loss */
    bool reads_targets;
    /* OpRun.sample */
    bool reads_samples;
    /* OpRun.bag: of its input, which is the data, it reads how many samples there are, and it has
     * sparse tables instead of parameters, whose rows backward_weight writes the gradients of */
    bool reads_ids;
    /* It is also a layer, of its name, without attributes or parameters: of so many inputs of one
     * shape, and with an output of that, each channel by itself. 0: it is not, and a LayerKind says
     * how a layer asks for it. */
    int layer_inputs;
    /* one line */
    const char *layer_help;
    /* what such a layer is in ONNX: "Add"; NULL: nothing */
    const char *layer_onnx;
} OpInfo;

/* kind: from 1 on. NULL where there is no such operation. */
const OpInfo *op_info(OpKind kind);
/* Does it give results to be summed up, from labels or targets? */
static inline bool op_is_loss(const OpInfo *info)
{
    return info->reads_labels || info->reads_targets;
}
/* Does running it wait for other ranks? */
bool op_asks_ranks(const OpSpec *spec);
/* Has it parameters, or rows of tables? Of which some are trained, where not spec.frozen. */
static inline bool op_has_values(const OpSpec *spec)
{
    return spec->w_count > 0 || op_info(spec->kind)->reads_ids;
}

#endif
