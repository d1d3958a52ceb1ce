/* An operation on one backend: it is planned once for fixed shapes and then run with pointers only,
 * so that a step needs no allocation and no shape logic. Not collective, except for an operation
 * that exchanges data with other ranks through OpRun.exchange (OpInfo.communication) or with the
 * other replicas (OpSpec.synced). */
#ifndef WEFT_TENSOR_OP_H
#define WEFT_TENSOR_OP_H

#include "tensor/boxes.h"

/* The ranks that have the slices of one tensor, for operations that need the slices of other ranks.
 * All these ranks make the same calls in the same order, on the backend's memory; the work is
 * queued on the compute stream. The calls are collective on these ranks. */
typedef struct Exchange Exchange;
struct Exchange {
    /* size: number of ranks; rank: number of this rank among them */
    int rank, size;
    void *user;
    /* Sets `whole` to the slices `mine` of all ranks. */
    void (*all_gather)(const Exchange *x, Slices s, const void *mine, void *whole);
    /* Sets `mine` to this rank's slice of the sum of all ranks' tensors `whole`, which are added in
     * fp32 and rounded once. They are added in the order of the ranks or, in a plan whose sums are
     * cut into slices (OpSpec.slices), by the binary tree of neighbours. */
    void (*reduce_scatter)(const Exchange *x, Slices s, const void *whole, void *mine);
};
/* The neighbours in the tensor-parallel group that together have the slices of one tensor. They may
 * be fewer than the ranks of an Exchange (Slices.ranks). size: their number; first: rank of the
 * first of them in the group; rank: number of this rank among them. */
typedef struct ExchangeBlock {
    int first, size, rank;
} ExchangeBlock;
static inline ExchangeBlock exchange_block(const Exchange *x, const Slices *s)
{
    const int size = s->ranks > 0 ? s->ranks : x->size;
    return (ExchangeBlock){.first = x->rank / size * size, .size = size, .rank = x->rank % size};
}

/* The replicas, for operations with statistics over the micro-batches that all replicas process at
 * the same time (OpSpec.synced). All replicas make the same calls in the same order. The calls are
 * collective on the replicas. */
typedef struct Replicas Replicas;
struct Replicas {
    int size;
    void *user;
    /* Replaces each of sums[count] by its sum over all replicas, in the order of the summation tree
     * with the replicas as leaves. sums is in host memory. */
    void (*sum)(const Replicas *r, double *sums, int64_t count);
};

/* Numbers in the backend's memory that queued work reads when it runs, so that work that is
 * recorded once can be replayed in every step. */
typedef struct StepNumbers {
    /* number of the step, on which dropout masks depend */
    uint64_t step;
    /* OpRun.loss_factor of this step */
    float loss_factor;
} StepNumbers;

/* The ids of one bag in one micro-batch of N samples: the rows that belong to them, and the memory
 * for the rows' gradients. Host memory. Field f of sample n, where f counts the bag's own fields
 * from 0, has the ids with the numbers first[n * fields + f] .. first[n * fields + f + 1] - 1. The
 * row of id number i is row[i]. Rows are numbered 0 .. rows - 1 in the order in which their ids
 * first appear. Samples from OpRun.sample_count on are padding and have no ids. */
typedef struct BagInput {
    const int32_t *first, *row;
    int rows;
    /* values: row r is value[at[r] * width] .. value[(at[r] + 1) * width - 1] */
    const float *value;
    const int32_t *at;
    /* gradients of the rows, float[rows * width], which backward_weight writes; the gradient of a
     * row is the sum over its ids in their order. NULL: they are not needed. */
    float *grad;
} BagInput;

/* The memory and the numbers of one run of an operation: pointers into arenas, all on the backend's
 * device unless a comment says otherwise. Gradients of inputs are overwritten, except that dx[0] is
 * added to if dx_add is true. */
typedef struct OpRun {
    const void *x[SPEC_INPUTS];
    void *y;
    /* gradient of y; backward_begin may overwrite it */
    void *dy;
    /* gradients of the inputs; dx[i] is NULL if need_dx[i] is false */
    void *dx[SPEC_INPUTS];
    /* true: dx[0] already contains the gradient from other readers of x[0], and the operation adds
     * to it; only if Op.dx_adds is true */
    bool dx_add;
    /* parameters in the stored order of the Op, valid in refresh, forward and backward_data;
     * undefined in other calls */
    const float *w[SPEC_PARAMS];
    /* gradients of the parameters in the same order, which backward_weight writes. For running
     * statistics it writes this micro-batch's mean and unbiased variance, or zeros if the
     * statistics are over a single number. */
    float *dw[SPEC_PARAMS];
    /* memory of Op.saved_bytes bytes: forward writes it, backward of the same micro-batch reads it
     * and may write more to it */
    void *saved;
    /* if spec.x_act is set: the `saved` memory of the operation that computes x[0] */
    const void *x_saved;
    /* memory of Op.cache_bytes bytes: other forms of w, written by refresh or, if
     * Op.cache_is_copies is true, by updates */
    void *cache;
    /* scratch memory of Op.workspace_bytes bytes, valid within one call */
    void *workspace;
    /* ranks of the tensor-parallel group; set if the operation exchanges slices */
    const Exchange *exchange;
    /* replicas; set if spec.synced is true */
    const Replicas *replicas;
    /* the micro-batch's bags, indexed by OpSpec.bag */
    const BagInput *bag;
    /* losses: class of each row of x, or of each pixel if x is (N,C,H,W), int32[loss_labels]; -1:
     * the pixel has no label */
    const int32_t *labels;
    /* softmax_loss: second labels; the loss is label_share * loss(labels) + (1 - label_share) *
     * loss(labels_other). NULL: the loss uses only `labels`. CPU only. */
    const int32_t *labels_other;
    float label_share;
    /* losses for numbers: the targets, float[N][K], one for each output of a sample in plain order
     * (K = C * H * W for fields); NaN: the target is missing */
    const float *targets;
    /* losses for numbers: weights of the targets, finite and at least 0; NULL: all are 1. If
     * weights_stride is 0, they are float[K], the same for all samples and in all runs of the
     * operation; if it is K, they are float[N][K]. */
    const float *target_weights;
    int64_t weights_stride;
    /* losses for boxes: the target boxes */
    BoxTargets boxes;
    /* dropout: number of each sample in the data set, int64[N] */
    const int64_t *sample;
    /* dropout: seed of the run and number of the step */
    uint64_t seed, step;
    /* number of real samples, which come first among the N. The others are padding: their x is
     * finite and their dy is 0, so only operations that take statistics must leave them out. */
    int sample_count;
    /* losses: factor of the gradients: dx is the derivative of loss_factor * (sum of the loss over
     * the rows); padding rows get 0 */
    float loss_factor;
    /* true: training; false: evaluation, where dropout and label smoothing are off and batch_norm
     * uses its running statistics */
    bool training;
    /* values that replace step and loss_factor; NULL: the fields above are used */
    const StepNumbers *numbers;
} OpRun;

typedef struct Backend Backend;
typedef struct Op Op;

/* The functions of one operation on one backend. plan and forward are required; so are
 * backward_data if OpInfo.dx is DX_WRITTEN, and backward_weight if the operation has parameters or
 * table rows. Any other member that is NULL means that there is nothing to do. */
typedef struct OpTable {
    const char *name;
    /* Chooses layouts and kernels from the spec alone, and sets the sizes in Op. On entry,
     * op->spec.x[] has the layouts of the operations that compute the inputs, and preferred[] is a
     * copy of it. plan may set the layout of spec.y, and may change entries of preferred[] to
     * layouts with which the operation is faster: the planner then inserts a reorder and calls plan
     * again with the new x. */
    Status (*plan)(Op *op, Desc preferred[SPEC_INPUTS]);
    /* Writes OpRun.cache from w. Called after parameters have changed or have been read into memory
     * again, but not after an update that has written the copies itself (Op.cache_is_copies). */
    void (*refresh)(Op *op, const OpRun *run);
    void (*forward)(Op *op, const OpRun *run);
    /* Called before backward_data and backward_weight. Applies the mask of a fused activation; for
     * this it may change dy in place if spec.act is not ACT_NONE. Norms also compute here the sums
     * that their gradients need. */
    void (*backward_begin)(Op *op, const OpRun *run);
    /* Writes dx[]. If dx[0] is not NULL and Op.weight_may_wait is false, it may also write dw[],
     * and backward_weight then need not write it. Therefore dw[] is valid memory in this case, even
     * if spec.frozen is true. */
    void (*backward_data)(Op *op, const OpRun *run);
    /* Writes dw[]. It is never called if spec.frozen is true; an operation may rely on this when it
     * is planned. */
    void (*backward_weight)(Op *op, const OpRun *run);
    /* Convert parameter i between plain and stored order, in host memory. If both members are NULL,
     * the stored order is the plain one. Any thread may call unpack while others compute. */
    void (*pack)(Op *op, int i, const float *plain, float *stored);
    void (*unpack)(Op *op, int i, const float *stored, float *plain);
    /* Returns true if the stored order of parameter i equals the plain order although `unpack` is
     * set. The member is NULL if this is not known. */
    bool (*stored_plain)(const Op *op, int i);
    /* Releases Op.impl. */
    void (*free)(Op *op);
} OpTable;

struct Op {
    const OpTable *table;
    /* borrowed */
    Backend *backend;
    OpSpec spec;
    /* private data of the backend, released by table->free */
    void *impl;
    /* stored floats of each parameter, padding included */
    int64_t w_elements[SPEC_PARAMS];
    /* bytes of OpRun.saved, OpRun.cache and OpRun.workspace */
    size_t saved_bytes, cache_bytes, workspace_bytes;
    /* true: after the first refresh, OpRun.cache changes only by copies of parameters: their
     * elements in the stored order, rounded to spec.y.dtype, which is a 16-bit type. An update may
     * then write the copies in its own pass (UpdatePiece.copy), and refresh is not needed. */
    bool cache_is_copies;
    /* bytes from OpRun.cache to the copy of parameter i, a multiple of 16; -1: there is none. Set
     * only if cache_is_copies is true. */
    int64_t copy_offset[SPEC_PARAMS];
    /* if spec.synced is true: number of doubles that are summed over the replicas in forward, and
     * again in backward_begin */
    int64_t synced_sums;
    /* approximate bytes that pack and unpack allocate and keep */
    size_t packing_bytes;
    /* true: backward reads input i (needs_x[i]), or the output (needs_y) */
    bool needs_x[SPEC_INPUTS], needs_y;
    /* true: y may share the memory of x[0] */
    bool y_inplace;
    /* true: dx[0] may share the memory of dy */
    bool dx_inplace;
    /* true: supports OpRun.dx_add */
    bool dx_adds;
    /* true: dx[i] is dy itself, after backward_begin, and nothing is written */
    bool dx_is_dy[SPEC_INPUTS];
    /* true: y is x[0] itself, and forward writes nothing (flatten, for example) */
    bool y_is_x;
    /* true: dx[0] may share the memory of x[0] if no other operation reads x[0] after forward; some
     * losses set this. In a run with OpRun.training, forward may then already write dx[0] there,
     * and backward_data does nothing. So OpRun.loss_factor and OpRun.numbers must be valid in
     * forward and have the same values in backward. */
    bool dx_over_x;
    /* true: backward_weight may run long after backward_data, because it reads only x and dy */
    bool weight_may_wait;
    /* number of floating-point operations of one run of forward, and of backward; a multiply-add
     * counts as two */
    double flops_forward, flops_backward;
    /* kernels or library that run the operation, as text for the user; borrowed from the backend;
     * NULL: the backend has no choice */
    const char *kernels;
};

/* Plans one operation. ERR_CONFIG: the backend lacks the operation; the message names it.
 * preferred: see OpTable.plan. Release with op_free. */
Status op_new(Op **op, Backend *backend, const OpSpec *spec, Desc preferred[SPEC_INPUTS]);
void op_free(Op **op);
void op_refresh(Op *op, const OpRun *run);
void op_forward(Op *op, const OpRun *run);
void op_backward_begin(Op *op, const OpRun *run);
void op_backward_data(Op *op, const OpRun *run);
void op_backward_weight(Op *op, const OpRun *run);
/* Convert parameter i between plain order and the stored order of the Op, in host memory. */
void op_pack(Op *op, int i, const float *plain, float *stored);
void op_unpack(Op *op, int i, const float *stored, float *plain);
/* Returns true if the stored order of parameter i is known to be the plain order. */
bool op_stored_plain(const Op *op, int i);

#endif
