/* softmax_loss and mse_loss. Forward writes LOSS_COLUMNS results for each row, backward the
 * gradient of the scaled sum of losses. If the gradient replaces the logits in memory, softmax_loss
 * computes it in forward already. If each rank of a tensor group has a slice of the logits, forward
 * gathers the ranks' partial results. */
#include "cuda.h"
#include "tensor/op_list.h"

static Status loss_plan(Op *op, Desc preferred[SPEC_INPUTS])
{
    OpSpec *spec = &op->spec;
    const Desc *x = &spec->x[0];
    bool padded = x->block == ROW_BLOCK && !x->flat && x->dtype == op->backend->options.precision;
    if (!padded && !cuda_inputs_fit(op, preferred)) return OK;
    spec->y = desc_plain(spec->y.shape, DTYPE_F32);
    op->needs_x[0] = true;
    op->flops_forward = op->flops_backward = 5.0 * (double)shape_count(spec->x[0].shape);
    if (spec->kind != OP_SOFTMAX_LOSS) return OK;
    size_t row_floats = (size_t)(shape_count(spec->y.shape) / LOSS_COLUMNS) * sizeof(float);
    op->saved_bytes = row_floats;
    if (spec->slice.ranks)
        op->workspace_bytes = row_floats * (1 + LOSS_SUMMARY) * (size_t)(1 + spec->slice.ranks);
    op->dx_over_x = true;
    return OK;
}

/* x of shape (N,K) has one row for each sample; x of shape (N,T,K) has T rows for each. */
static LossRun loss_run(const Op *op, const OpRun *run)
{
    const Shape *x = &op->spec.x[0].shape;
    const TensorSlice *slice = &op->spec.slice;
    int64_t width = x->dim[x->ndim - 1], rows = shape_count(*x) / width;
    return (LossRun){
        .type = op->spec.x[0].dtype,
        .x = run->x[0],
        .labels = run->labels,
        .targets = run->targets,
        .columns = run->y,
        .log_sum = run->saved,
        .dx = run->dx[0],
        .smoothing = op->spec.smoothing,
        .scale = run->loss_scale,
        .numbers = run->numbers,
        .rows = rows,
        .real = run->rows * (rows / x->dim[0]),
        .width = width,
        .stride = desc_row(op->spec.x[0]),
        .first = slice->ranks ? slice->first : 0,
        .classes = slice->ranks ? slice->whole : width,
        .shared_bytes = cuda_state(op)->softmax_shared_bytes,
    };
}

/* Like loss_run, but smooths labels in training only. */
static LossRun forward_run(const Op *op, const OpRun *run)
{
    LossRun loss = loss_run(op, run);
    if (!run->training) loss.smoothing = 0;
    return loss;
}

static void sliced_forward(Op *op, const OpRun *run)
{
    const Exchange *exchange = run->exchange;
    LossSlices s = {
        .loss = forward_run(op, run), .ranks = op->spec.slice.ranks, .label_logit = run->workspace};
    Slices logits = {.runs = 1, .items = s.ranks, .unit = s.loss.rows, .type = DTYPE_F32},
           summaries = logits;
    summaries.unit *= LOSS_SUMMARY;
    s.all_label_logits = s.label_logit + logits.unit;
    s.summary = s.all_label_logits + s.ranks * logits.unit;
    s.all_summaries = s.summary + summaries.unit;
    cuda_check(launch_softmax_label(cuda_stream(op), s), "kernel softmax_label");
    exchange->gather(exchange, logits, s.label_logit, s.all_label_logits);
    cuda_check(launch_softmax_summary(cuda_stream(op), s), "kernel softmax_summary");
    exchange->gather(exchange, summaries, s.summary, s.all_summaries);
    cuda_check(launch_softmax_merge(cuda_stream(op), s), "kernel softmax_merge");
}

/* True if forward writes dx over the logits; then backward has nothing to do. */
static bool gradient_in_forward(const Op *op, const OpRun *run)
{
    return run->training && run->dx[0] && run->dx[0] == run->x[0] && !op->spec.slice.ranks;
}

static void softmax_forward(Op *op, const OpRun *run)
{
    LossRun loss = forward_run(op, run);
    if (op->spec.slice.ranks) {
        sliced_forward(op, run);
        return;
    }
    if (!gradient_in_forward(op, run)) loss.dx = NULL;
    cuda_check(launch_softmax_loss(cuda_stream(op), loss), "kernel softmax_loss");
}

static void softmax_backward(Op *op, const OpRun *run)
{
    if (run->dx[0] && !gradient_in_forward(op, run))
        cuda_check(launch_softmax_loss_backward(cuda_stream(op), loss_run(op, run)),
                   "kernel softmax_loss_backward");
}

static void mse_forward(Op *op, const OpRun *run)
{
    cuda_check(launch_mse_loss(cuda_stream(op), loss_run(op, run)), "kernel mse_loss");
}

static void mse_backward(Op *op, const OpRun *run)
{
    if (run->dx[0])
        cuda_check(launch_mse_loss_backward(cuda_stream(op), loss_run(op, run)),
                   "kernel mse_loss_backward");
}

const OpTable cuda_softmax_loss = {
    .name = "softmax_loss",
    .plan = loss_plan,
    .forward = softmax_forward,
    .backward_data = softmax_backward,
};

const OpTable cuda_mse_loss = {
    .name = "mse_loss",
    .plan = loss_plan,
    .forward = mse_forward,
    .backward_data = mse_backward,
};
