/* Losses: one row of LOSS_COLUMNS results per sample (per token). softmax_loss keeps each row's log-sum-exp, so that
 * its gradient is one pass. Rows of padded samples give 0. */
#include "view.h"

#include <string.h>

typedef struct Loss {
    int64_t rows, per_sample, width;
    DType type; /* of the logits and their gradient */
} Loss;

typedef struct LossTask {
    const Op *op;
    const Loss *l;
    const OpRun *run;
    int64_t real;
} LossTask;

static Status loss_plan(Op *op, Desc wish[OP_INPUTS])
{
    OpSpec *s = &op->spec;
    Shape x = s->x[0].shape;
    wish[0] = in_precision(op, layout_plain(s->x[0]));
    Loss *l = op->impl = mem_new(sizeof *l);
    l->width = x.dim[x.ndim - 1];
    l->rows = shape_count(x) / l->width;
    l->per_sample = l->rows / x.dim[0];
    l->type = wish[0].dtype;
    s->y = desc_plain(shape_of(2, l->rows, LOSS_COLUMNS, 1, 1), DTYPE_F32);
    op->needs_x[0] = true;
    return OK;
}

static Status softmax_plan(Op *op, Desc wish[OP_INPUTS])
{
    TRY(loss_plan(op, wish));
    op->saved_bytes = (size_t)((const Loss *)op->impl)->rows * sizeof(float);
    op->dx_over_x = true;
    return OK;
}

static void impl_free(Op *op)
{
    mem_free(&op->impl);
}

static LossTask task_of(Op *op, const OpRun *run)
{
    const Loss *l = op->impl;
    return (LossTask){op, l, run, run->rows * l->per_sample};
}

static void loss_run(WorkBody body, LossTask t)
{
    work_run(body, &t, t.l->rows, 4 * t.l->rows * t.l->width); /* an exp is worth a few floats */
}

static int label_at(const LossTask *t, int64_t r)
{
    int32_t label = t->run->labels[r];
    if (label < 0 || label >= t->l->width)
        die("softmax_loss: label %d is outside 0..%lld; check the data set's labels", label,
            (long long)t->l->width - 1);
    return label;
}

static void softmax_body(const void *task, int64_t begin, int64_t end)
{
    const LossTask *t = task;
    const float smooth = t->op->spec.smoothing, k = (float)t->l->width;
    for (int64_t r = begin; r < end; ++r) {
        float *y = (float *)t->run->y + r * LOSS_COLUMNS, *lse = (float *)t->run->saved + r;
        memset(y, 0, LOSS_COLUMNS * sizeof *y);
        *lse = 0.0f;
        if (r >= t->real) continue;
        const void *x = element_at(t->run->x[0], r * t->l->width, t->l->type);
        SoftmaxRow row = simd_table(t->l->type)->softmax(x, t->l->width, label_at(t, r));
        y[0] = row.lse - row.truth;
        if (smooth > 0.0f) y[0] = (1.0f - smooth) * y[0] + smooth * (row.lse - row.sum / k);
        y[1] = (float)row.beats;
        y[2] = (float)row.argmax;
        *lse = row.lse;
    }
}

static void softmax_forward(Op *op, const OpRun *run)
{
    loss_run(softmax_body, task_of(op, run));
}

static void softmax_grad_body(const void *task, int64_t begin, int64_t end)
{
    const LossTask *t = task;
    const int64_t width = t->l->width;
    const float smooth = t->op->spec.smoothing, scale = t->run->loss_scale;
    for (int64_t r = begin; r < end; ++r) {
        void *dx = element_out(t->run->dx[0], r * width, t->l->type);
        if (r < t->real)
            simd_table(t->l->type)
                ->softmax_grad(&(SoftmaxGrad){.x = element_at(t->run->x[0], r * width, t->l->type),
                                              .dx = dx,
                                              .n = width,
                                              .label = label_at(t, r),
                                              .lse = ((const float *)t->run->saved)[r],
                                              .scale = scale,
                                              .base = smooth / (float)width,
                                              .hit = scale * (1.0f - smooth)});
        else
            elements_zero(dx, width, t->l->type);
    }
}

static void softmax_backward_data(Op *op, const OpRun *run)
{
    if (run->dx[0]) loss_run(softmax_grad_body, task_of(op, run));
}

const OpTable cpu_softmax_loss = {
    .name = "softmax_loss",
    .plan = softmax_plan,
    .forward = softmax_forward,
    .backward_data = softmax_backward_data,
    .free = impl_free,
};

static void mse_body(const void *task, int64_t begin, int64_t end)
{
    const LossTask *t = task;
    int64_t k = t->l->width;
    for (int64_t r = begin; r < end; ++r) {
        float *y = (float *)t->run->y + r * LOSS_COLUMNS;
        memset(y, 0, LOSS_COLUMNS * sizeof *y);
        if (r >= t->real) continue;
        const void *x = element_at(t->run->x[0], r * k, t->l->type);
        y[0] = (float)(simd_table(t->l->type)->squared_error(x, t->run->targets + r * k, k) /
                       (double)k);
    }
}

static void mse_forward(Op *op, const OpRun *run)
{
    loss_run(mse_body, task_of(op, run));
}

static void mse_grad_body(const void *task, int64_t begin, int64_t end)
{
    const LossTask *t = task;
    int64_t k = t->l->width;
    for (int64_t r = begin; r < end; ++r) {
        void *dx = element_out(t->run->dx[0], r * k, t->l->type);
        const void *x = element_at(t->run->x[0], r * k, t->l->type);
        if (r < t->real)
            simd_table(t->l->type)
                ->scaled_difference(dx, x, t->run->targets + r * k,
                                    2.0f * t->run->loss_scale / (float)k, k);
        else
            elements_zero(dx, k, t->l->type);
    }
}

static void mse_backward_data(Op *op, const OpRun *run)
{
    if (run->dx[0]) loss_run(mse_grad_body, task_of(op, run));
}

const OpTable cpu_mse_loss = {
    .name = "mse_loss",
    .plan = loss_plan,
    .forward = mse_forward,
    .backward_data = mse_backward_data,
    .free = impl_free,
};
