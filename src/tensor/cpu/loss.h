/* What the files of the losses share: loss.c, sigmoid_loss.c, and softmax_sliced.c for logits of
 * which each rank has a slice. */
#ifndef WEFT_TENSOR_CPU_LOSS_H
#define WEFT_TENSOR_CPU_LOSS_H

#include "view.h"

typedef struct Loss {
    int64_t rows, per_sample, width;
    /* the logits here are first .. first + width of so many */
    int64_t first, classes;
    /* of the logits and their gradient */
    DType type;
} Loss;

typedef struct LossTask {
    const Op *op;
    const Loss *l;
    const OpRun *run;
    int64_t real;
} LossTask;

static inline const void *logits_at(const LossTask *t, int64_t row)
{
    return element_at(t->run->x[0], row * t->l->width, t->l->type);
}

/* What every loss plans; its task; its end. */
Status loss_plan(Op *op, Desc preferred[SPEC_INPUTS]);
LossTask loss_task(Op *op, const OpRun *run);
void loss_free(Op *op);

/* Is a place in the slice of each row that this rank has? */
static inline bool is_here(const LossTask *t, int64_t place)
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
/* The other label of mixed rows, checked; where rows are not mixed, the label. */
int64_t other_at(const LossTask *t, int64_t row);
void loss_run(WorkBody body, const LossTask *t);

/* Of one row: y and the log-sum-exp, from what is known of its logits, and the other label's. */
void softmax_row(const LossTask *t, int64_t row, const SoftmaxRow *known, float other);

/* softmax_sliced.c */
size_t softmax_sliced_workspace(const Loss *l, int ranks);
void softmax_sliced_forward(const LossTask *t);

#endif
