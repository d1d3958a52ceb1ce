/* The operation yolo_loss on grids that are channels last: a launch for each level, then the sums
 * over levels. */
#include "../cuda.h"
#include "cuda_loss_kernels.h"

enum { PARTS = 3 };

/* Returns the number of places of the first `levels` levels. A place is an anchor of a cell. */
static int64_t all_places(const OpSpec *s, int levels)
{
    int64_t places = 0;
    for (int l = 0; l < levels; ++l) {
        const int64_t *x = s->x[l].shape.dim;
        places += x[2] * x[3] * (s->anchors.count / s->x_count);
    }
    return places;
}

static Status yolo_plan(Op *op, Desc preferred[SPEC_INPUTS])
{
    OpSpec *s = &op->spec;
    if (!cuda_inputs_fit(op, preferred)) return OK;
    const size_t n = (size_t)s->x[0].shape.dim[0];
    s->y = desc_plain(s->y.shape, DTYPE_F32);
    op->saved_bytes = n * (size_t)all_places(s, s->x_count) * sizeof(float);
    op->workspace_bytes = n * (size_t)s->x_count * PARTS * sizeof(double);
    for (int l = 0; l < s->x_count; ++l) op->needs_x[l] = true;
    return OK;
}

static YoloRun yolo_run(const Op *op, const OpRun *run, int level)
{
    const OpSpec *s = &op->spec;
    return (YoloRun){.type = s->x[0].dtype,
                     .x = run->x[level],
                     .dx = run->dx[level],
                     .overlap = (float *)run->saved + all_places(s, level),
                     .overlap_stride = all_places(s, s->x_count),
                     .parts = run->workspace,
                     .grid = box_grid(s, level),
                     .level = level,
                     .levels = s->x_count,
                     .classes = (int)box_classes(s),
                     .start = run->boxes.start,
                     .box = run->boxes.box,
                     .match_counts = run->boxes.match_counts,
                     .real = run->sample_count,
                     .smoothing = run->training ? (double)s->smoothing : 0,
                     .area = (double)s->image[0] * s->image[1],
                     .scale = run->loss_factor,
                     .numbers = run->numbers};
}

static void yolo_forward(Op *op, const OpRun *run)
{
    const int64_t samples = op->spec.x[0].shape.dim[0];
    for (int l = 0; l < op->spec.x_count; ++l)
        cuda_check(launch_yolo_loss(cuda_stream(op), yolo_run(op, run, l), samples),
                   "kernel yolo_loss");
    cuda_check(launch_yolo_results(cuda_stream(op), yolo_run(op, run, 0), run->y, samples),
               "kernel yolo_columns");
}

static void yolo_backward_data(Op *op, const OpRun *run)
{
    const int64_t samples = op->spec.x[0].shape.dim[0];
    for (int l = 0; l < op->spec.x_count; ++l)
        if (run->dx[l])
            cuda_check(launch_yolo_loss_backward(cuda_stream(op), yolo_run(op, run, l), samples),
                       "kernel yolo_loss_backward");
}

const OpTable cuda_yolo_loss = {
    .name = "yolo_loss",
    .plan = yolo_plan,
    .forward = yolo_forward,
    .backward_data = yolo_backward_data,
};
