/* The shared code of all losses except yolo_loss, and the interface between loss.c and
 * softmax_sliced.c, which computes softmax_loss of rows that are cut into slices. */
#ifndef WEFT_TENSOR_CPU_LOSS_H
#define WEFT_TENSOR_CPU_LOSS_H

#include "../view.h"

/* Sizes of a loss. A row is the logits that belong to one label; in a loss of numbers, all outputs
 * of a sample. */
typedef struct Loss {
    /* rows of all samples */
    int64_t rows;
    /* rows of one sample */
    int64_t per_sample;
    /* elements of a row on this rank */
    int64_t width;
    /* first class whose logit is on this rank */
    int64_t first;
    /* classes on all ranks */
    int64_t classes;
    /* type of the logits and of their gradient */
    DType type;
} Loss;

typedef struct LossTask {
    const Op *op;
    const Loss *l;
    const OpRun *run;
    /* number of rows of samples that are not padding */
    int64_t real;
} LossTask;

/* Returns a row of logits. Not for (N,C,H,W), where a pixel's logits are not side by side. */
static inline const void *logits_at(const LossTask *t, int64_t row)
{
    return element_at(t->run->x[0], row * t->l->width, t->l->type);
}

/* loss_plan sets the layouts and op->impl of a loss; loss_task makes a task for one call; loss_free
 * frees op->impl. */
Status loss_plan(Op *op, Desc preferred[SPEC_INPUTS]);
LossTask loss_task(Op *op, const OpRun *run);
void loss_free(Op *op);

/* Returns whether `index`, counted from the first logit of this rank's slice of a row, is in the
 * slice. */
static inline bool in_slice(const LossTask *t, int64_t index)
{
    return index >= 0 && index < t->l->width;
}
/* Returns the logit with that index in this rank's slice of a row. */
static inline float logit_at(const LossTask *t, int64_t row, int64_t index)
{
    float value;
    simd_table(t->l->type)->to_floats(&value, element_at(logits_at(t, row), index, t->l->type), 1);
    return value;
}

/* label_at returns the row's label. other_at returns the row's second label, or its label if there
 * are no second labels. Both end the job if the class is out of range. */
int64_t label_at(const LossTask *t, int64_t row);
int64_t other_at(const LossTask *t, int64_t row);
/* Runs body on all rows. */
void loss_run(WorkBody body, const LossTask *t);

/* Writes y of one row, and its log-sum-exp to run->saved, from the statistics of its logits; writes
 * zeros if the row is of a padding sample. other: logit of the second label; not used if there are
 * no second labels. */
void softmax_row(const LossTask *t, int64_t row, const SoftmaxRow *stats, float other);

/* Returns whether softmax_sliced.c computes the loss, because ranks divide a row's logits or the
 * sums over the classes are cut into slices. */
static inline bool softmax_is_sliced(const OpSpec *spec)
{
    return spec->slice.ranks > 0 || spec->slices.total > 0;
}
/* Returns the bytes of workspace of softmax_sliced_forward. */
size_t softmax_sliced_workspace(const Loss *l, const OpSpec *spec);
/* Writes y and run->saved. Collective on the tensor group if it divides the logits. */
void softmax_sliced_forward(const LossTask *t);

#endif
