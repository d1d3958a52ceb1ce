/* point_loss: a loss of numbers, with a target for each output; targets have weights, and targets
 * that are NaN are missing:
 *
 *     loss of a sample = sum(w loss(x - target)) / sum(w)    over its targets that are not missing
 *
 * This loss is 0 for a sample without targets and for padding samples. The batch's loss is the mean
 * over samples, so it does not depend on how the batch is cut into micro-batches and ranks. The
 * work is cut into pieces of a sample, whose sums are added in their order. */
#include "loss.h"

#include <string.h>

typedef struct PointTask {
    LossTask loss;
    /* PointArgs.parameter */
    float parameter;
    /* number of pieces of a sample */
    int64_t pieces;
} PointTask;

static int64_t pieces_of(const Loss *l)
{
    return (l->width + POINT_PIECE - 1) / POINT_PIECE;
}

static Status point_plan(Op *op, Desc preferred[SPEC_INPUTS])
{
    TRY(loss_plan(op, preferred));
    const Loss *l = op->impl;
    /* sum of the weights of each sample's targets */
    op->saved_bytes = (size_t)l->rows * sizeof(float);
    op->workspace_bytes = (size_t)(l->rows * pieces_of(l)) * sizeof(PointSum);
    return OK;
}

static PointTask task_of(Op *op, const OpRun *run)
{
    return (PointTask){.loss = loss_task(op, run),
                       .parameter = point_parameter(&op->spec),
                       .pieces = pieces_of(op->impl)};
}

/* Runs body on all pieces. */
static void run_pieces(WorkBody body, const PointTask *t)
{
    const Loss *l = t->loss.l;
    work_run(body, t, l->rows * t->pieces, 4 * l->rows * l->width);
}

/* One piece. */
typedef struct Piece {
    /* index of its sample */
    int64_t row;
    /* its number in the sample */
    int64_t number;
    /* index of its first element among the elements of all samples */
    int64_t at;
} Piece;

static Piece piece_at(const PointTask *t, int64_t item)
{
    if (t->pieces == 1) return (Piece){.row = item, .at = item * t->loss.l->width};
    const Piece p = {.row = item / t->pieces, .number = item % t->pieces};
    return (Piece){p.row, p.number, p.row * t->loss.l->width + p.number * POINT_PIECE};
}

static PointArgs args_of(const PointTask *t, Piece p)
{
    const LossTask *loss = &t->loss;
    const OpRun *run = loss->run;
    const int64_t width = loss->l->width, from = p.number * POINT_PIECE;
    const int64_t at = p.row * run->weights_stride + from;
    return (PointArgs){.loss = loss->op->spec.point,
                       .parameter = t->parameter,
                       .x = element_at(run->x[0], p.at, loss->l->type),
                       .target = run->targets + p.at,
                       .weight = run->target_weights ? run->target_weights + at : NULL,
                       .n = width - from < POINT_PIECE ? width - from : POINT_PIECE};
}

/* Adds up the sums of a sample's pieces, and writes the sample's y and sum of weights. */
static void join(const PointTask *t, int64_t row)
{
    const OpRun *run = t->loss.run;
    const PointSum *sum = (const PointSum *)run->workspace + row * t->pieces;
    float *y = (float *)run->y + row * LOSS_COLUMNS, *weight = (float *)run->saved + row;
    double loss = 0, all = 0;
    memset(y, 0, LOSS_COLUMNS * sizeof *y);
    *weight = 0;
    if (row >= t->loss.real) return;
    for (int64_t p = 0; p < t->pieces; ++p) {
        loss += sum[p].loss;
        all += sum[p].weight;
    }
    y[0] = all > 0 ? (float)(loss / all) : 0;
    *weight = (float)all;
}

static void join_body(const void *task, int64_t begin, int64_t end)
{
    for (int64_t r = begin; r < end; ++r) join(task, r);
}

static void forward_body(const void *task, int64_t begin, int64_t end)
{
    const PointTask *t = task;
    const SimdTable *simd = simd_table(t->loss.l->type);
    PointSum *sum = t->loss.run->workspace;
    for (int64_t i = begin; i < end; ++i) {
        const Piece piece = piece_at(t, i);
        const PointArgs args = args_of(t, piece);
        if (piece.row < t->loss.real) sum[i] = simd->point_loss(&args);
        if (t->pieces == 1) join(t, i);
    }
}

static void point_forward(Op *op, const OpRun *run)
{
    const PointTask t = task_of(op, run);
    run_pieces(forward_body, &t);
    if (t.pieces > 1) work_run(join_body, &t, t.loss.l->rows, t.loss.l->rows * t.pieces);
}

static void grad_body(const void *task, int64_t begin, int64_t end)
{
    const PointTask *t = task;
    const LossTask *loss = &t->loss;
    const DType type = loss->l->type;
    for (int64_t i = begin; i < end; ++i) {
        const Piece piece = piece_at(t, i);
        const float weight = ((const float *)loss->run->saved)[piece.row];
        const PointArgs args = args_of(t, piece);
        void *dx = element_out(loss->run->dx[0], piece.at, type);
        if (piece.row < loss->real && weight > 0)
            simd_table(type)->point_grad(&args, loss->run->loss_factor / weight, dx);
        else
            elements_zero(dx, args.n, type);
    }
}

static void point_backward_data(Op *op, const OpRun *run)
{
    const PointTask t = task_of(op, run);
    if (run->dx[0]) run_pieces(grad_body, &t);
}

const OpTable cpu_point_loss = {
    .name = "point_loss",
    .plan = point_plan,
    .forward = point_forward,
    .backward_data = point_backward_data,
    .free = loss_free,
};
