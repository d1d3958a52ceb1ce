/* numeric_embedding: each number of a row is multiplied by a vector of its own. The gradient of a
 * vector is a sum over all rows. One thread adds the terms of this sum, in order, so any number of
 * threads gives the same bits. */
#include "vectors.h"

#include <string.h>

/* y[n,i*width+k] = x[n,i] w[i,k]; x (N,D), w (D,width), y (N,D*width) */
const OpInfo info_numeric_embedding = {
    .name = "numeric_embedding",
    .split = SPLIT_NEVER,
    .fuse = FUSE_NEVER,
    .residual = RESIDUAL_NEVER,
    .communication = COMMUNICATES_NEVER,
    .tokens = TOKENS_TOGETHER,
    .params = PARAMS_EMBEDDING,
    .reads = READS_NOTHING,
    .traffic = TRAFFIC_ONCE,
    .dx = DX_WRITTEN,
    .acts = ACTS_NONE,
};

typedef struct NumericTask {
    DType type;
    /* numbers per row */
    int64_t numbers;
    /* floats per vector */
    int64_t width;
    int64_t rows;
    /* number of rows that are not padding */
    int64_t real;
    const void *x, *dy;
    const float *w;
    void *y, *dx;
    float *dw;
    /* scratch if `type` is not fp32. scratch_x, scratch_dx: float[rows][numbers]; scratch_y: for y
     * or dy, float[rows][numbers * width]. */
    float *scratch_x, *scratch_dx, *scratch_y;
} NumericTask;

static Status numeric_plan(Op *op, Desc preferred[SPEC_INPUTS])
{
    OpSpec *s = &op->spec;
    preferred[0] = in_precision(op, layout_plain(s->x[0]));
    s->y = desc_plain(s->y.shape, preferred[0].dtype);
    op->w_elements[0] = shape_count(s->w[0]);
    op->needs_x[0] = true;
    op->weight_may_wait = true;
    if (s->y.dtype != DTYPE_F32)
        op->workspace_bytes =
            (size_t)(2 * shape_count(s->x[0].shape) + shape_count(s->y.shape)) * sizeof(float);
    return OK;
}

static NumericTask task_of(Op *op, const OpRun *run)
{
    const OpSpec *s = &op->spec;
    const int64_t n = shape_count(s->x[0].shape);
    float *scratch = run->workspace;
    return (NumericTask){.type = s->y.dtype,
                         .numbers = s->w[0].dim[0],
                         .width = s->w[0].dim[1],
                         .rows = s->x[0].shape.dim[0],
                         .real = run->sample_count,
                         .x = run->x[0],
                         .dy = run->dy,
                         .w = run->w[0],
                         .y = run->y,
                         .dx = run->dx[0],
                         .dw = run->dw[0],
                         .scratch_x = scratch,
                         .scratch_dx = scratch ? scratch + n : NULL,
                         .scratch_y = scratch ? scratch + 2 * n : NULL};
}

static void forward_body(const void *task, int64_t begin, int64_t end)
{
    const NumericTask *t = task;
    const int64_t columns = t->numbers * t->width;
    for (int64_t r = begin; r < end; ++r) {
        const float *x = row_floats(t->x, r, t->numbers, t->type, t->scratch_x);
        float *y = row_open(t->y, r, columns, t->type, t->scratch_y);
        for (int64_t i = 0; i < t->numbers; ++i)
            for (int64_t k = i * t->width; k < (i + 1) * t->width; ++k) y[k] = x[i] * t->w[k];
        row_close(t->y, r, columns, t->type, y);
    }
}

static void numeric_forward(Op *op, const OpRun *run)
{
    NumericTask t = task_of(op, run);
    work_run(forward_body, &t, t.rows, shape_count(op->spec.y.shape));
}

static void data_body(const void *task, int64_t begin, int64_t end)
{
    const NumericTask *t = task;
    for (int64_t r = begin; r < end; ++r) {
        const float *dy = row_floats(t->dy, r, t->numbers * t->width, t->type, t->scratch_y);
        float *dx = row_open(t->dx, r, t->numbers, t->type, t->scratch_dx);
        for (int64_t i = 0; i < t->numbers; ++i)
            dx[i] = vectors_dot(dy + i * t->width, t->w + i * t->width, t->width);
        row_close(t->dx, r, t->numbers, t->type, dx);
    }
}

static void numeric_backward_data(Op *op, const OpRun *run)
{
    NumericTask t = task_of(op, run);
    if (t.dx) work_run(data_body, &t, t.rows, shape_count(op->spec.y.shape));
}

/* An item of work_run is one vector of w. Its gradient is summed over all rows, in order. */
static void weight_body(const void *task, int64_t begin, int64_t end)
{
    const NumericTask *t = task;
    const int64_t width = t->width;
    memset(t->dw + begin * width, 0, (size_t)((end - begin) * width) * sizeof *t->dw);
    for (int64_t r = 0; r < t->real; ++r)
        for (int64_t i = begin; i < end; ++i) {
            const int64_t at = r * t->numbers + i;
            float x;
            simd_table(t->type)->to_floats(&x, element_at(t->x, at, t->type), 1);
            vectors_add(t->dw + i * width, x, row_floats(t->dy, at, width, t->type, t->scratch_y),
                        width);
        }
}

static void numeric_backward_weight(Op *op, const OpRun *run)
{
    NumericTask t = task_of(op, run);
    work_run(weight_body, &t, t.numbers, shape_count(op->spec.y.shape));
}

const OpTable cpu_numeric_embedding = {
    .name = "numeric_embedding",
    .plan = numeric_plan,
    .forward = numeric_forward,
    .backward_data = numeric_backward_data,
    .backward_weight = numeric_backward_weight,
};
