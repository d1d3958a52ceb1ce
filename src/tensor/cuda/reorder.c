/* The operation reorder: converts images between plain order and channels last, rows between padded
 * and not padded, and numbers between types. */
#include "cuda.h"

void cuda_permute(float *to, const float *from, int64_t samples, int64_t channels, int64_t pixels,
                  bool to_last)
{
    for (int64_t n = 0; n < samples; ++n)
        for (int64_t c = 0; c < channels; ++c)
            for (int64_t p = 0; p < pixels; ++p) {
                int64_t plain = (n * channels + c) * pixels + p,
                        last = (n * pixels + p) * channels + c;
                if (to_last)
                    to[last] = from[plain];
                else
                    to[plain] = from[last];
            }
}

/* Returns the shape that determines the order in memory. For a flat view of an image, it is the
 * shape of the image. */
static Shape image_of(Desc d)
{
    return d.flat ? d.image : d.shape;
}

static bool channels_last(Desc d)
{
    return image_of(d).ndim == 4 && d.block > 1;
}

static bool rows_padded(Desc d)
{
    return image_of(d).ndim != 4 && d.block > 1;
}

static Status reorder_plan(Op *op, Desc preferred[SPEC_INPUTS])
{
    const OpSpec *s = &op->spec;
    const Desc both[] = {s->x[0], s->y};
    (void)preferred;
    for (int i = 0; i < 2; ++i)
        if (both[i].dtype == DTYPE_I32 || (image_of(both[i]).ndim == 4 && both[i].block > 1 &&
                                           both[i].block != image_of(both[i]).dim[1]))
            return fail(ERR_BUG, "cuda: reorder is for floating-point tensors, plain or channels "
                                 "last");
    if (rows_padded(s->x[0]) != rows_padded(s->y) && s->x[0].dtype != s->y.dtype)
        return fail(ERR_BUG, "cuda: reorder cannot pad rows and convert their type at once");
    return OK;
}

/* Copies rows from padded to not padded, or back. Padding in the output becomes 0. */
static void copy_padded_rows(const Op *op, Desc from_desc, Desc to_desc, const void *from, void *to)
{
    size_t size = dtype_bytes(to_desc.dtype), to_row = (size_t)desc_row_stride(to_desc) * size,
           from_row = (size_t)desc_row_stride(from_desc) * size;
    size_t width = (size_t)to_desc.shape.dim[to_desc.shape.ndim - 1] * size;
    cudaStream_t stream = cuda_stream(op);
    if (to_row > width) CUDA_CALL(cudaMemsetAsync(to, 0, desc_bytes(to_desc), stream));
    cuda_copy_rows(stream, (CudaRows){to, to_row}, (CudaRows){(char *)(uintptr_t)from, from_row},
                   width, desc_bytes(to_desc) / to_row);
}

static void reorder(const Op *op, Desc from_desc, Desc to_desc, const void *from, void *to)
{
    if (rows_padded(from_desc) != rows_padded(to_desc)) {
        copy_padded_rows(op, from_desc, to_desc, from, to);
        return;
    }
    Shape s = channels_last(from_desc) ? image_of(from_desc) : image_of(to_desc);
    bool image = s.ndim == 4;
    int64_t n = shape_count(s);
    ReorderRun run = {.from_type = from_desc.dtype,
                      .to_type = to_desc.dtype,
                      .from = from,
                      .to = to,
                      .from_last = channels_last(from_desc),
                      .to_last = channels_last(to_desc),
                      .samples = image ? s.dim[0] : 1,
                      .channels = image ? s.dim[1] : 1,
                      .pixels = image ? s.dim[2] * s.dim[3] : n};
    cuda_check(launch_reorder(cuda_stream(op), run), "kernel reorder");
}

static void reorder_forward(Op *op, const OpRun *run)
{
    reorder(op, op->spec.x[0], op->spec.y, run->x[0], run->y);
}

static void reorder_backward_data(Op *op, const OpRun *run)
{
    if (run->dx[0]) reorder(op, op->spec.y, op->spec.x[0], run->dy, run->dx[0]);
}

const OpTable cuda_reorder = {
    .name = "reorder",
    .plan = reorder_plan,
    .forward = reorder_forward,
    .backward_data = reorder_backward_data,
};
