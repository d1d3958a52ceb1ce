/* Losses with a label for each pixel: softmax_loss and focal_loss, both with class weights, and
 * region_loss, which is 1 - the mean Dice or IoU of the classes. Also focal_loss with one label for
 * each sample, and sigmoid_loss, with one logit for each sample. Images are channels last. */
#include "cuda_loss_kernels.h"
#include "pixel_loss.h"
#include "tensor/op_list.h"

/* The pixels of a sample are divided into parts; a block of threads computes one part. PART_PIXELS:
 * smallest number of pixels in a part, if a sample has several parts. CLASS_SUMS: number of sums
 * that region_loss computes for each class (class_sums_kernel in pixel_loss.cu). */
enum { PART_PIXELS = 4 * CUDA_THREADS, CLASS_SUMS = 3 };

bool cuda_has_pixels(const OpSpec *spec)
{
    return spec->kind == OP_SOFTMAX_LOSS && spec->x[0].shape.ndim == 4;
}

static int64_t pixels_of(const OpSpec *s)
{
    return loss_labels(s) / s->x[0].shape.dim[0];
}

/* Returns the number of parts into which the pixels of a sample are divided. */
static int64_t parts_of(const OpSpec *s)
{
    const int64_t parts = pixels_of(s) / PART_PIXELS;
    return parts > CUDA_SUM_BLOCKS ? CUDA_SUM_BLOCKS : parts > 1 ? parts : 1;
}

static PixelRun pixel_run(const Op *op, const OpRun *run)
{
    const OpSpec *s = &op->spec;
    const int64_t samples = s->x[0].shape.dim[0], pixels = pixels_of(s);
    PixelRun r = {.type = s->x[0].dtype,
                  .x = run->x[0],
                  .labels = run->labels,
                  .loss_results = run->y,
                  .dx = run->dx[0],
                  .log_sum = run->saved,
                  .factor = (float *)run->saved + samples * pixels,
                  .slopes = (float *)run->saved + samples * pixels,
                  .partial = run->workspace,
                  .weights = s->class_weights,
                  .region = s->region,
                  .smoothing = s->smoothing,
                  .focus = s->focus,
                  .scale = run->loss_factor,
                  .numbers = run->numbers,
                  .samples = samples,
                  .real = run->sample_count,
                  .pixels = pixels,
                  .classes = s->x[0].shape.dim[1],
                  .parts = parts_of(s)};
    r.weight_sum = r.weights.count > 0 ? 0 : (float)r.classes;
    for (int c = 0; c < r.weights.count; ++c) r.weight_sum += r.weights.value[c];
    return r;
}

/* Sets what all plan functions of this file set: the layouts, needs_x and the flops. Returns false
 * if an input does not have its preferred layout. The plan function then returns OK, and the
 * planner inserts a reorder and calls the plan function again. */
static bool plan_common(Op *op, Desc preferred[SPEC_INPUTS])
{
    OpSpec *s = &op->spec;
    if (!cuda_inputs_fit(op, preferred)) return false;
    s->y = desc_plain(s->y.shape, DTYPE_F32);
    op->needs_x[0] = true;
    op->flops_forward = op->flops_backward = 5.0 * (double)shape_count(s->x[0].shape);
    return true;
}

Status cuda_pixel_plan(Op *op, Desc preferred[SPEC_INPUTS])
{
    const OpSpec *s = &op->spec;
    const int64_t samples = s->x[0].shape.dim[0];
    if (!plan_common(op, preferred)) return OK;
    op->saved_bytes = (size_t)(loss_labels(s) + samples) * sizeof(float);
    op->workspace_bytes = (size_t)(samples * parts_of(s)) * sizeof(double);
    op->dx_over_x = true;
    return OK;
}

void cuda_pixel_forward(Op *op, const OpRun *run)
{
    PixelRun r = pixel_run(op, run);
    /* labels are smoothed in training only */
    if (!run->training) r.smoothing = 0;
    cuda_check(launch_pixel_loss(cuda_stream(op), r), "kernel pixel_loss");
}

void cuda_pixel_backward(Op *op, const OpRun *run)
{
    if (run->dx[0])
        cuda_check(launch_pixel_loss_backward(cuda_stream(op), pixel_run(op, run)),
                   "kernel pixel_loss_backward");
}

static Status region_plan(Op *op, Desc preferred[SPEC_INPUTS])
{
    const OpSpec *s = &op->spec;
    const int64_t samples = s->x[0].shape.dim[0], classes = s->x[0].shape.dim[1];
    if (!plan_common(op, preferred)) return OK;
    const int64_t sum_parts = cuda_sum_parts(s->x[0].dtype, pixels_of(s), classes);
    op->saved_bytes = (size_t)(loss_labels(s) + 2 * samples * classes) * sizeof(float);
    op->workspace_bytes = (size_t)(samples * sum_parts * CLASS_SUMS * classes) * sizeof(double);
    op->dx_over_x = true;
    return OK;
}

static void region_forward(Op *op, const OpRun *run)
{
    cuda_check(launch_region_loss(cuda_stream(op), pixel_run(op, run)), "kernel region_loss");
}

static void region_backward(Op *op, const OpRun *run)
{
    if (run->dx[0])
        cuda_check(launch_region_loss_backward(cuda_stream(op), pixel_run(op, run)),
                   "kernel region_loss_backward");
}

static Status sigmoid_plan(Op *op, Desc preferred[SPEC_INPUTS])
{
    (void)plan_common(op, preferred);
    return OK;
}

static void sigmoid_forward(Op *op, const OpRun *run)
{
    cuda_check(launch_sigmoid_loss(cuda_stream(op), pixel_run(op, run)), "kernel sigmoid_loss");
}

static void sigmoid_backward(Op *op, const OpRun *run)
{
    if (run->dx[0])
        cuda_check(launch_sigmoid_loss_backward(cuda_stream(op), pixel_run(op, run)),
                   "kernel sigmoid_loss_backward");
}

const OpTable cuda_focal_loss = {
    .name = "focal_loss",
    .plan = cuda_pixel_plan,
    .forward = cuda_pixel_forward,
    .backward_data = cuda_pixel_backward,
};

const OpTable cuda_region_loss = {
    .name = "region_loss",
    .plan = region_plan,
    .forward = region_forward,
    .backward_data = region_backward,
};

const OpTable cuda_sigmoid_loss = {
    .name = "sigmoid_loss",
    .plan = sigmoid_plan,
    .forward = sigmoid_forward,
    .backward_data = sigmoid_backward,
};
