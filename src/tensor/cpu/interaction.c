/* interaction: the dot products of all pairs of a row's vectors. An item of work_run is a row. */
#include "vectors.h"

#include <string.h>

static Status interaction_check(const OpSpec *s)
{
    char a[64], b[64];
    const Shape x = s->x[0].shape, y = s->y.shape;
    const int64_t n = s->row_width > 0 ? x.dim[1] / s->row_width : 0;
    if (x.ndim == 2 && y.ndim == 2 && n > 1 && x.dim[1] == n * s->row_width &&
        y.dim[1] == n * (n - 1) / 2)
        return OK;
    return fail(ERR_CONFIG, "interaction: input %s, vectors of %d and output %s do not match",
                shape_text(x, a), s->row_width, shape_text(y, b));
}

static double interaction_macs(const OpSpec *s)
{
    return (double)shape_count(s->y.shape) * (double)s->row_width;
}

/* y (N,n(n-1)/2) has the dot products of vectors i and j for j < i, ordered by i, then by j (Naumov
 * et al. 2019, "DLRM"). x (N,n*width) has n vectors side by side. */
const OpInfo info_interaction = {
    .name = "interaction",
    .check = interaction_check,
    .macs = interaction_macs,
    .macs_note = "dots of pairs",
    .split = SPLIT_NEVER,
    .fuse = FUSE_NEVER,
    .residual = RESIDUAL_NEVER,
    .communication = COMMUNICATES_NEVER,
    .tokens = TOKENS_TOGETHER,
    .params = PARAMS_NONE,
    .reads = READS_NOTHING,
    .traffic = TRAFFIC_ONCE,
    .dx = DX_WRITTEN,
    .acts = ACTS_NONE,
};

typedef struct InteractionTask {
    DType type;
    /* vectors per row */
    int64_t vectors;
    /* floats per vector */
    int64_t width;
    /* pairs per row */
    int64_t pairs;
    /* number of rows that are not padding */
    int64_t real;
    const void *x, *dy;
    void *y, *dx;
    /* scratch if `type` is not fp32. scratch_x, scratch_dx: float[rows][vectors * width];
     * scratch_pairs: for y or dy, float[rows][pairs]. */
    float *scratch_x, *scratch_dx, *scratch_pairs;
} InteractionTask;

static Status interaction_plan(Op *op, Desc preferred[SPEC_INPUTS])
{
    OpSpec *s = &op->spec;
    preferred[0] = in_precision(op, layout_plain(s->x[0]));
    s->y = desc_plain(s->y.shape, preferred[0].dtype);
    op->needs_x[0] = true;
    if (s->y.dtype != DTYPE_F32)
        op->workspace_bytes =
            (size_t)(2 * shape_count(s->x[0].shape) + shape_count(s->y.shape)) * sizeof(float);
    op->flops_forward = 2 * interaction_macs(s);
    op->flops_backward = 2 * op->flops_forward;
    return OK;
}

static InteractionTask task_of(Op *op, const OpRun *run)
{
    const OpSpec *s = &op->spec;
    const int64_t columns = s->x[0].shape.dim[1], n = shape_count(s->x[0].shape);
    float *scratch = run->workspace;
    return (InteractionTask){.type = s->y.dtype,
                             .vectors = columns / s->row_width,
                             .width = s->row_width,
                             .pairs = s->y.shape.dim[1],
                             .real = run->sample_count,
                             .x = run->x[0],
                             .dy = run->dy,
                             .y = run->y,
                             .dx = run->dx[0],
                             .scratch_x = scratch,
                             .scratch_dx = scratch ? scratch + n : NULL,
                             .scratch_pairs = scratch ? scratch + 2 * n : NULL};
}

static void forward_body(const void *task, int64_t begin, int64_t end)
{
    const InteractionTask *t = task;
    for (int64_t r = begin; r < end; ++r) {
        const float *x = row_floats(t->x, r, t->vectors * t->width, t->type, t->scratch_x);
        float *y = row_open(t->y, r, t->pairs, t->type, t->scratch_pairs), *at = y;
        for (int64_t i = 1; i < t->vectors; ++i)
            for (int64_t j = 0; j < i; ++j)
                *at++ = vectors_dot(x + i * t->width, x + j * t->width, t->width);
        row_close(t->y, r, t->pairs, t->type, y);
    }
}

static void interaction_forward(Op *op, const OpRun *run)
{
    InteractionTask t = task_of(op, run);
    work_run(forward_body, &t, op->spec.y.shape.dim[0], (int64_t)interaction_macs(&op->spec));
}

static void backward_body(const void *task, int64_t begin, int64_t end)
{
    const InteractionTask *t = task;
    const int64_t columns = t->vectors * t->width;
    for (int64_t r = begin; r < end; ++r) {
        const float *x = row_floats(t->x, r, columns, t->type, t->scratch_x);
        const float *dy = row_floats(t->dy, r, t->pairs, t->type, t->scratch_pairs);
        float *dx = row_open(t->dx, r, columns, t->type, t->scratch_dx);
        memset(dx, 0, (size_t)columns * sizeof *dx);
        for (int64_t i = 1; i < t->vectors && r < t->real; ++i)
            for (int64_t j = 0; j < i; ++j, ++dy) {
                vectors_add(dx + i * t->width, *dy, x + j * t->width, t->width);
                vectors_add(dx + j * t->width, *dy, x + i * t->width, t->width);
            }
        row_close(t->dx, r, columns, t->type, dx);
    }
}

static void interaction_backward_data(Op *op, const OpRun *run)
{
    InteractionTask t = task_of(op, run);
    if (t.dx)
        work_run(backward_body, &t, op->spec.y.shape.dim[0],
                 2 * (int64_t)interaction_macs(&op->spec));
}

const OpTable cpu_interaction = {
    .name = "interaction",
    .plan = interaction_plan,
    .forward = interaction_forward,
    .backward_data = interaction_backward_data,
};
