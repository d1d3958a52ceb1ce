/* sigmoid_loss: cross-entropy of the sigmoid of one logit per sample, in a form that cannot
 * overflow. Rows of padding samples give 0. */
#include "loss.h"

#include <math.h>
#include <string.h>

/* x: logits (N,1); labels: int32, 0 or 1. y (N, LOSS_COLUMNS): the loss; 0 if the prediction is
 * right (a logit >= 0 predicts 1), else 1; the logit. */
const OpInfo info_sigmoid_loss = {
    .name = "sigmoid_loss",
    .split = SPLIT_NEVER,
    .fuse = FUSE_NEVER,
    .residual = RESIDUAL_NEVER,
    .communication = COMMUNICATES_NEVER,
    .tokens = TOKENS_TOGETHER,
    .params = PARAMS_NONE,
    .reads = READS_LABELS,
    .traffic = TRAFFIC_ONCE,
    .dx = DX_WRITTEN,
    .acts = ACTS_NONE,
};

static float label_of(const LossTask *t, int64_t row)
{
    int32_t label = t->run->labels[row];
    if (label != 0 && label != 1)
        die("sigmoid_loss: label %d is neither 0 nor 1: check the data set's labels", label);
    return (float)label;
}

static void forward_body(const void *task, int64_t begin, int64_t end)
{
    const LossTask *t = task;
    for (int64_t r = begin; r < end; ++r) {
        float *y = (float *)t->run->y + r * LOSS_COLUMNS;
        memset(y, 0, LOSS_COLUMNS * sizeof *y);
        if (r >= t->real) continue;
        const float z = logit_at(t, r, 0), label = label_of(t, r);
        /* log(1 + e^z) - label z, in a form that cannot overflow */
        y[0] = log1pf(expf(-fabsf(z))) + ((z > 0 ? z : 0) - label * z);
        y[1] = (z >= 0) == (label > 0) ? 0 : 1;
        y[2] = z;
    }
}

static void sigmoid_forward(Op *op, const OpRun *run)
{
    LossTask t = loss_task(op, run);
    loss_run(forward_body, &t);
}

static void grad_body(const void *task, int64_t begin, int64_t end)
{
    const LossTask *t = task;
    for (int64_t r = begin; r < end; ++r) {
        float dx = 0;
        if (r < t->real) {
            const float z = logit_at(t, r, 0), e = expf(-fabsf(z));
            const float p = (z >= 0 ? 1 : e) / (1 + e);
            dx = t->run->loss_factor * (p - label_of(t, r));
        }
        simd_table(t->l->type)->from_floats(element_out(t->run->dx[0], r, t->l->type), &dx, 1);
    }
}

static void sigmoid_backward_data(Op *op, const OpRun *run)
{
    LossTask t = loss_task(op, run);
    if (run->dx[0]) loss_run(grad_body, &t);
}

const OpTable cpu_sigmoid_loss = {
    .name = "sigmoid_loss",
    .plan = loss_plan,
    .forward = sigmoid_forward,
    .backward_data = sigmoid_backward_data,
    .free = loss_free,
};
