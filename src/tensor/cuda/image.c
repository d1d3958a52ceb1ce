/* Images, which lie channels last: pooling, concat along the channels, and reorder, which brings them there and back. */
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

/* ---- reorder ---- */

/* The plain order of a flat view is that of the plain image. */
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

static Status reorder_plan(Op *op, Desc preferred[OP_INPUTS])
{
    const OpSpec *s = &op->spec;
    const Desc both[] = {s->x[0], s->y};
    (void)preferred;
    for (int i = 0; i < 2; ++i)
        if (both[i].dtype == DTYPE_I32 || (image_of(both[i]).ndim == 4 && both[i].block > 1 &&
                                           both[i].block != image_of(both[i]).dim[1]))
            return fail(ERR_BUG, "cuda: reorder knows numbers, plain and channels last");
    if (rows_padded(s->x[0]) != rows_padded(s->y) && s->x[0].dtype != s->y.dtype)
        return fail(ERR_BUG, "cuda: reorder pads rows of one type only");
    return OK;
}

/* The padding of what is written is zero. */
static void copy_rows(const Op *op, Desc from_desc, Desc to_desc, const void *from, void *to)
{
    size_t size = dtype_bytes(to_desc.dtype), to_row = (size_t)desc_row(to_desc) * size,
           from_row = (size_t)desc_row(from_desc) * size;
    size_t width = (size_t)to_desc.shape.dim[to_desc.shape.ndim - 1] * size;
    cudaStream_t stream = cuda_stream(op);
    if (to_row > width) CUDA_CALL(cudaMemsetAsync(to, 0, desc_bytes(to_desc), stream));
    CUDA_CALL(cudaMemcpy2DAsync(to, to_row, from, from_row, width, desc_bytes(to_desc) / to_row,
                                cudaMemcpyDeviceToDevice, stream));
}

static void reorder(const Op *op, Desc from_desc, Desc to_desc, const void *from, void *to)
{
    if (rows_padded(from_desc) != rows_padded(to_desc)) {
        copy_rows(op, from_desc, to_desc, from, to);
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
    cuda_check(cuda_reorder_image(cuda_stream(op), run), "kernel reorder");
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

/* ---- pooling ---- */

static Status pool_plan(Op *op, Desc preferred[OP_INPUTS])
{
    OpSpec *s = &op->spec;
    if (!cuda_inputs(op, preferred)) return OK;
    s->y = cuda_desc(op, s->y.shape);
    if (s->pool == POOL_MAX)
        op->saved_bytes = (size_t)shape_count(s->y.shape);
    else
        op->needs_y = s->act == ACT_RELU;
    return OK;
}

static PoolRun pool_run(const Op *op, const OpRun *run)
{
    const OpSpec *s = &op->spec;
    const int64_t *x = s->x[0].shape.dim, *y = s->y.shape.dim;
    PoolRun p = {.type = s->y.dtype,
                 .x = run->x[0],
                 .dy = run->dy,
                 .y = run->y,
                 .dx = run->dx[0],
                 .place = s->pool == POOL_MAX ? run->saved : NULL,
                 .relu = s->act == ACT_RELU,
                 .h = (int)x[2],
                 .w = (int)x[3],
                 .p = (int)y[2],
                 .q = (int)y[3],
                 .samples = x[0],
                 .channels = x[1]};
    for (int d = 0; d < 2; ++d) {
        bool all = s->pool == POOL_GLOBAL_AVG;
        p.kernel[d] = all ? (int)x[2 + d] : s->kernel[d];
        p.stride[d] = all ? 1 : s->stride[d];
        p.pad[d] = all ? 0 : s->pad[d];
    }
    return p;
}

static void pool_forward(Op *op, const OpRun *run)
{
    cuda_check(cuda_pool(cuda_stream(op), pool_run(op, run)), "kernel pool");
}

static void pool_backward_begin(Op *op, const OpRun *run)
{
    if (op->needs_y)
        cuda_check(cuda_activation_backward(cuda_stream(op), op->spec.y.dtype, ACT_RELU, run->dy,
                                            run->dy, run->y, shape_count(op->spec.y.shape)),
                   "kernel activation_backward");
}

static void pool_backward_data(Op *op, const OpRun *run)
{
    if (run->dx[0])
        cuda_check(cuda_pool_backward(cuda_stream(op), pool_run(op, run)), "kernel pool_backward");
}

const OpTable cuda_pooling = {
    .name = "pool",
    .plan = pool_plan,
    .forward = pool_forward,
    .backward_begin = pool_backward_begin,
    .backward_data = pool_backward_data,
};

/* ---- concat ---- */

static Status concat_plan(Op *op, Desc preferred[OP_INPUTS])
{
    if (!cuda_inputs(op, preferred)) return OK;
    op->spec.y = cuda_desc(op, op->spec.y.shape);
    return OK;
}

/* Rows of y are the inputs' rows one behind the other: pixels of an image, samples else. */
static void concat_copy(const Op *op, const OpRun *run, bool back)
{
    const OpSpec *s = &op->spec;
    size_t size = dtype_bytes(s->y.dtype), at = 0;
    bool image = s->y.shape.ndim == 4;
    size_t rows = (size_t)(s->y.shape.dim[0] * (image ? s->y.shape.dim[2] * s->y.shape.dim[3] : 1));
    size_t whole = desc_bytes(s->y) / rows;
    for (int i = 0; i < s->x_count; ++i) {
        size_t width = (size_t)shape_count(s->x[i].shape) * size / rows;
        char *joined = (char *)(back ? run->dy : run->y) + at;
        const char *y = joined;
        if (back && run->dx[i])
            CUDA_CALL(cudaMemcpy2DAsync(run->dx[i], width, y, whole, width, rows, cudaMemcpyDefault,
                                        cuda_stream(op)));
        else if (!back)
            CUDA_CALL(cudaMemcpy2DAsync(joined, whole, run->x[i], width, width, rows,
                                        cudaMemcpyDefault, cuda_stream(op)));
        at += width;
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

const OpTable cuda_join = {
    .name = "concat",
    .plan = concat_plan,
    .forward = concat_forward,
    .backward_data = concat_backward_data,
};
