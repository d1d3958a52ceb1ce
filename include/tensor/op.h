/* An operation on one backend: planned once for fixed shapes, then run with pointers only: no
 * allocation, no shape logic in a step. Not collective, but for an operation that talks to other
 * ranks (OpInfo.talks) by its Exchange, or to the other replicas (OpSpec.synced). */
#ifndef WEFT_TENSOR_OP_H
#define WEFT_TENSOR_OP_H

#include "tensor/op_spec.h"

/* The ranks that hold the slices of one tensor, for operations that need the others'. Calls are
 * collective on them, the same in the same order, on the backend's memory; what they do is queued
 * on its compute stream. */
typedef struct Exchange Exchange;
struct Exchange {
    int rank, size;
    void *user;
    void (*gather)(const Exchange *x, Slices s, const void *mine, void *whole);
    /* mine = this rank's slice of the sum of every rank's whole: added in the ranks' order in fp32,
     * rounded once */
    void (*reduce)(const Exchange *x, Slices s, const void *whole, void *mine);
};

/* The replicas, each at work on a micro-batch, for operations that take their statistics over all
 * of these (OpSpec.synced). Calls are collective on them, the same in the same order. */
typedef struct Replicas Replicas;
struct Replicas {
    int size;
    void *user;
    /* sums becomes every replica's sum, added by the tree of their numbers; host memory */
    void (*sum)(const Replicas *r, double *sums, int64_t count);
};

/* What queued work reads when it runs, in the backend's memory, so that work that is recorded once
 * serves every step. */
typedef struct StepNumbers {
    /* of the dropout */
    uint64_t step;
    /* as OpRun's */
    float loss_scale;
} StepNumbers;

/* What a bag has of one micro-batch (N samples): the rows that its ids stand for, and where their
 * gradients go. Host memory. Field f of sample n, f from 0 among the bag's own fields, has the ids
 * number first[n * fields + f] .. first[n * fields + f + 1] - 1, of which number i is for row
 * row[i]. Rows are numbered 0 .. rows - 1 by the order in which ids first come; only those of
 * samples below OpRun.rows come. */
typedef struct BagRun {
    const int32_t *first, *row;
    int rows;
    /* row r is value[at[r] * width ..]; */
    const float *value;
    const int32_t *at;
    /* and its gradient, which backward_weight writes, grad[r * width ..]: the sum over its ids in
     * their order, of all rows; NULL: it is not wanted */
    float *grad;
} BagRun;

/* What one run of an operation touches: pointers into arenas, all on the backend's device.
 * Gradients of inputs are written, and added to only with dx_add. */
typedef struct OpRun {
    const void *x[SPEC_INPUTS];
    void *y;
    /* may be overwritten by backward_begin */
    void *dy;
    /* NULL where need_dx is false */
    void *dx[SPEC_INPUTS];
    /* dx[0] has what x[0]'s other readers gave, and is added to (op->dx_adds) */
    bool dx_add;
    /* In the op's stored order; for refresh, forward and backward_data, else anything. */
    const float *w[SPEC_PARAMS];
    /* Like w; written by backward_weight. For running statistics: this micro-batch's mean and
     * (unbiased) variance; zeros for both where they are over one number. */
    float *dw[SPEC_PARAMS];
    /* saved_bytes: written by forward, read by backward of the same micro-batch */
    void *saved;
    /* x_act: what x[0]'s producer has written there */
    const void *x_saved;
    /* cache_bytes: other forms of w, written by refresh */
    void *cache;
    /* workspace_bytes: scratch within one call */
    void *workspace;
    /* where slices are exchanged */
    const Exchange *exchange;
    /* where spec.synced */
    const Replicas *replicas;
    /* bags: those of the micro-batch, by OpSpec.bag */
    const BagRun *bag;
    /* losses */
    const int32_t *labels;
    /* softmax_loss: loss = label_share * that of labels + (1 - label_share) * that of these; NULL:
     * of labels alone. The CPU's only */
    const int32_t *labels_other;
    float label_share;
    const float *targets;
    /* dropout: id of each of the N samples */
    const int64_t *sample;
    /* dropout */
    uint64_t seed, step;
    /* samples that are real: the first `rows` of N. The rest is padding: x is finite there, and dy
     * is 0, so that only what takes statistics must leave it out */
    int rows;
    /* dx of a loss = d(loss_scale * sum over rows)/dx; padded rows get 0 */
    float loss_scale;
    bool training;
    /* those hold in place of step and loss_scale; NULL: these hold */
    const StepNumbers *numbers;
} OpRun;

typedef struct Backend Backend;
typedef struct Op Op;

/* One operation on one backend. NULL slots mean "nothing to do" but for plan and forward. */
typedef struct OpTable {
    const char *name;
    /* Chooses layouts and kernels by spec alone. On entry op->spec is set with x[] as the producers
     * give them. It may set spec.y's layout, and *preferred (in: x[0..]; an entry may be changed to
     * a layout this op would rather have: the planner then inserts a reorder and calls plan again
     * with that x). Fills the sizes in Op. */
    Status (*plan)(Op *op, Desc preferred[SPEC_INPUTS]);
    /* After the parameters changed, or came into memory again. */
    void (*refresh)(Op *op, const OpRun *run);
    void (*forward)(Op *op, const OpRun *run);
    /* May change dy in place where spec.act is not ACT_NONE (the fused activation's mask). */
    void (*backward_begin)(Op *op, const OpRun *run);
    /* Writes dx[]; where not weight_later, perhaps dw[], too, if there is a dx[0], in place of
     * backward_weight: then dw[] is memory, also where spec.frozen. */
    void (*backward_data)(Op *op, const OpRun *run);
    /* writes dw[]; not run where spec.frozen, which an operation may plan by */
    void (*backward_weight)(Op *op, const OpRun *run);
    /* Host pointers. NULL: the stored order is the plain one. unpack may be called by any thread,
     * while others compute. */
    void (*pack)(Op *op, int i, const float *plain, float *stored);
    void (*unpack)(Op *op, int i, const float *stored, float *plain);
    /* Where there is pack: is the stored order of parameter i the plain one all the same? NULL: it
     * is not known. */
    bool (*stored_plain)(const Op *op, int i);
    /* releases impl */
    void (*free)(Op *op);
} OpTable;

struct Op {
    const OpTable *table;
    /* borrowed */
    Backend *backend;
    OpSpec spec;
    /* the backend's own, released by table->free */
    void *impl;
    /* stored floats of each parameter, padding included */
    int64_t w_elements[SPEC_PARAMS];
    size_t saved_bytes, cache_bytes, workspace_bytes;
    /* spec.synced: so many numbers are summed over the replicas in forward, as many in
     * backward_begin */
    int64_t synced_sums;
    /* about what pack and unpack make for themselves and keep */
    size_t packing_bytes;
    /* backward reads them */
    bool needs_x[SPEC_INPUTS], needs_y;
    /* y may be x[0]'s memory */
    bool y_inplace;
    /* dx[0] may be dy's memory */
    bool dx_inplace;
    /* the gradient may be added to what is in dx[0] */
    bool dx_adds;
    /* dx[i] IS dy (after backward_begin): nothing is written */
    bool dx_alias[SPEC_INPUTS];
    /* y IS x[0]: nothing is written (flatten) */
    bool y_alias;
    /* dx[0] may be x[0]'s memory, where nobody else reads x[0] after forward (softmax_loss): it may
     * hold either from there on, for forward of a run that is `training` may write dx[0] already,
     * and backward_data then does not. loss_scale and `numbers` must hold at forward, and stay for
     * backward. */
    bool dx_over_x;
    /* backward_weight may run long after backward_data: it reads x and dy only */
    bool weight_later;
    /* of one run, multiply and add counted as two */
    double flops_forward, flops_backward;
    /* whose, in words, where there was a choice; else NULL. The backend's */
    const char *kernels;
};

/* Plans one operation. ERR_CONFIG names the operation where the backend lacks it. Owner: the
 * caller. */
Status op_new(Op **op, Backend *backend, const OpSpec *spec, Desc preferred[SPEC_INPUTS]);
void op_free(Op **op);
void op_refresh(Op *op, const OpRun *run);
void op_forward(Op *op, const OpRun *run);
void op_backward_begin(Op *op, const OpRun *run);
void op_backward_data(Op *op, const OpRun *run);
void op_backward_weight(Op *op, const OpRun *run);
/* Parameter i between the model's own order and the op's stored order; host pointers. */
void op_pack(Op *op, int i, const float *plain, float *stored);
void op_unpack(Op *op, int i, const float *stored, float *plain);
/* Is the stored order known to be the model's own? */
bool op_stored_plain(const Op *op, int i);

#endif
