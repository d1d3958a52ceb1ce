/* The common part of the losses: loss.c, sigmoid_loss.c, and softmax_sliced.c for logits that are
 * divided among ranks. */
#ifndef WEFT_TENSOR_CPU_LOSS_H
#define WEFT_TENSOR_CPU_LOSS_H

#include "view.h"

typedef struct Loss {
    /* rows of logits, rows per sample, and logits per row on this rank */
    int64_t rows, per_sample, width;
    /* this rank's logits are classes first .. first + width - 1 of `classes` */
    int64_t first, classes;
    /* type of the logits and of their gradient */
    DType type;
} Loss;

typedef struct LossTask {
    const Op *op;
    const Loss *l;
    const OpRun *run;
    /* rows of real samples */
    int64_t real;
} LossTask;

static inline const void *logits_at(const LossTask *t, int64_t row)
{
    return element_at(t->run->x[0], row * t->l->width, t->l->type);
}

/* Plan, task and release for every loss. */
Status loss_plan(Op *op, Desc preferred[SPEC_INPUTS]);
LossTask loss_task(Op *op, const OpRun *run);
void loss_free(Op *op);

/* Whether an index into a row is in this rank's slice. */
static inline bool in_slice(const LossTask *t, int64_t place)
{
    return place >= 0 && place < t->l->width;
}
static inline float logit_at(const LossTask *t, int64_t row, int64_t place)
{
    float value;
    simd_table(t->l->type)->to_floats(&value, element_at(logits_at(t, row), place, t->l->type), 1);
    return value;
}

/* The row's label, checked. */
int64_t label_at(const LossTask *t, int64_t row);
/* The second label of a mixed row, checked; the label if rows are not mixed. */
int64_t other_at(const LossTask *t, int64_t row);
void loss_run(WorkBody body, const LossTask *t);

/* Computes y and the log-sum-exp of one row from the statistics of its logits and from `other`, the
 * logit of the second label. */
void softmax_row(const LossTask *t, int64_t row, const SoftmaxRow *known, float other);

/* in softmax_sliced.c */
size_t softmax_sliced_workspace(const Loss *l, int ranks);
void softmax_sliced_forward(const LossTask *t);

#endif
