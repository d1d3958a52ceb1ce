/* The operations softmax_loss and point_loss. Forward writes LOSS_COLUMNS results for each row,
 * backward the gradient of the sum of losses times OpRun.loss_factor. If the gradient replaces the
 * logits in memory, softmax_loss in training computes it in forward already, unless the logits are
 * in slices or have a label for each pixel. If logits are in slices, on one or several ranks,
 * forward computes partial results of each slice, which the ranks gather. */
#include "cuda_loss_kernels.h"
#include "pixel_loss.h"
#include "tensor/op_list.h"

/* Slices of a row of logits: those of OpSpec.slices or, if there are none, one for each rank. */
typedef struct ClassSlices {
    /* number of slices on all ranks; 0: rows are not cut */
    int total;
    /* index of this rank's first slice */
    int first;
    /* number of slices of this rank */
    int count;
} ClassSlices;
static ClassSlices class_slices(const OpSpec *s)
{
    if (s->slices.total > 0)
        return (ClassSlices){s->slices.total, s->slices.first, s->slices.count};
    return (ClassSlices){s->slice.ranks, s->slice.rank, s->slice.ranks > 0};
}

/* Returns whether x is (N,C,L) or (N,C,H,W) with a target for each element. A row is then a
 * complete sample. */
static bool is_field(const OpSpec *spec)
{
    return op_info(spec->kind)->reads == READS_TARGETS && spec->x[0].shape.ndim > 2;
}

/* Returns the number of columns of a row. A row of a field is a complete sample; otherwise a row is
 * the last dimension of (N,K) or (N,T,K). */
static int64_t row_width(const OpSpec *spec)
{
    const Shape x = spec->x[0].shape;
    return is_field(spec) ? shape_count(x) / x.dim[0] : x.dim[x.ndim - 1];
}

/* Plans softmax_loss and point_loss. Fields are read in plain order. Other rows may have the
 * padding of dense's output (cuda_rows_padded). */
static Status loss_plan(Op *op, Desc preferred[SPEC_INPUTS])
{
    OpSpec *spec = &op->spec;
    const Desc *x = &spec->x[0];
    const DType precision = op->backend->options.precision;
    if (cuda_has_pixels(spec)) return cuda_pixel_plan(op, preferred);
    if (is_field(spec)) {
        preferred[0] = desc_plain(x->shape, precision);
        if (!desc_equal(preferred[0], *x)) return OK;
    } else {
        bool padded = x->block == ROW_BLOCK && !x->flat && x->dtype == precision;
        if (!padded && !cuda_inputs_fit(op, preferred)) return OK;
    }
    spec->y = desc_plain(spec->y.shape, DTYPE_F32);
    op->needs_x[0] = true;
    op->flops_forward = op->flops_backward = 5.0 * (double)shape_count(spec->x[0].shape);
    size_t row_floats = (size_t)(shape_count(spec->y.shape) / LOSS_COLUMNS) * sizeof(float);
    op->saved_bytes = row_floats;
    if (spec->kind != OP_SOFTMAX_LOSS) {
        const int64_t width = row_width(spec), rows = shape_count(x->shape) / width;
        op->workspace_bytes = (size_t)(2 * rows * cuda_point_parts(width)) * sizeof(double);
        return OK;
    }
    const ClassSlices c = class_slices(spec);
    op->workspace_bytes = row_floats * (1 + LOSS_SUMMARY) * (size_t)(c.count + c.total);
    op->dx_over_x = true;
    return OK;
}

static LossRun loss_run(const Op *op, const OpRun *run)
{
    const Shape *x = &op->spec.x[0].shape;
    const TensorSlice *slice = &op->spec.slice;
    const bool field = is_field(&op->spec);
    const int64_t width = row_width(&op->spec), rows = shape_count(*x) / width;
    return (LossRun){
        .type = op->spec.x[0].dtype,
        .x = run->x[0],
        .labels = run->labels,
        .targets = run->targets,
        .weights = run->target_weights,
        .weights_stride = run->weights_stride,
        .results = run->y,
        .log_sum = run->saved,
        .row_weight = run->saved,
        .partial = run->workspace,
        .dx = run->dx[0],
        .point = op->spec.point,
        .point_parameter = point_parameter(&op->spec),
        .smoothing = op->spec.smoothing,
        .scale = run->loss_factor,
        .numbers = run->numbers,
        .rows = rows,
        .real = run->sample_count * (rows / x->dim[0]),
        .width = width,
        .stride = field ? width : desc_row_stride(op->spec.x[0]),
        .first = slice->ranks ? slice->first : 0,
        .classes = slice->ranks ? slice->whole : width,
        .shared_bytes = cuda_state(op)->softmax_shared_bytes,
    };
}

/* Returns loss_run for forward, which smooths labels only in training. */
static LossRun forward_run(const Op *op, const OpRun *run)
{
    LossRun loss = loss_run(op, run);
    if (!run->training) loss.smoothing = 0;
    return loss;
}

/* Returns `all` restricted to this rank's slice i. */
static LossSlices slice_run(const LossSlices *all, ClassSlices c, int i)
{
    LossSlices s = *all;
    const int64_t from = slice_first(s.loss.classes, c.total, c.first + i);
    const size_t before = (size_t)(from - s.loss.first) * dtype_bytes(s.loss.type);
    s.loss.width = slice_first(s.loss.classes, c.total, c.first + i + 1) - from;
    s.loss.x = (const char *)s.loss.x + before;
    s.loss.first = from;
    s.label_logit += i * s.loss.rows;
    s.summary += i * s.loss.rows * LOSS_SUMMARY;
    return s;
}

static void sliced_forward(Op *op, const OpRun *run)
{
    const Exchange *exchange = run->exchange;
    const ClassSlices c = class_slices(&op->spec);
    LossSlices s = {.loss = forward_run(op, run),
                    .slices = c.total,
                    .by_width = op->spec.slices.total > 0,
                    .label_logit = run->workspace};
    const bool gathers = c.count < c.total;
    const int64_t mine = c.count * s.loss.rows, all = c.total * s.loss.rows;
    Slices logits = {
        .ranges = 1, .items = c.total / c.count, .item_elements = mine, .type = DTYPE_F32};
    Slices summaries = logits;
    summaries.item_elements *= LOSS_SUMMARY;
    s.all_label_logits = s.label_logit + (gathers ? mine : 0);
    s.summary = s.all_label_logits + all;
    s.all_summaries = s.summary + (gathers ? summaries.item_elements : 0);
    for (int i = 0; i < c.count; ++i)
        cuda_check(launch_softmax_label(cuda_stream(op), slice_run(&s, c, i)),
                   "kernel softmax_label");
    if (gathers) exchange->all_gather(exchange, logits, s.label_logit, s.all_label_logits);
    for (int i = 0; i < c.count; ++i)
        cuda_check(launch_softmax_summary(cuda_stream(op), slice_run(&s, c, i)),
                   "kernel softmax_summary");
    if (gathers) exchange->all_gather(exchange, summaries, s.summary, s.all_summaries);
    cuda_check(launch_softmax_merge(cuda_stream(op), s), "kernel softmax_merge");
}

/* Returns whether forward writes dx over the logits. Backward then has nothing to do. */
static bool gradient_in_forward(const Op *op, const OpRun *run)
{
    return run->training && run->dx[0] && run->dx[0] == run->x[0] &&
           class_slices(&op->spec).total == 0;
}

static void softmax_forward(Op *op, const OpRun *run)
{
    LossRun loss = forward_run(op, run);
    if (cuda_has_pixels(&op->spec)) {
        cuda_pixel_forward(op, run);
        return;
    }
    if (class_slices(&op->spec).total > 0) {
        sliced_forward(op, run);
        return;
    }
    if (!gradient_in_forward(op, run)) loss.dx = NULL;
    cuda_check(launch_softmax_loss(cuda_stream(op), loss), "kernel softmax_loss");
}

static void softmax_backward(Op *op, const OpRun *run)
{
    if (cuda_has_pixels(&op->spec))
        cuda_pixel_backward(op, run);
    else if (run->dx[0] && !gradient_in_forward(op, run))
        cuda_check(launch_softmax_loss_backward(cuda_stream(op), loss_run(op, run)),
                   "kernel softmax_loss_backward");
}

static void point_forward(Op *op, const OpRun *run)
{
    cuda_check(launch_point_loss(cuda_stream(op), loss_run(op, run)), "kernel point_loss");
}

static void point_backward(Op *op, const OpRun *run)
{
    if (run->dx[0])
        cuda_check(launch_point_loss_backward(cuda_stream(op), loss_run(op, run)),
                   "kernel point_loss_backward");
}

const OpTable cuda_softmax_loss = {
    .name = "softmax_loss",
    .plan = loss_plan,
    .forward = softmax_forward,
    .backward_data = softmax_backward,
};

const OpTable cuda_point_loss = {
    .name = "point_loss",
    .plan = loss_plan,
    .forward = point_forward,
    .backward_data = point_backward,
};
