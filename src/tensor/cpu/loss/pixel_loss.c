/* Cross-entropy and focal loss with a label for each pixel of (N,C,H,W), or focal loss with a label
 * for each row of (N,K). A piece is up to PIXEL_PIECE pixels of one sample:
 *
 *     forward:  piece --softmax--> loss of each pixel, sum of weights
 *               sample: sum of all pieces' weights, in their order
 *               piece --> losses divided by the mean weight
 *     backward: piece --> dx, from the saved log-sum-exp
 *
 * Let w be the weight of a pixel's label, p the label's probability, and g the exponent `focus` (0
 * in softmax_loss). Without label smoothing, the loss of a sample is sum(w (1-p)^g (-log p)) /
 * sum(w) over its pixels that have a label; it is 0 if no pixel has one. y has a row for each
 * pixel. The loss in this row is the pixel's term of the sum, times the number of pixels, divided
 * by sum(w). So the mean of a sample's rows is the sample's loss, which depends on that sample
 * alone. */
#include "pixel_loss.h"

#include <math.h>
#include <string.h>

/* x: logits (N,C,H,W) or (N,K); labels: int32, -1 for none. y (pixels, LOSS_COLUMNS): the loss; the
 * number of logits that rank above the label's (-1: the pixel has no label); the index of the
 * largest logit. */
const OpInfo info_focal_loss = {
    .name = "focal_loss",
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

PixelTask pixel_task(Op *op, const OpRun *run)
{
    const Loss *l = op->impl;
    const ClassWeights *w = &op->spec.class_weights;
    PixelTask t = {.loss = loss_task(op, run),
                   .pieces = pixel_pieces(l),
                   .samples = l->rows / l->per_sample,
                   .real = run->sample_count,
                   .weight = w->count > 0 ? w->value : NULL,
                   .weight_sum = (float)l->classes};
    if (t.weight) t.weight_sum = 0;
    for (int c = 0; t.weight && c < l->classes; ++c) t.weight_sum += t.weight[c];
    return t;
}

PixelArgs pixel_args(const PixelTask *t, const PixelPiece *p)
{
    const Loss *l = t->loss.l;
    const int32_t *label = t->loss.run->labels + p->row;
    for (int64_t i = 0; i < p->n; ++i)
        if (label[i] < -1 || label[i] >= l->classes)
            die("%s: label %d is neither -1 (none) nor in 0..%lld: check the data set's labels",
                op_info(t->loss.op->spec.kind)->name, label[i], (long long)l->classes - 1);
    return (PixelArgs){.x = element_at(t->loss.run->x[0], p->at, l->type),
                       .label = label,
                       .weight = t->weight,
                       .stride = l->per_sample,
                       .n = p->n,
                       .classes = (int)l->classes};
}

void pixel_zero(const PixelTask *t, const PixelPiece *p)
{
    const Loss *l = t->loss.l;
    for (int64_t c = 0; c < l->width; ++c)
        elements_zero(element_out(t->loss.run->dx[0], p->at + c * l->per_sample, l->type), p->n,
                      l->type);
}

void pixel_run(WorkBody body, const PixelTask *t)
{
    const Loss *l = t->loss.l;
    work_run(body, t, t->samples * t->pieces, 4 * l->rows * l->width);
}

Status pixel_plan(Op *op, Desc preferred[SPEC_INPUTS])
{
    TRY(loss_plan(op, preferred));
    const Loss *l = op->impl;
    const int64_t samples = l->rows / l->per_sample;
    /* log-sum-exp of each pixel, then pixels / (sum of weights) of each sample */
    op->saved_bytes = (size_t)(l->rows + samples) * sizeof(float);
    /* sum of the weights of each piece */
    op->workspace_bytes = (size_t)(samples * pixel_pieces(l)) * sizeof(float);
    op->dx_over_x = true;
    return OK;
}

/* Returns the array of the factors pixels / sum(w) of all samples, which follows the log-sum-exps
 * in `saved`. */
static float *factors(const PixelTask *t)
{
    return (float *)t->loss.run->saved + t->loss.l->rows;
}

/* Returns a pixel's term of the loss, not yet divided by the sum of the weights. */
static float loss_of(const PixelTask *t, const PixelArgs *a, const PixelStats *s, int64_t i)
{
    const OpSpec *spec = &t->loss.op->spec;
    const float w = a->weight ? a->weight[a->label[i]] : 1.0f;
    const float nll = s->lse[i] - s->label_logit[i];
    /* labels are smoothed in training only */
    const float smooth = t->loss.run->training ? spec->smoothing : 0.0f;
    float loss = w * nll;
    if (spec->focus > 0) loss *= powf(-expm1f(-nll), spec->focus);
    if (smooth == 0) return loss;
    return (1 - smooth) * loss +
           smooth / (float)a->classes * (t->weight_sum * s->lse[i] - s->sum[i]);
}

static void losses_body(const void *task, int64_t begin, int64_t end)
{
    const PixelTask *t = task;
    const OpRun *run = t->loss.run;
    for (int64_t item = begin; item < end; ++item) {
        const PixelPiece p = pixel_piece(t, item);
        float *y = (float *)run->y + p.row * LOSS_COLUMNS, *lse = (float *)run->saved + p.row;
        float weight = 0;
        memset(y, 0, (size_t)p.n * LOSS_COLUMNS * sizeof *y);
        memset(lse, 0, (size_t)p.n * sizeof *lse);
        if (p.sample < t->real) {
            const PixelArgs a = pixel_args(t, &p);
            PixelStats s;
            simd_table(t->loss.l->type)->pixel_softmax(&a, &s);
            memcpy(lse, s.lse, (size_t)p.n * sizeof *lse);
            for (int64_t i = 0; i < p.n; ++i, y += LOSS_COLUMNS) {
                const bool labelled = a.label[i] >= 0;
                if (labelled) weight += a.weight ? a.weight[a.label[i]] : 1.0f;
                y[0] = labelled ? loss_of(t, &a, &s, i) : 0;
                y[1] = labelled ? s.label_rank[i] : -1;
                y[2] = s.argmax[i];
            }
        }
        ((float *)run->workspace)[item] = weight;
    }
}

static void factors_body(const void *task, int64_t begin, int64_t end)
{
    const PixelTask *t = task;
    for (int64_t s = begin; s < end; ++s) {
        const float *part = (const float *)t->loss.run->workspace + s * t->pieces;
        double weight = 0;
        for (int64_t p = 0; p < t->pieces; ++p) weight += (double)part[p];
        factors(t)[s] = weight > 0 ? (float)((double)t->loss.l->per_sample / weight) : 0;
    }
}

static void scale_body(const void *task, int64_t begin, int64_t end)
{
    const PixelTask *t = task;
    for (int64_t item = begin; item < end; ++item) {
        const PixelPiece p = pixel_piece(t, item);
        float *y = (float *)t->loss.run->y + p.row * LOSS_COLUMNS;
        for (int64_t i = 0; i < p.n; ++i) y[i * LOSS_COLUMNS] *= factors(t)[p.sample];
    }
}

void pixel_forward(Op *op, const OpRun *run)
{
    const PixelTask t = pixel_task(op, run);
    pixel_run(losses_body, &t);
    work_run(factors_body, &t, t.samples, t.samples * t.pieces);
    pixel_run(scale_body, &t);
}

/* Sets the numbers of pixel i in *g, from which the kernel computes dx of class c: dx = factor p_c
 * - base w_c, minus `hit` if c is the label. The derivative of (1-p)^g (-log p) with respect to the
 * label's logit is -m (1 - p), where m = (1-p)^g - g p log(p) (1-p)^(g-1). */
static void grad_of(const PixelTask *t, const PixelArgs *a, float scale, int64_t i, PixelGrad *g)
{
    const OpSpec *spec = &t->loss.op->spec;
    const int32_t label = a->label[i];
    const float smooth = spec->smoothing / (float)a->classes;
    float m = 1;
    g->factor[i] = g->base[i] = g->hit[i] = 0;
    if (label < 0) return;
    if (spec->focus > 0) {
        const SimdTable *simd = simd_table(t->loss.l->type);
        float logit;
        simd->to_floats(&logit, element_at(a->x, label * a->stride + i, t->loss.l->type), 1);
        const float log_p = logit - g->lse[i], rest = -expm1f(log_p);
        m = rest > 0 ? powf(rest, spec->focus) -
                           spec->focus * expf(log_p) * log_p * powf(rest, spec->focus - 1)
                     : 0;
    }
    g->hit[i] = scale * (1 - spec->smoothing) * m * (a->weight ? a->weight[label] : 1.0f);
    g->base[i] = scale * smooth;
    g->factor[i] = g->hit[i] + g->base[i] * t->weight_sum;
}

static void grad_body(const void *task, int64_t begin, int64_t end)
{
    const PixelTask *t = task;
    const OpRun *run = t->loss.run;
    const DType type = t->loss.l->type;
    for (int64_t item = begin; item < end; ++item) {
        const PixelPiece p = pixel_piece(t, item);
        if (p.sample >= t->real) {
            pixel_zero(t, &p);
            continue;
        }
        const PixelArgs a = pixel_args(t, &p);
        PixelGrad g = {.lse = (const float *)run->saved + p.row};
        for (int64_t i = 0; i < p.n; ++i)
            grad_of(t, &a, run->loss_factor * factors(t)[p.sample], i, &g);
        simd_table(type)->pixel_grad(&a, &g, element_out(run->dx[0], p.at, type));
    }
}

void pixel_backward_data(Op *op, const OpRun *run)
{
    const PixelTask t = pixel_task(op, run);
    if (run->dx[0]) pixel_run(grad_body, &t);
}

const OpTable cpu_focal_loss = {
    .name = "focal_loss",
    .plan = pixel_plan,
    .forward = pixel_forward,
    .backward_data = pixel_backward_data,
    .free = loss_free,
};
