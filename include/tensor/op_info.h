/* Facts about each operation that hold on every backend, for the modules that pass data to
 * operations, fuse, split or measure them. There is one const row per operation. The first value of
 * each enum below means that the row does not set the field; tensor_check, at start, reports that
 * as an error. */
#ifndef WEFT_TENSOR_OP_INFO_H
#define WEFT_TENSOR_OP_INFO_H

#include "tensor/op_spec.h"

/* How tensor parallelism divides an operation among the ranks of a group (graph_split). */
typedef enum OpSplit {
    SPLIT_UNSET,
    SPLIT_NEVER,
    /* a product with w[out,in]: by its outputs, or by its inputs, which gives partial sums */
    SPLIT_PRODUCT,
    /* queries, keys and values side by side: by heads of keys */
    SPLIT_HEADS,
    /* reads two halves of the last dimension and writes one: each half is cut the same way */
    SPLIT_HALVES,
    /* works on each element of the last dimension independently: on any slice */
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
    /* applies spec.act and nothing else: may become the act of its producer */
    FUSE_ACT,
    /* a sum: may become the residual of one of its producers */
    FUSE_ADD,
    /* a relu before the operation may be moved behind it, if its mode is POOL_MAX: the maximum of
     * relu(x) equals relu of the maximum of x */
    FUSE_MAX,
    /* supports spec.x_act */
    FUSE_X_ACT,
} OpFuse;

/* Whether an operation adds spec.residual itself. */
typedef enum OpResidual {
    RESIDUAL_UNSET,
    RESIDUAL_NEVER,
    RESIDUAL_ALWAYS,
    /* only if BackendTable.adds_to_dense */
    RESIDUAL_BY_BACKEND,
} OpResidual;

/* Whether an operation talks to other ranks: to those of its tensor group through OpRun.exchange,
 * or to the other replicas (spec.synced). */
typedef enum OpTalks {
    TALKS_UNSET,
    TALKS_NEVER,
    TALKS_IF_SLICED,
    TALKS_ALWAYS,
    /* supports spec.synced: statistics over all replicas */
    TALKS_IF_SYNCED,
} OpTalks;

/* Whether an operation treats each of the T tokens of (N,T,C) independently, so that it runs on any
 * slice of them. */
typedef enum OpTokens {
    TOKENS_UNSET,
    /* no: an output depends on several tokens, or the input is not (N,T,C) */
    TOKENS_TOGETHER,
    TOKENS_SEPARATE,
    /* yes, and the operation has parameters, whose gradients it sums over the slices of
     * OpSpec.tokens on all ranks of the tensor group (cpu/token_sums.h) */
    TOKENS_SUMMED,
    /* yes, but the result also depends on the token's position, which spec.slice gives */
    TOKENS_BY_POSITION,
} OpTokens;

/* Kind of an operation's parameters, from which their role in optim.groups and in pruning
 * follows. */
typedef enum OpParams {
    PARAMS_UNSET,
    PARAMS_NONE,
    /* weights and a bias, in an order of the operation's own */
    PARAMS_WEIGHT,
    /* weights and a bias; w can also be stored in plain order, so that another operation can share
     * it */
    PARAMS_PLAIN_WEIGHT,
    /* scale and shift of normalised values */
    PARAMS_NORM,
    /* w is a dense table of vectors, such as an embedding; it can also be stored in plain order */
    PARAMS_EMBEDDING,
    /* rows of sparse tables, which are not parameters (Graph.param has no entry for them) */
    PARAMS_SPARSE_ROWS,
} OpParams;

/* Input of an operation in addition to x. */
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
    /* OpRun.bag. x is the data, used only for the number of samples; backward_weight writes the
     * gradients of table rows. */
    READS_IDS,
} OpReads;

/* How often an operation moves its data through memory, for `weft bench`. */
typedef enum OpTraffic {
    TRAFFIC_UNSET,
    TRAFFIC_ONCE,
    /* forward and backward read their input twice: for sums, then for the result */
    TRAFFIC_TWICE,
    /* reads one row of w for each row of its output, not all of w */
    TRAFFIC_LOOK_UP,
} OpTraffic;

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
    OpTokens tokens;
    OpParams params;
    /* true: the operation runs without its parameters, too */
    bool bare;
    OpReads reads;
    OpTraffic traffic;
    /* Activations that the operation can apply to its output: bit 1u << ACT_RELU and so on. gelu
     * works only if BackendTable.fuses_gelu, and never after a residual; silu only if
     * BackendTable.fuses_silu and op_fuses_silu. */
    unsigned acts;
    /* The operation is also a layer of the same name, without attributes or parameters. Its
     * layer_inputs inputs and its output have one shape, and each channel is independent. 0: only a
     * LayerKind makes this operation. */
    int layer_inputs;
    /* help text of that layer, one line */
    const char *layer_help;
    /* ONNX operator of that layer ("Add"); NULL: none */
    const char *layer_onnx;
} OpInfo;

/* The row of an operation, kind from 1 on; NULL if there is no such operation. */
const OpInfo *op_info(OpKind kind);
/* ERR_BUG, naming the operation, if a field of its row is not set or two fields contradict each
 * other. */
Status op_info_check(const OpInfo *info);
/* Checks the rows of all operations, and their tables on the CPU and the CUDA backend. */
Status tensor_check(void);
/* Whether the operation computes a loss, from labels, targets or boxes. */
static inline bool op_is_loss(const OpInfo *info)
{
    return info->reads == READS_LABELS || info->reads == READS_TARGETS ||
           info->reads == READS_BOXES;
}
/* Whether w can be stored in plain order. */
static inline bool op_plain_weight(const OpInfo *info)
{
    return info->params == PARAMS_PLAIN_WEIGHT || info->params == PARAMS_EMBEDDING;
}
/* Whether the operation can apply silu to its output, with this spec. */
static inline bool op_fuses_silu(const OpSpec *spec)
{
    return !spec->residual && !spec->fixed_stats;
}
/* Whether running the operation waits for other ranks. */
bool op_waits_for_ranks(const OpSpec *spec);
/* Whether the operation has parameters or table rows; some of them are trained unless
 * spec.frozen. */
static inline bool op_has_values(const OpSpec *spec)
{
    return spec->w_count > 0 || op_info(spec->kind)->params == PARAMS_SPARSE_ROWS;
}

#endif
