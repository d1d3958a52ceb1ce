/* An operation on one backend: planned once for fixed shapes, then run with pointers only, so that
 * a step has no allocation and no shape logic. Not collective, except for an operation that talks
 * to other ranks through its Exchange (OpInfo.talks) or to the other replicas (OpSpec.synced). */
#ifndef WEFT_TENSOR_OP_H
#define WEFT_TENSOR_OP_H

#include "tensor/boxes.h"

/* The ranks that hold the slices of one tensor, for operations that need the other ranks' slices.
 * All these ranks make the same calls in the same order, on the backend's memory; the work is
 * queued on the compute stream. Collective on these ranks. */
typedef struct Exchange Exchange;
struct Exchange {
    int rank, size;
    void *user;
    /* whole = the slices `mine` of all ranks */
    void (*gather)(const Exchange *x, Slices s, const void *mine, void *whole);
    /* mine = this rank's slice of the sum of all ranks' `whole`, which are added in fp32 and
     * rounded once. They are added in rank order or, in a plan whose sums are cut into slices
     * (OpSpec.slices), by the binary tree of neighbours. */
    void (*reduce)(const Exchange *x, Slices s, const void *whole, void *mine);
};
/* The ranks that have slices of one tensor (Slices.ranks): `size` neighbours. The first one has
 * rank `first` in the group, and this rank is number `rank` of them. */
typedef struct ExchangeBlock {
    int first, size, rank;
} ExchangeBlock;
static inline ExchangeBlock exchange_block(const Exchange *x, const Slices *s)
{
    const int size = s->ranks > 0 ? s->ranks : x->size;
    return (ExchangeBlock){.first = x->rank / size * size, .size = size, .rank = x->rank % size};
}

/* The replicas, for operations with statistics over the micro-batches that all replicas process at
 * the same time (OpSpec.synced). All replicas make the same calls in the same order. Collective on
 * the replicas. */
typedef struct Replicas Replicas;
struct Replicas {
    int size;
    void *user;
    /* Replaces each of sums[count] by its sum over all replicas, in the order of the summation tree
     * with the replicas as leaves. Host memory. */
    void (*sum)(const Replicas *r, double *sums, int64_t count);
};

/* Numbers that queued work reads when it runs, in the backend's memory, so that work recorded once
 * can be replayed in every step. */
typedef struct StepNumbers {
    /* step number that seeds dropout */
    uint64_t step;
    /* OpRun.loss_scale of this step */
    float loss_scale;
} StepNumbers;

/* One bag's ids of one micro-batch (N samples): the rows that the ids stand for, and the place for
 * their gradients. Host memory. Field f of sample n, f from 0 among the bag's own fields, has the
 * ids numbered first[n * fields + f] .. first[n * fields + f + 1] - 1; id number i stands for row
 * row[i]. Rows are numbered 0 .. rows - 1 in the order in which their ids first appear. Samples
 * from OpRun.rows on are padding and have no ids. */
typedef struct BagRun {
    const int32_t *first, *row;
    int rows;
    /* values of the rows: those of row r begin at value[at[r] * width] */
    const float *value;
    const int32_t *at;
    /* Gradients of the rows, float[rows * width], written by backward_weight: row r's is the sum
     * over its ids in their order. NULL: not wanted. */
    float *grad;
} BagRun;

/* The memory and the numbers of one run of an operation: pointers into arenas, all on the backend's
 * device. Gradients of inputs are overwritten, and added to only with dx_add. */
typedef struct OpRun {
    const void *x[SPEC_INPUTS];
    void *y;
    /* gradient of y; backward_begin may overwrite it */
    void *dy;
    /* gradients of the inputs; NULL where need_dx is false */
    void *dx[SPEC_INPUTS];
    /* true: dx[0] already contains the gradient from other readers of x[0], and the operation adds
     * to it (only if op->dx_adds) */
    bool dx_add;
    /* Parameters in the op's stored order, valid in refresh, forward and backward_data; undefined
     * in other calls. */
    const float *w[SPEC_PARAMS];
    /* Gradients in the same order, written by backward_weight. The entries of running statistics
     * are set to this micro-batch's mean and unbiased variance, or to zeros if the statistics are
     * over a single number. */
    float *dw[SPEC_PARAMS];
    /* op->saved_bytes of memory: forward writes it, backward of the same micro-batch reads it and
     * may write more to it */
    void *saved;
    /* spec.x_act: the `saved` memory of x[0]'s producer */
    const void *x_saved;
    /* op->cache_bytes of memory: other forms of w, written by refresh */
    void *cache;
    /* op->workspace_bytes of scratch memory, valid within one call */
    void *workspace;
    /* tensor-group ranks; set if the operation exchanges slices */
    const Exchange *exchange;
    /* replicas; set if spec.synced */
    const Replicas *replicas;
    /* the micro-batch's bags, indexed by OpSpec.bag */
    const BagRun *bag;
    /* losses: class of each row of x, or of each pixel if x is (N,C,H,W), int32[loss_labels]; -1:
     * the pixel has no label */
    const int32_t *labels;
    /* softmax_loss: second labels; loss = label_share * loss(labels) + (1 - label_share) *
     * loss(labels_other). NULL: labels alone. CPU only. */
    const int32_t *labels_other;
    float label_share;
    /* losses for numbers: float[N][K], one for each output of a sample in plain order, K = C * H *
     * W of a field; NaN: missing */
    const float *targets;
    /* losses for numbers: finite weights >= 0 of the targets; NULL: all 1. weights_step 0:
     * float[K], the same for all samples and in all runs of the operation. weights_step K:
     * float[N][K]. */
    const float *target_weights;
    int64_t weights_step;
    /* losses for boxes: the target boxes */
    BoxTargets boxes;
    /* dropout: id of each sample, int64[N] */
    const int64_t *sample;
    /* dropout: seed of the run and number of the step */
    uint64_t seed, step;
    /* Number of real samples, which come first among the N. The others are padding: their x is
     * finite and their dy is 0, so only operations that take statistics must leave them out. */
    int rows;
    /* a loss writes dx = d(loss_scale * sum over rows) / dx; padded rows get 0 */
    float loss_scale;
    /* true: training; false: evaluation, where dropout and label smoothing are off and batch_norm
     * uses its running statistics */
    bool training;
    /* values that replace step and loss_scale; NULL: the fields above are used */
    const StepNumbers *numbers;
} OpRun;

typedef struct Backend Backend;
typedef struct Op Op;

/* The functions of one operation on one backend. A NULL slot means "nothing to do", except for plan
 * and forward, which are required. */
typedef struct OpTable {
    const char *name;
    /* Chooses layouts and kernels from the spec alone. On entry, op->spec.x[] has the layouts of
     * the producers, and preferred[] is a copy of it. plan may set the layout of spec.y, and may
     * change entries of preferred[] to layouts on which the operation is faster: the planner then
     * inserts a reorder and calls plan again with the new x. Fills the sizes in Op. */
    Status (*plan)(Op *op, Desc preferred[SPEC_INPUTS]);
    /* Makes `cache` from w; called after the parameters changed or were read into memory again. */
    void (*refresh)(Op *op, const OpRun *run);
    void (*forward)(Op *op, const OpRun *run);
    /* Called before backward_data and backward_weight. Applies the mask of a fused activation, for
     * which it may change dy in place if spec.act is not ACT_NONE. Norms also compute the sums here
     * that their gradients need. */
    void (*backward_begin)(Op *op, const OpRun *run);
    /* Writes dx[]. If dx[0] is not NULL and weight_later is false, it may also write dw[], which
     * backward_weight then need not do; so dw[] is valid memory in this case even if
     * spec.frozen. */
    void (*backward_data)(Op *op, const OpRun *run);
    /* Writes dw[]. Not called if spec.frozen, and an operation may rely on that when it plans. */
    void (*backward_weight)(Op *op, const OpRun *run);
    /* Convert parameter i between plain and stored order; host pointers. If both slots are NULL,
     * the stored order is the plain one. Any thread may call unpack while others compute. */
    void (*pack)(Op *op, int i, const float *plain, float *stored);
    void (*unpack)(Op *op, int i, const float *stored, float *plain);
    /* Whether the stored order of parameter i equals the plain order although the slot unpack is
     * set. NULL: not known. */
    bool (*stored_plain)(const Op *op, int i);
    /* releases impl */
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
    size_t saved_bytes, cache_bytes, workspace_bytes;
    /* spec.synced: doubles summed over the replicas in forward, and as many in backward_begin */
    int64_t synced_sums;
    /* approximate bytes that pack and unpack allocate and keep */
    size_t packing_bytes;
    /* true: backward reads this input, or the output */
    bool needs_x[SPEC_INPUTS], needs_y;
    /* true: y may share the memory of x[0] */
    bool y_inplace;
    /* true: dx[0] may share the memory of dy */
    bool dx_inplace;
    /* true: supports OpRun.dx_add */
    bool dx_adds;
    /* true: dx[i] is dy itself (after backward_begin): nothing is written */
    bool dx_alias[SPEC_INPUTS];
    /* true: y is x[0] itself: forward writes nothing (flatten, for example) */
    bool y_alias;
    /* true: dx[0] may share the memory of x[0] if no other operation reads x[0] after forward (some
     * losses set this). In a run with `training` set, forward may then already write dx[0] there,
     * and backward_data does nothing. So loss_scale and `numbers` must be valid in forward and have
     * the same values in backward. */
    bool dx_over_x;
    /* true: backward_weight may run long after backward_data: it reads x and dy only */
    bool weight_later;
    /* floating-point operations of one run; a multiply-add counts as two */
    double flops_forward, flops_backward;
    /* The kernels or the library that run the operation, as text for the user; NULL if the backend
     * has no choice. Borrowed from the backend. */
    const char *kernels;
};

/* Plans one operation. ERR_CONFIG names the operation if the backend lacks it. Owner: the
 * caller. */
Status op_new(Op **op, Backend *backend, const OpSpec *spec, Desc preferred[SPEC_INPUTS]);
void op_free(Op **op);
void op_refresh(Op *op, const OpRun *run);
void op_forward(Op *op, const OpRun *run);
void op_backward_begin(Op *op, const OpRun *run);
void op_backward_data(Op *op, const OpRun *run);
void op_backward_weight(Op *op, const OpRun *run);
/* Convert parameter i between the model's order and the op's stored order; host pointers. */
void op_pack(Op *op, int i, const float *plain, float *stored);
void op_unpack(Op *op, int i, const float *stored, float *plain);
/* Whether the stored order of parameter i is known to be the model's own. */
bool op_stored_plain(const Op *op, int i);

#endif
