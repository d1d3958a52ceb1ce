/* The operation concat, along the channels. In a channels-last image the channels of a pixel are
 * contiguous, so each input is copied as rows. */
#include "cuda.h"

static Status concat_plan(Op *op, Desc preferred[SPEC_INPUTS])
{
    if (!cuda_inputs_fit(op, preferred)) return OK;
    op->spec.y = cuda_desc(op, op->spec.y.shape);
    return OK;
}

/* Copies the inputs to y or, if `back` is true, dy to every dx. A row is a pixel of an image, or a
 * sample of a tensor that is not an image. A row of y consists of the rows of the inputs, one after
 * the other. */
static void concat_copy(const Op *op, const OpRun *run, bool back)
{
    const OpSpec *s = &op->spec;
    size_t size = dtype_bytes(s->y.dtype), offset = 0;
    bool image = s->y.shape.ndim == 4;
    size_t rows = (size_t)(s->y.shape.dim[0] * (image ? s->y.shape.dim[2] * s->y.shape.dim[3] : 1));
    size_t y_width = desc_bytes(s->y) / rows;
    for (int i = 0; i < s->x_count; ++i) {
        size_t width = (size_t)shape_count(s->x[i].shape) * size / rows;
        CudaRows y = {(char *)(back ? run->dy : run->y) + offset, y_width};
        void *x = back ? run->dx[i] : (void *)(uintptr_t)run->x[i];
        if (back && x)
            cuda_copy_rows(cuda_stream(op), (CudaRows){x, width}, y, width, rows);
        else if (!back)
            cuda_copy_rows(cuda_stream(op), y, (CudaRows){x, width}, width, rows);
        offset += width;
    }
}

static void concat_forward(Op *op, const OpRun *run)
{
    concat_copy(op, run, false);
}

static void concat_backward_data(Op *op, const OpRun *run)
{
    concat_copy(op, run, true);
}

const OpTable cuda_concat = {
    .name = "concat",
    .plan = concat_plan,
    .forward = concat_forward,
    .backward_data = concat_backward_data,
};
