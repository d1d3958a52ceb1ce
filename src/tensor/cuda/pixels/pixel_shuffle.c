/* The operation pixel_shuffle on channels-last images. */
#include "../cuda.h"

static Status shuffle_plan(Op *op, Desc preferred[SPEC_INPUTS])
{
    if (!cuda_inputs_fit(op, preferred)) return OK;
    op->spec.y = cuda_desc(op, op->spec.y.shape);
    return OK;
}

static ShuffleRun shuffle_run(const Op *op, const void *from, void *to, bool back)
{
    const OpSpec *s = &op->spec;
    const int64_t *x = s->x[0].shape.dim;
    return (ShuffleRun){.type = s->y.dtype,
                        .from = from,
                        .to = to,
                        .back = back,
                        .scale = s->scale,
                        .h = (int)x[2],
                        .w = (int)x[3],
                        .samples = x[0],
                        .channels = s->y.shape.dim[1]};
}

static void shuffle_forward(Op *op, const OpRun *run)
{
    cuda_check(launch_pixel_shuffle(cuda_stream(op), shuffle_run(op, run->x[0], run->y, false)),
               "kernel pixel_shuffle");
}

static void shuffle_backward_data(Op *op, const OpRun *run)
{
    if (run->dx[0])
        cuda_check(
            launch_pixel_shuffle(cuda_stream(op), shuffle_run(op, run->dy, run->dx[0], true)),
            "kernel pixel_shuffle");
}

const OpTable cuda_pixel_shuffle = {
    .name = "pixel_shuffle",
    .plan = shuffle_plan,
    .forward = shuffle_forward,
    .backward_data = shuffle_backward_data,
};
