/* Soft Dice and soft Jaccard losses of (N,C,H,W) with a label for each pixel. A piece is up to
 * PIXEL_PIECE pixels of one sample:
 *
 *     forward:  piece --softmax--> sums of each class, joined in the order of pieces --> loss
 *     backward: piece --> dx, from the saved log-sum-exp and slopes of each class
 *
 * For each class, P is the sum of its probability over all pixels that have a label, I is the sum
 * of its probability over the pixels whose label is this class, and Y is the number of pixels whose
 * label is this class:
 *
 *     dice = (2 I + 1) / (P + Y + 1)        iou = (I + 1) / (P + Y - I + 1)
 *
 * The slopes are the derivatives of dice or iou by P and by I. The loss of a sample is 1 minus the
 * mean of dice or iou over all classes. Classes without pixels count, too; their dice or iou is 1
 * if their probability is 0. A sample without labels has loss 0. */
#include "pixel_loss.h"

#include <math.h>
#include <string.h>

/* x: logits (N,C,H,W); labels: int32[N][H][W], -1 for none. y (N, LOSS_COLUMNS): loss; the other
 * two columns are 0. Dice: Milletari et al. 2016 ("V-Net"), here with P and Y in place of sums of
 * squares; adding 1 keeps the value of classes without pixels finite. */
const OpInfo info_region_loss = {
    .name = "region_loss",
    .split = SPLIT_NEVER,
    .fuse = FUSE_NEVER,
    .residual = RESIDUAL_NEVER,
    .communication = COMMUNICATES_NEVER,
    .tokens = TOKENS_TOGETHER,
    .params = PARAMS_NONE,
    .reads = READS_LABELS,
    .traffic = TRAFFIC_TWICE,
    .dx = DX_WRITTEN,
    .acts = ACTS_NONE,
};

static Status region_plan(Op *op, Desc preferred[SPEC_INPUTS])
{
    TRY(loss_plan(op, preferred));
    const Loss *l = op->impl;
    const int64_t samples = l->rows / l->per_sample;
    op->spec.y = desc_plain(shape_of(2, samples, LOSS_COLUMNS, 1, 1), DTYPE_F32);
    /* log-sum-exp of each pixel, then for each sample the slopes by P and the slopes by I of each
     * class */
    op->saved_bytes = (size_t)(l->rows + 2 * samples * l->width) * sizeof(float);
    op->workspace_bytes = (size_t)(samples * pixel_pieces(l) * l->width) * sizeof(RegionSums);
    op->dx_over_x = true;
    return OK;
}

static void sums_body(const void *task, int64_t begin, int64_t end)
{
    const PixelTask *t = task;
    const OpRun *run = t->loss.run;
    const SimdTable *simd = simd_table(t->loss.l->type);
    for (int64_t item = begin; item < end; ++item) {
        const PixelPiece p = pixel_piece(t, item);
        float *lse = (float *)run->saved + p.row;
        memset(lse, 0, (size_t)p.n * sizeof *lse);
        if (p.sample >= t->real) continue;
        const PixelArgs a = pixel_args(t, &p);
        PixelStats s;
        simd->pixel_softmax(&a, &s);
        memcpy(lse, s.lse, (size_t)p.n * sizeof *lse);
        simd->region_sums(&a, lse, (RegionSums *)run->workspace + item * t->loss.l->width);
    }
}

/* Returns the slopes by P of a sample's classes; the slopes by I follow them. */
static float *slopes(const PixelTask *t, int64_t sample)
{
    return (float *)t->loss.run->saved + t->loss.l->rows + 2 * sample * t->loss.l->width;
}

/* Returns dice or iou of a class of a sample. Sets slope[0] to its slope by P, and slope[1] to its
 * slope by I. */
static double overlap(const PixelTask *t, int64_t sample, int64_t c, double slope[2])
{
    const int64_t width = t->loss.l->width;
    const RegionSums *part =
        (const RegionSums *)t->loss.run->workspace + sample * t->pieces * width + c;
    double inside = 0, all = 0, labelled = 0;
    for (int64_t p = 0; p < t->pieces; ++p, part += width) {
        inside += (double)part->inside;
        all += (double)part->all;
        labelled += (double)part->labelled;
    }
    double upper = NAN, lower = NAN;
    slope[1] = NAN;
    switch (t->loss.op->spec.region) {
    case REGION_DICE:
        upper = 2 * inside + 1;
        lower = all + labelled + 1;
        slope[1] = 2 / lower;
        break;
    case REGION_IOU:
        upper = inside + 1;
        lower = all + labelled + 1 - inside;
        slope[1] = 1 / lower + upper / (lower * lower);
        break;
    }
    slope[0] = -upper / (lower * lower);
    return upper / lower;
}

static void sample_body(const void *task, int64_t begin, int64_t end)
{
    const PixelTask *t = task;
    const int64_t width = t->loss.l->width;
    for (int64_t s = begin; s < end; ++s) {
        float *y = (float *)t->loss.run->y + s * LOSS_COLUMNS;
        double sum = 0, slope[2];
        memset(y, 0, LOSS_COLUMNS * sizeof *y);
        memset(slopes(t, s), 0, (size_t)(2 * width) * sizeof(float));
        if (s >= t->real) continue;
        for (int64_t c = 0; c < width; ++c) {
            sum += overlap(t, s, c, slope);
            for (int k = 0; k < 2; ++k) slopes(t, s)[k * width + c] = (float)slope[k];
        }
        y[0] = (float)(1 - sum / (double)width);
    }
}

static void region_forward(Op *op, const OpRun *run)
{
    const PixelTask t = pixel_task(op, run);
    pixel_run(sums_body, &t);
    work_run(sample_body, &t, t.samples, t.samples * t.pieces * t.loss.l->width);
}

static void grad_body(const void *task, int64_t begin, int64_t end)
{
    const PixelTask *t = task;
    const OpRun *run = t->loss.run;
    const Loss *l = t->loss.l;
    for (int64_t item = begin; item < end; ++item) {
        const PixelPiece p = pixel_piece(t, item);
        if (p.sample >= t->real) {
            pixel_zero(t, &p);
            continue;
        }
        const PixelArgs a = pixel_args(t, &p);
        const RegionGrad g = {.lse = (const float *)run->saved + p.row,
                              .all = slopes(t, p.sample),
                              .inside = slopes(t, p.sample) + l->width,
                              .scale = -run->loss_factor / (float)l->width};
        simd_table(l->type)->region_grad(&a, &g, element_out(run->dx[0], p.at, l->type));
    }
}

static void region_backward_data(Op *op, const OpRun *run)
{
    const PixelTask t = pixel_task(op, run);
    if (run->dx[0]) pixel_run(grad_body, &t);
}

const OpTable cpu_region_loss = {
    .name = "region_loss",
    .plan = region_plan,
    .forward = region_forward,
    .backward_data = region_backward_data,
    .free = loss_free,
};
