/* softmax_loss, and the code that losses share: y has a row of LOSS_COLUMNS results for each
 * sample, token or pixel. softmax_loss saves the log-sum-exp of each row's logits, so its gradient
 * needs one pass over the logits. Rows of padding samples give 0. */
#include "loss.h"
#include "pixel_loss.h"

#include <string.h>

Status loss_plan(Op *op, Desc preferred[SPEC_INPUTS])
{
    OpSpec *s = &op->spec;
    Shape x = s->x[0].shape;
    preferred[0] = in_precision(op, layout_plain(s->x[0]));
    Loss *l = op->impl = mem_new(sizeof *l);
    /* in a loss of numbers, each output of a sample has a target, and all outputs of a sample are
     * one row */
    const bool one_row = op_info(s->kind)->reads == READS_TARGETS;
    l->width = one_row ? shape_count(x) / x.dim[0] : shape_count(x) / loss_labels(s);
    l->rows = shape_count(x) / l->width;
    l->per_sample = l->rows / x.dim[0];
    l->classes = l->width;
    if (s->slice.ranks) {
        l->first = s->slice.first;
        l->classes = s->slice.whole;
    }
    l->type = preferred[0].dtype;
    s->y = desc_plain(shape_of(2, l->rows, LOSS_COLUMNS, 1, 1), DTYPE_F32);
    op->needs_x[0] = true;
    return OK;
}

/* Returns whether x is (N,C,H,W), so that each pixel has a label. */
static bool has_pixels(const OpSpec *spec)
{
    return spec->x[0].shape.ndim == 4;
}

static Status softmax_plan(Op *op, Desc preferred[SPEC_INPUTS])
{
    if (has_pixels(&op->spec)) return pixel_plan(op, preferred);
    TRY(loss_plan(op, preferred));
    const Loss *l = op->impl;
    op->saved_bytes = (size_t)l->rows * sizeof(float);
    if (softmax_is_sliced(&op->spec)) op->workspace_bytes = softmax_sliced_workspace(l, &op->spec);
    op->dx_over_x = true;
    return OK;
}

void loss_free(Op *op)
{
    mem_free(&op->impl);
}

LossTask loss_task(Op *op, const OpRun *run)
{
    const Loss *l = op->impl;
    return (LossTask){.op = op, .l = l, .run = run, .real = run->sample_count * l->per_sample};
}

void loss_run(WorkBody body, const LossTask *t)
{
    /* an exp costs about as much as four floats in another loop */
    work_run(body, t, t->l->rows, 4 * t->l->rows * t->l->width);
}

static int64_t label_check(const LossTask *t, int32_t label)
{
    if (label < 0 || label >= t->l->classes)
        die("softmax_loss: label %d is not in 0..%lld: check the data set's labels", label,
            (long long)t->l->classes - 1);
    return label;
}

int64_t label_at(const LossTask *t, int64_t row)
{
    return label_check(t, t->run->labels[row]);
}

int64_t other_at(const LossTask *t, int64_t row)
{
    return label_check(t, (t->run->labels_other ? t->run->labels_other : t->run->labels)[row]);
}

void softmax_row(const LossTask *t, int64_t row, const SoftmaxRow *stats, float other)
{
    const float share = t->run->label_share;
    /* labels are smoothed in training only */
    const float smooth = t->run->training ? t->op->spec.smoothing : 0.0f;
    const float k = (float)t->l->classes;
    float *y = (float *)t->run->y + row * LOSS_COLUMNS, *lse = (float *)t->run->saved + row;
    memset(y, 0, LOSS_COLUMNS * sizeof *y);
    *lse = 0.0f;
    if (row >= t->real) return;
    y[0] = stats->lse - stats->label_logit;
    if (t->run->labels_other) y[0] = share * y[0] + (1.0f - share) * (stats->lse - other);
    if (smooth > 0.0f) y[0] = (1.0f - smooth) * y[0] + smooth * (stats->lse - stats->sum / k);
    y[1] = (float)stats->label_rank;
    y[2] = (float)stats->argmax;
    *lse = stats->lse;
}

static void softmax_body(const void *task, int64_t begin, int64_t end)
{
    const LossTask *t = task;
    for (int64_t r = begin; r < end; ++r) {
        const SimdTable *simd = simd_table(t->l->type);
        SoftmaxRow row = {0};
        float other = 0;
        if (r < t->real) row = simd->softmax(logits_at(t, r), t->l->width, (int)label_at(t, r));
        if (r < t->real && t->run->labels_other) other = logit_at(t, r, other_at(t, r));
        softmax_row(t, r, &row, other);
    }
}

static void softmax_forward(Op *op, const OpRun *run)
{
    LossTask t = loss_task(op, run);
    if (has_pixels(&op->spec))
        pixel_forward(op, run);
    else if (softmax_is_sliced(&op->spec))
        softmax_sliced_forward(&t);
    else
        loss_run(softmax_body, &t);
}

/* Returns the arguments of the gradient for one row. If another rank's slice has the label, the
 * label is passed as -1: subtracting 0 for it could change the sign of a zero. */
static SoftmaxGrad grad_of(const LossTask *t, int64_t row)
{
    const float smooth = t->op->spec.smoothing, scale = t->run->loss_factor;
    const bool mixed = t->run->labels_other != NULL;
    const float share = mixed ? t->run->label_share : 1.0f;
    int64_t label = label_at(t, row) - t->l->first, other = other_at(t, row) - t->l->first;
    bool has_label = in_slice(t, label), has_other = mixed && in_slice(t, other);
    return (SoftmaxGrad){.x = logits_at(t, row),
                         .dx = element_out(t->run->dx[0], row * t->l->width, t->l->type),
                         .n = t->l->width,
                         .label = has_label ? (int)label : -1,
                         .other = has_other ? (int)other : 0,
                         .lse = ((const float *)t->run->saved)[row],
                         .scale = scale,
                         .base = smooth / (float)t->l->classes,
                         .hit = has_label ? scale * (1.0f - smooth) * share : 0,
                         .hit_other = has_other ? scale * (1.0f - smooth) * (1.0f - share) : 0};
}

static void softmax_grad_body(const void *task, int64_t begin, int64_t end)
{
    const LossTask *t = task;
    const int64_t width = t->l->width;
    for (int64_t r = begin; r < end; ++r) {
        if (r >= t->real) {
            elements_zero(element_out(t->run->dx[0], r * width, t->l->type), width, t->l->type);
            continue;
        }
        SoftmaxGrad grad = grad_of(t, r);
        simd_table(t->l->type)->softmax_grad(&grad);
    }
}

static void softmax_backward_data(Op *op, const OpRun *run)
{
    LossTask t = loss_task(op, run);
    if (has_pixels(&op->spec))
        pixel_backward_data(op, run);
    else if (run->dx[0])
        loss_run(softmax_grad_body, &t);
}

const OpTable cpu_softmax_loss = {
    .name = "softmax_loss",
    .plan = softmax_plan,
    .forward = softmax_forward,
    .backward_data = softmax_backward_data,
    .free = loss_free,
};
