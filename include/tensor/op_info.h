/* Facts about each operation that hold on every backend, for modules that route data to it, fuse,
 * split or measure it. One const row per operation. */
#ifndef WEFT_TENSOR_OP_INFO_H
#define WEFT_TENSOR_OP_INFO_H

#include "tensor/op_spec.h"

/* How tensor parallelism divides an operation among the ranks of a group (graph_split). */
typedef enum OpSplit {
    SPLIT_NEVER,
    /* a product with w[out,in]: by its outputs, or by its inputs, which gives partial sums */
    SPLIT_PRODUCT,
    /* queries, keys and values side by side: by heads of keys */
    SPLIT_HEADS,
    /* reads two halves of the last dimension and writes one: each half is cut the same way */
    SPLIT_HALVES,
    /* works on each element of the last dimension independently: on any slice */
    SPLIT_ELEMENTS,
    /* rows of its table; each rank gives a partial sum */
    SPLIT_ROWS,
    /* the logits that it reads */
    SPLIT_CLASSES,
} OpSplit;

/* How an operation may be fused with a neighbour (graph_fuse). */
typedef enum OpFuse {
    FUSE_NEVER,
    /* applies spec.act and nothing else: may become the act of its producer */
    FUSE_ACT,
    /* a sum: may become the residual of one of its producers */
    FUSE_ADD,
    /* relu of its input equals relu of its output if spec.pool is POOL_MAX: the two may be
     * swapped */
    FUSE_MAX,
} OpFuse;

/* Whether an operation adds spec.residual itself. */
typedef enum OpResidual {
    RESIDUAL_NEVER,
    RESIDUAL_ALWAYS,
    /* only if BackendTable.adds_to_dense */
    RESIDUAL_BY_BACKEND,
} OpResidual;

/* Whether an operation talks to the other ranks of its tensor group through OpRun.exchange. */
typedef enum OpTalks { TALKS_NEVER, TALKS_IF_SLICED, TALKS_ALWAYS } OpTalks;

enum { OP_MOST = 64 };

typedef struct OpInfo {
    const char *name;
    /* Checks shapes and sizes that every backend requires. NULL: no requirement beyond those of all
     * operations. Errors name the operation. */
    Status (*check)(const OpSpec *spec);
    /* Multiply-adds of forward for one micro-batch. NULL: the operation is memory-bound and its
     * arithmetic is not counted. */
    double (*macs)(const OpSpec *spec);
    /* how macs counts where that is not obvious, else NULL */
    const char *macs_note;
    OpSplit split;
    OpFuse fuse;
    OpResidual residual;
    OpTalks talks;
    /* Activations that the operation can apply to its output: bit 1u << ACT_RELU and so on. gelu
     * works only if BackendTable.fuses_gelu, and never after a residual. */
    unsigned acts;
    /* supports spec.x_act */
    bool takes_x_act;
    /* treats each of the T tokens of (N,T,C) independently: runs on any slice of them */
    bool token_wise;
    /* the result on a slice depends on spec.slice */
    bool reads_slice;
    /* can store w in plain order, so that another operation can share it */
    bool plain_weight;
    /* reads one row of w for each row of its output, not all of w */
    bool looks_up;
    /* forward and backward read their input twice: for sums, then for the result */
    bool two_passes;
    /* supports spec.synced */
    bool syncs;
    /* normalizes: its parameters scale and shift normalised values; is_table: w is a table of
     * vectors */
    bool normalizes, is_table;
    /* reads OpRun.labels: a loss */
    bool reads_labels;
    /* reads OpRun.targets: a loss */
    bool reads_targets;
    /* reads OpRun.sample */
    bool reads_samples;
    /* Reads OpRun.bag. Its input is the data, used only for the number of samples; it has rows of
     * sparse tables instead of parameters, and backward_weight writes their gradients. */
    bool reads_ids;
    /* The operation is also a layer of the same name, without attributes or parameters, with this
     * many inputs of one shape and an output of that shape; each channel is independent. 0: it is
     * no layer by itself, and a LayerKind makes it. */
    int layer_inputs;
    /* help text of that layer, one line */
    const char *layer_help;
    /* ONNX operator of that layer ("Add"); NULL: none */
    const char *layer_onnx;
} OpInfo;

/* The row of an operation, kind from 1 on; NULL if there is no such operation. */
const OpInfo *op_info(OpKind kind);
/* Whether the operation computes a loss, from labels or targets. */
static inline bool op_is_loss(const OpInfo *info)
{
    return info->reads_labels || info->reads_targets;
}
/* Whether running the operation waits for other ranks. */
bool op_waits_for_ranks(const OpSpec *spec);
/* Whether the operation has parameters or table rows; some of them are trained unless
 * spec.frozen. */
static inline bool op_has_values(const OpSpec *spec)
{
    return spec->w_count > 0 || op_info(spec->kind)->reads_ids;
}

#endif
