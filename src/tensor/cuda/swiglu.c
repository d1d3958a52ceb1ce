/* The operation swiglu on rows in plain order. */
#include "cuda.h"

static Status swiglu_plan(Op *op, Desc preferred[SPEC_INPUTS])
{
    if (!cuda_inputs_fit(op, preferred)) return OK;
    op->spec.y = cuda_desc(op, op->spec.y.shape);
    op->needs_x[0] = true;
    return OK;
}

static SwigluRun swiglu_run(const Op *op, const OpRun *run)
{
    const Shape y = op->spec.y.shape;
    const int64_t width = y.dim[y.ndim - 1];
    return (SwigluRun){.type = op->spec.y.dtype,
                       .x = run->x[0],
                       .dy = run->dy,
                       .y = run->y,
                       .dx = run->dx[0],
                       .rows = shape_count(y) / width,
                       .width = width};
}

static void swiglu_forward(Op *op, const OpRun *run)
{
    cuda_check(launch_swiglu(cuda_stream(op), swiglu_run(op, run)), "kernel swiglu");
}

static void swiglu_backward_data(Op *op, const OpRun *run)
{
    if (run->dx[0])
        cuda_check(launch_swiglu_backward(cuda_stream(op), swiglu_run(op, run)),
                   "kernel swiglu_backward");
}

const OpTable cuda_swiglu = {
    .name = "swiglu",
    .plan = swiglu_plan,
    .forward = swiglu_forward,
    .backward_data = swiglu_backward_data,
};
