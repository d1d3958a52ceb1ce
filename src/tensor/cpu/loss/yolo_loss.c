/* yolo_loss: the loss of YOLOv5 v7.0 on the grids of several levels, in the layouts of its inputs.
 * An item of work_run is one level of one sample. Its sums are added in double, in the order of its
 * cells and of the sample's boxes, and the sums of levels are added in the order of levels, so any
 * number of threads gives the same bits. Double costs little here: the network's last layers have
 * hundreds of multiply-adds for each logit.
 *
 *     targets --match--> cells --decode, CIoU--> best (saved): the target of each cell's objectness
 *                          |                        |
 *                          +--> box, class parts    +--> object part
 *
 * backward computes the matches again, which is cheaper than storing them. */
#include "../../yolo_terms.h"
#include "../view.h"

#include <string.h>

enum { PART_BOX, PART_OBJECT, PART_CLASS, PARTS };

static Status yolo_check(const OpSpec *s)
{
    char a[64], b[64];
    const int levels = s->x_count, anchors = s->anchors.count / levels;
    const Shape x = s->x[0].shape;
    if (levels > BOX_LEVELS || anchors < 1 || anchors * levels != s->anchors.count)
        return fail(ERR_CONFIG,
                    "yolo_loss: %d anchors for %d levels: each level needs the same number of "
                    "anchors, and there are at most %d levels",
                    s->anchors.count, levels, BOX_LEVELS);
    for (int l = 0; l < levels; ++l) {
        const Shape y = s->x[l].shape;
        if (x.ndim != 4 || y.ndim != 4 || y.dim[0] != x.dim[0] || y.dim[1] != x.dim[1])
            return fail(ERR_CONFIG, "yolo_loss got %s and %s, needs grids (N,anchors*(5+K),H,W)",
                        shape_text(x, a), shape_text(y, b));
        const int64_t cell = s->image[0] / y.dim[2];
        if (cell * y.dim[2] != s->image[0] || cell * y.dim[3] != s->image[1])
            return fail(ERR_CONFIG,
                        "yolo_loss: %s is no grid of square cells of a picture of %dx%d pixels",
                        shape_text(y, a), s->image[0], s->image[1]);
    }
    if (x.dim[1] % anchors == 0 && box_classes(s) > 0) return OK;
    return fail(ERR_CONFIG,
                "yolo_loss got %s, needs 5 channels and one for each class in each of %d "
                "anchors",
                shape_text(x, a), anchors);
}

/* x: a grid for each level, (N,A*(5+K),H,W), with the channels x, y, w, h, object and classes of
 * each of A anchors. y: a row for each sample: its loss, the box part of the loss, and the object
 * part; the rest of the loss is the class part. Let N_l be the number of matches of level l in the
 * global batch of B samples (BoxTargets.match_counts), C_l the number of cells times anchors, L the
 * number of levels, K the number of classes, and S x S the pixels of a picture. A sample's loss is
 *
 *     B sum_l [0.05 g / N_l sum_matches (1 - CIoU) + 0.5 g K/80 / (N_l K) sum_matches,classes BCE]
 *       + g (S/640)^2 sum_l b_l / C_l sum_cells BCE(object, largest max(CIoU, 0) of its matches)
 *
 * with g = 3/L, and b = 4, 1, 0.4 for three levels (yolo_factors has b for other numbers). Terms
 * with N_l = 0 are left out, and so is the class part if K = 1. The mean over the batch is v7.0's
 * loss of the whole batch in one process, divided by B, and so is its gradient. If several boxes
 * match one anchor of one cell, the largest overlap is the target of its object logit; v7.0 uses
 * the overlap of an arbitrary matching box. The gradient treats two numbers as constants: the
 * overlap that is a target, and alpha of CIoU. */
const OpInfo info_yolo_loss = {
    .name = "yolo_loss",
    .check = yolo_check,
    .split = SPLIT_NEVER,
    .fuse = FUSE_NEVER,
    .residual = RESIDUAL_NEVER,
    .communication = COMMUNICATES_NEVER,
    .tokens = TOKENS_TOGETHER,
    .params = PARAMS_NONE,
    .reads = READS_BOXES,
    .traffic = TRAFFIC_ONCE,
    .dx = DX_WRITTEN,
    .acts = ACTS_NONE,
};

typedef struct Yolo {
    DType type;
    int levels, classes;
    BoxGrid grid[BOX_LEVELS];
    View view[BOX_LEVELS];
    /* index in a sample of each channel's element in cell 0, [channels]; owned */
    int64_t *channel[BOX_LEVELS];
    /* OpRun.saved has floats for each sample: index of a level's first float among them */
    int64_t best[BOX_LEVELS];
    /* number of floats of a sample in OpRun.saved */
    int64_t best_sample;
} Yolo;

typedef struct YoloTask {
    const Op *op;
    const Yolo *yolo;
    const OpRun *run;
    /* double[N][levels][PARTS]; forward only */
    double *parts;
} YoloTask;

/* One level of one sample. */
typedef struct YoloItem {
    const Yolo *yolo;
    const BoxGrid *grid;
    View view;
    const int64_t *channel;
    /* logits of the sample */
    const void *x;
    /* gradient of the logits; NULL: not wanted */
    void *dx;
    /* objectness target of each anchor and cell: the largest overlap with a matching box, at least
     * 0, [anchors][cells] */
    float *best;
    YoloFactors factors;
} YoloItem;

/* Returns the index in a sample of each channel's element in cell 0, [channels]. Owner: the
 * caller. */
static int64_t *channel_elements(View v)
{
    int64_t *at = mem_new((size_t)v.channels * sizeof *at);
    for (int64_t c = 0; c < v.channels; ++c) at[c] = c / v.block * v.plane + c % v.block;
    return at;
}

static Status yolo_plan(Op *op, Desc preferred[SPEC_INPUTS])
{
    OpSpec *s = &op->spec;
    Yolo *y = op->impl = mem_new(sizeof *y);
    *y = (Yolo){.levels = s->x_count, .classes = (int)box_classes(s)};
    for (int l = 0; l < s->x_count; ++l) {
        preferred[l] = in_precision(op, s->x[l]);
        y->type = preferred[l].dtype;
        y->grid[l] = box_grid(s, l);
        y->view[l] = view_of(preferred[l]);
        y->channel[l] = channel_elements(y->view[l]);
        y->best[l] = y->best_sample;
        y->best_sample += y->grid[l].anchors * y->view[l].hw;
        op->needs_x[l] = true;
    }
    const size_t n = (size_t)s->x[0].shape.dim[0];
    s->y = desc_plain(s->y.shape, DTYPE_F32);
    op->saved_bytes = n * (size_t)y->best_sample * sizeof(float);
    op->workspace_bytes = n * (size_t)s->x_count * PARTS * sizeof(double);
    return OK;
}

static void yolo_free(Op *op)
{
    Yolo *y = op->impl;
    for (int l = 0; y && l < y->levels; ++l) mem_free(&y->channel[l]);
    mem_free(&op->impl);
}

/* ---- sums of cross-entropies ---- */

/* A sum of cross-entropies max(x, 0) - x target + log(1 + e^-|x|). The factors 1 + e^-|x|, which
 * are at most 2, are multiplied, so that one logarithm is enough for many of them. */
typedef struct Entropies {
    /* the sum without the logarithm of `product` */
    double sum;
    /* product of the latest factors */
    double product;
    /* number of factors in `product` */
    int factors;
} Entropies;

static void entropies_add(Entropies *e, float x, double target)
{
    enum { FACTORS = 512 };
    e->sum += (x > 0 ? (double)x : 0) - (double)x * target;
    e->product *= 1 + exp(-fabs((double)x));
    if (++e->factors < FACTORS) return;
    e->sum += log(e->product);
    e->product = 1;
    e->factors = 0;
}

static double entropies_sum(const Entropies *e)
{
    return e->sum + log(e->product);
}

/* ---- one level of one sample ---- */

/* Returns the index in a sample of a channel of an anchor in one cell. */
static int64_t logit_index(const YoloItem *i, int anchor, int channel, int64_t cell)
{
    return i->channel[anchor * (BOX_CHANNELS + i->yolo->classes) + channel] + cell * i->view.block;
}

static float logit_get(const YoloItem *i, int64_t index)
{
    float value;
    if (i->yolo->type == DTYPE_F32) return ((const float *)i->x)[index];
    simd_table(i->yolo->type)->to_floats(&value, element_at(i->x, index, i->yolo->type), 1);
    return value;
}

/* Adds `more` to an element of the gradient, to which several matches of a cell may add. */
static void gradient_add(const YoloItem *i, int64_t index, double more)
{
    const DType type = i->yolo->type;
    void *at = element_out(i->dx, index, type);
    float value;
    if (type == DTYPE_F32) {
        ((float *)i->dx)[index] = (float)((double)((float *)i->dx)[index] + more);
        return;
    }
    simd_table(type)->to_floats(&value, at, 1);
    value = (float)((double)value + more);
    simd_table(type)->from_floats(at, &value, 1);
}

/* Returns the factors of a level's sums in the loss of one sample, times `scale`. */
static YoloFactors factors_of(const YoloTask *t, int level, double scale)
{
    const OpSpec *s = &t->op->spec;
    const Yolo *y = t->yolo;
    const int64_t *match_counts = t->run->boxes.match_counts;
    /* labels are smoothed in training only */
    const double smoothing = t->run->training ? (double)s->smoothing : 0;
    return yolo_factors(y->levels, level, y->classes, (double)match_counts[level],
                        (double)match_counts[y->levels],
                        (double)(y->view[level].hw * y->grid[level].anchors),
                        (double)s->image[0] * s->image[1], smoothing, scale);
}

static YoloItem item_of(const YoloTask *t, int64_t sample, int level, double scale)
{
    const Yolo *y = t->yolo;
    const int64_t first = sample * y->view[level].sample;
    YoloItem i = {
        .yolo = y, .grid = &y->grid[level], .view = y->view[level], .channel = y->channel[level]};
    i.x = element_at(t->run->x[level], first, y->type);
    if (t->run->dx[level]) i.dx = element_out(t->run->dx[level], first, y->type);
    i.best = (float *)t->run->saved + sample * y->best_sample + y->best[level];
    if (sample < t->run->sample_count) i.factors = factors_of(t, level, scale);
    return i;
}

/* The cell of a match, and the logits of its box. */
typedef struct MatchLogits {
    int64_t cell;
    float box[4];
} MatchLogits;

static MatchLogits match_logits(const YoloItem *i, const BoxMatch *m)
{
    MatchLogits out = {.cell = (int64_t)m->row * i->grid->columns + m->column};
    for (int k = 0; k < 4; ++k) out.box[k] = logit_get(i, logit_index(i, m->anchor, k, out.cell));
    return out;
}

/* Returns the target of class k for a match with a target box. row: the box's numbers. */
static double class_target(const YoloItem *i, const float *row, int k)
{
    return k == (int)row[BOX_CLASS] ? i->factors.positive : i->factors.negative;
}

/* Adds the box and class parts of one match. Sets the objectness target of the match's anchor and
 * cell to the match's overlap if that is larger than the target. */
static void match_forward(const YoloItem *i, const float *row, const BoxMatch *m, double *parts)
{
    const MatchLogits logits = match_logits(i, m);
    double box[4];
    yolo_decode(logits.box, i->grid->anchor[m->anchor], box, NULL);
    const double overlap = yolo_ciou(box, m, NULL);
    float *best = &i->best[m->anchor * i->view.hw + logits.cell];
    if ((float)overlap > *best) *best = (float)overlap;
    parts[PART_BOX] += 1 - overlap;
    Entropies sum = {.product = 1};
    for (int k = 0; i->factors.classes > 0 && k < i->yolo->classes; ++k)
        entropies_add(&sum, logit_get(i, logit_index(i, m->anchor, BOX_CHANNELS + k, logits.cell)),
                      class_target(i, row, k));
    parts[PART_CLASS] += entropies_sum(&sum);
}

static void match_backward(const YoloItem *i, const float *row, const BoxMatch *m)
{
    const MatchLogits logits = match_logits(i, m);
    double box[4], slope[4], grad[4];
    yolo_decode(logits.box, i->grid->anchor[m->anchor], box, slope);
    yolo_ciou(box, m, grad);
    for (int k = 0; k < 4; ++k)
        gradient_add(i, logit_index(i, m->anchor, k, logits.cell),
                     -i->factors.box * grad[k] * slope[k]);
    for (int k = 0; i->factors.classes > 0 && k < i->yolo->classes; ++k) {
        const int64_t at = logit_index(i, m->anchor, BOX_CHANNELS + k, logits.cell);
        gradient_add(
            i, at, i->factors.classes * (yolo_sigmoid(logit_get(i, at)) - class_target(i, row, k)));
    }
}

/* For all matches of a sample's boxes, calls match_forward or, if parts is NULL, match_backward. */
static void each_match(const YoloTask *t, const YoloItem *i, int64_t sample, double *parts)
{
    const BoxTargets *b = &t->run->boxes;
    BoxMatch match[BOX_MATCHES];
    for (int32_t r = b->start[sample]; r < b->start[sample + 1]; ++r) {
        const float *row = b->box + (int64_t)r * BOX_NUMBERS;
        const int count = yolo_match(i->grid, row, match);
        if (!(row[BOX_CLASS] >= 0 && row[BOX_CLASS] < (float)i->yolo->classes))
            die("yolo_loss: class %g is not in 0..%d: check the data set's boxes",
                (double)row[BOX_CLASS], i->yolo->classes - 1);
        for (int k = 0; k < count; ++k)
            if (parts)
                match_forward(i, row, &match[k], parts);
            else
                match_backward(i, row, &match[k]);
    }
}

static void forward_body(const void *task, int64_t begin, int64_t end)
{
    const YoloTask *t = task;
    for (int64_t at = begin; at < end; ++at) {
        const int64_t sample = at / t->yolo->levels;
        double *parts = t->parts + at * PARTS;
        const YoloItem i = item_of(t, sample, (int)(at % t->yolo->levels), 1);
        Entropies objects = {.product = 1};
        memset(parts, 0, PARTS * sizeof *parts);
        if (sample >= t->run->sample_count) continue;
        memset(i.best, 0, (size_t)(i.grid->anchors * i.view.hw) * sizeof *i.best);
        each_match(t, &i, sample, parts);
        for (int a = 0; a < i.grid->anchors; ++a)
            for (int64_t cell = 0; cell < i.view.hw; ++cell)
                entropies_add(&objects, logit_get(&i, logit_index(&i, a, BOX_CHANNELS - 1, cell)),
                              i.best[a * i.view.hw + cell]);
        parts[PART_OBJECT] = entropies_sum(&objects);
        parts[PART_BOX] *= i.factors.box;
        parts[PART_OBJECT] *= i.factors.object;
        parts[PART_CLASS] *= i.factors.classes;
    }
}

static void backward_body(const void *task, int64_t begin, int64_t end)
{
    const YoloTask *t = task;
    for (int64_t at = begin; at < end; ++at) {
        const int64_t sample = at / t->yolo->levels;
        const double scale = (double)t->run->loss_factor;
        const YoloItem i = item_of(t, sample, (int)(at % t->yolo->levels), scale);
        if (!i.dx) continue;
        elements_zero(i.dx, i.view.sample, i.yolo->type);
        if (sample >= t->run->sample_count) continue;
        for (int a = 0; a < i.grid->anchors; ++a)
            for (int64_t cell = 0; cell < i.view.hw; ++cell) {
                const int64_t index = logit_index(&i, a, BOX_CHANNELS - 1, cell);
                const double off =
                    yolo_sigmoid(logit_get(&i, index)) - (double)i.best[a * i.view.hw + cell];
                gradient_add(&i, index, i.factors.object * off);
            }
        each_match(t, &i, sample, NULL);
    }
}

/* ---- the operation ---- */

static void yolo_run(const YoloTask *t, WorkBody body)
{
    const int64_t n = t->yolo->view[0].n;
    /* a cross-entropy costs about as much as sixteen floats in another loop */
    work_run(body, t, n * t->yolo->levels, 16 * n * t->yolo->best_sample);
}

static void yolo_forward(Op *op, const OpRun *run)
{
    const Yolo *yolo = op->impl;
    const YoloTask t = {.op = op, .yolo = yolo, .run = run, .parts = run->workspace};
    float *y = run->y;
    yolo_run(&t, forward_body);
    for (int64_t n = 0; n < yolo->view[0].n; ++n, y += LOSS_COLUMNS) {
        double sum[PARTS] = {0};
        for (int l = 0; l < yolo->levels; ++l)
            for (int p = 0; p < PARTS; ++p) sum[p] += t.parts[(n * yolo->levels + l) * PARTS + p];
        y[0] = (float)(sum[PART_BOX] + sum[PART_OBJECT] + sum[PART_CLASS]);
        y[1] = (float)sum[PART_BOX];
        y[2] = (float)sum[PART_OBJECT];
    }
}

static void yolo_backward_data(Op *op, const OpRun *run)
{
    const YoloTask t = {.op = op, .yolo = op->impl, .run = run};
    yolo_run(&t, backward_body);
}

const OpTable cpu_yolo_loss = {
    .name = "yolo_loss",
    .plan = yolo_plan,
    .forward = yolo_forward,
    .backward_data = yolo_backward_data,
    .free = yolo_free,
};
