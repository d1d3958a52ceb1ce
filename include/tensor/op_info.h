/* Facts about each operation that hold on every backend, for modules that pass data to operations,
 * fuse, split or measure them. There is one const row for each operation. The first value of each
 * enum below means that the row does not set the field; tensor_check reports this as an error at
 * the start. */
#ifndef WEFT_TENSOR_OP_INFO_H
#define WEFT_TENSOR_OP_INFO_H

#include "tensor/op_spec.h"

/* How tensor parallelism divides an operation among the ranks of a group (graph_split). */
typedef enum OpSplit {
    SPLIT_UNSET,
    SPLIT_NEVER,
    /* a product with w[out,in], divided by its outputs, or by its inputs, which gives partial
     * sums */
    SPLIT_PRODUCT,
    /* queries, keys and values side by side, divided by heads of keys */
    SPLIT_HEADS,
    /* reads two halves of the last dimension and writes one half; both halves are divided in the
     * same way */
    SPLIT_HALVES,
    /* works on each element of the last dimension independently, so it runs on any slice of it */
    SPLIT_ELEMENTS,
    /* divided by rows of its table; each rank computes a partial sum */
    SPLIT_ROWS,
    /* divided by the logits that it reads */
    SPLIT_CLASSES,
} OpSplit;

/* How an operation may be fused with a neighbour (graph_fuse). */
typedef enum OpFuse {
    FUSE_UNSET,
    FUSE_NEVER,
    /* applies spec.act and does nothing else: the operation before it may do this instead */
    FUSE_ACT,
    /* a sum, which may become the residual of the operation that computes one of its inputs */
    FUSE_ADD,
    /* if the pool's mode is POOL_MAX, a relu before the operation may be moved behind it, because
     * the maximum of relu(x) equals relu of the maximum of x */
    FUSE_RELU_BEFORE_MAX,
    /* supports spec.x_act */
    FUSE_X_ACT,
} OpFuse;

/* Whether an operation adds spec.residual itself. */
typedef enum OpResidual {
    RESIDUAL_UNSET,
    RESIDUAL_NEVER,
    RESIDUAL_ALWAYS,
    /* only if BackendTable.dense_residual is SUPPORTED */
    RESIDUAL_BY_BACKEND,
} OpResidual;

/* Whether an operation exchanges data with other ranks while it runs: with its tensor-parallel
 * group through OpRun.exchange, or with the other replicas (OpSpec.synced). */
typedef enum OpCommunication {
    COMMUNICATES_UNSET,
    COMMUNICATES_NEVER,
    /* if OpSpec.slice is set */
    COMMUNICATES_IF_SLICED,
    COMMUNICATES_ALWAYS,
    /* supports OpSpec.synced, statistics over all replicas */
    COMMUNICATES_IF_SYNCED,
} OpCommunication;

/* Whether an operation treats each of the T tokens of (N,T,C) independently, so that it runs on any
 * slice of them. */
typedef enum OpTokens {
    TOKENS_UNSET,
    /* no: an output depends on several tokens, or the input is not (N,T,C) */
    TOKENS_TOGETHER,
    /* yes, and the operation has no parameters */
    TOKENS_SEPARATE,
    /* yes, and the operation has parameters; it sums their gradients over the slices of
     * OpSpec.token_slices on all ranks of the tensor-parallel group (cpu/token_sums.h) */
    TOKENS_SUMMED,
    /* yes, but the result also depends on the position of the token, which OpSpec.slice gives */
    TOKENS_BY_POSITION,
} OpTokens;

/* The kind of an operation's parameters. Their role in optim.groups and in pruning follows from
 * it. */
typedef enum OpParams {
    PARAMS_UNSET,
    PARAMS_NONE,
    /* weights and a bias, in an order of the operation's own */
    PARAMS_WEIGHT,
    /* weights and a bias; the weights can also be stored in plain order, so that another operation
     * can share them */
    PARAMS_PLAIN_WEIGHT,
    /* scale and shift of normalised values */
    PARAMS_NORM,
    /* a dense table of vectors, as of an embedding; it can also be stored in plain order */
    PARAMS_EMBEDDING,
    /* rows of sparse tables, which are not parameters (Graph.param has no entry for them) */
    PARAMS_SPARSE_ROWS,
} OpParams;

/* Arrays of OpRun that an operation reads in addition to x. */
typedef enum OpReads {
    READS_UNSET,
    READS_NOTHING,
    /* OpRun.labels: a loss */
    READS_LABELS,
    /* OpRun.targets: a loss */
    READS_TARGETS,
    /* OpRun.boxes: a loss */
    READS_BOXES,
    /* OpRun.sample */
    READS_SAMPLES,
    /* OpRun.bag. x is the data, which is used only for the number of samples; backward_weight
     * writes the gradients of table rows. */
    READS_IDS,
} OpReads;

/* How an operation moves its data through memory, for `weft bench`. */
typedef enum OpTraffic {
    TRAFFIC_UNSET,
    TRAFFIC_ONCE,
    /* forward and backward read their input twice, first for sums and then for the result */
    TRAFFIC_TWICE,
    /* reads one row of w for each row of its output, and not all of w */
    TRAFFIC_LOOK_UP,
} OpTraffic;

/* The gradients of an operation's inputs. */
typedef enum OpInputGradients {
    DX_UNSET,
    /* backward_data writes them */
    DX_WRITTEN,
    /* they are dy itself, after backward_begin (Op.dx_is_dy), so there is no backward_data */
    DX_IS_DY,
    /* there are none, because the inputs are ids, so there is no backward_data */
    DX_NONE,
} OpInputGradients;

/* value of OpInfo.acts of an operation that applies no activation to its output; 0 would mean that
 * the row does not set the field */
enum { ACTS_NONE = 1u << ACT_NONE };

/* size of tables with an entry for each OpKind */
enum { OP_MOST = 64 };

/* The row of an operation. */
typedef struct OpInfo {
    const char *name;
    /* Checks requirements on shapes and sizes that are the same on every backend. Messages name the
     * operation. The member is NULL if the operation has no requirements beyond those of all
     * operations. */
    Status (*check)(const OpSpec *spec);
    /* Returns the number of multiply-adds of forward for one micro-batch. The member is NULL if
     * memory limits the operation; its arithmetic is then not counted. */
    double (*macs)(const OpSpec *spec);
    /* text about how `macs` counts, if that is not obvious; else NULL */
    const char *macs_note;
    OpSplit split;
    OpFuse fuse;
    OpResidual residual;
    OpCommunication communication;
    OpTokens tokens;
    OpParams params;
    /* true: the operation can also run without its parameters */
    bool runs_without_params;
    OpReads reads;
    OpTraffic traffic;
    OpInputGradients dx;
    /* activations that the operation can apply to its output: bit 1u << ACT_RELU is set for relu,
     * and so on; ACTS_NONE: none. gelu also needs BackendTable.dense_gelu, and is impossible after
     * a residual; silu also needs BackendTable.batch_norm_silu and op_fuses_silu. */
    unsigned acts;
    /* above 0: the operation is also a layer of the same name with this number of inputs, without
     * attributes or parameters. The inputs and the output have the same shape, and channels are
     * independent of each other. 0: only a LayerKind makes this operation. */
    int layer_inputs;
    /* help text of that layer, one line */
    const char *layer_help;
    /* ONNX operator of that layer ("Add"); NULL: there is none */
    const char *layer_onnx;
} OpInfo;

/* Returns the row of an operation. kind: from 1 on; NULL if there is no such operation. */
const OpInfo *op_info(OpKind kind);
/* Checks the row of an operation. ERR_BUG, naming the operation: a field is not set, or two fields
 * contradict each other. */
Status op_info_check(const OpInfo *info);
/* Checks the rows of all operations, and the tables of the CPU and the CUDA backend. ERR_BUG: as
 * from op_info_check or backend_check. */
Status tensor_check(void);
/* Returns true if the operation computes a loss, from labels, targets or boxes. */
static inline bool op_is_loss(const OpInfo *info)
{
    return info->reads == READS_LABELS || info->reads == READS_TARGETS ||
           info->reads == READS_BOXES;
}
/* Returns true if w can be stored in plain order. */
static inline bool op_plain_weight(const OpInfo *info)
{
    return info->params == PARAMS_PLAIN_WEIGHT || info->params == PARAMS_EMBEDDING;
}
/* Returns true if an operation with this spec can apply silu to its output, provided that
 * OpInfo.acts has silu. */
static inline bool op_fuses_silu(const OpSpec *spec)
{
    return !spec->residual && !spec->fixed_stats;
}
/* Returns true if a run of the operation waits for other ranks. */
bool op_waits_for_ranks(const OpSpec *spec);
/* Returns true if the operation has parameters or table rows. Some of them are trained unless
 * spec->frozen is true. */
static inline bool op_has_values(const OpSpec *spec)
{
    return spec->w_count > 0 || op_info(spec->kind)->params == PARAMS_SPARSE_ROWS;
}

#endif
