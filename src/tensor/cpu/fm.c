/* fm: the sum of the dot products of all pairs of a row's vectors, computed from the square of the
 * vectors' sum. */
#include "vectors.h"

#include <string.h>

/* columns that are summed at a time */
enum { COLUMNS = 128 };

static Status fm_check(const OpSpec *s)
{
    char a[64];
    const Shape x = s->x[0].shape, y = s->y.shape;
    if (x.ndim == 2 && s->row_width > 0 && x.dim[1] % s->row_width == 0 && y.ndim == 2 &&
        y.dim[1] == 1)
        return OK;
    return fail(ERR_CONFIG, "fm: input %s and vectors of %d do not match", shape_text(x, a),
                s->row_width);
}

/* y (N,1) = half of the sum over columns k of (sum_i v_ik)^2 - sum_i v_ik^2 (Rendle 2010,
 * "Factorization Machines"). x (N,n*width) has n vectors v_i side by side. */
const OpInfo info_fm = {
    .name = "fm",
    .check = fm_check,
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

typedef struct FmTask {
    DType type;
    /* vectors per row */
    int64_t vectors;
    /* floats per vector */
    int64_t width;
    /* number of rows that are not padding */
    int64_t real;
    const void *x, *dy;
    void *y, *dx;
    /* scratch for x and for dx if `type` is not fp32, float[rows][vectors * width] each */
    float *scratch_x, *scratch_dx;
} FmTask;

static Status fm_plan(Op *op, Desc preferred[SPEC_INPUTS])
{
    OpSpec *s = &op->spec;
    preferred[0] = in_precision(op, layout_plain(s->x[0]));
    s->y = desc_plain(s->y.shape, preferred[0].dtype);
    op->needs_x[0] = true;
    if (s->y.dtype != DTYPE_F32)
        op->workspace_bytes = 2 * (size_t)shape_count(s->x[0].shape) * sizeof(float);
    return OK;
}

static FmTask task_of(Op *op, const OpRun *run)
{
    const OpSpec *s = &op->spec;
    float *scratch = run->workspace;
    return (FmTask){.type = s->y.dtype,
                    .vectors = s->x[0].shape.dim[1] / s->row_width,
                    .width = s->row_width,
                    .real = run->sample_count,
                    .x = run->x[0],
                    .dy = run->dy,
                    .y = run->y,
                    .dx = run->dx[0],
                    .scratch_x = scratch,
                    .scratch_dx = scratch ? scratch + shape_count(s->x[0].shape) : NULL};
}

/* Adds up the vectors in n columns, from the column at x on: sum[k] is the sum in column k. Returns
 * the sum over these columns of (sum of the vectors)^2 - (sum of their squares). */
static double add_vectors(const FmTask *t, const float *x, int64_t n, float *sum)
{
    float square[COLUMNS] = {0};
    double all = 0;
    memset(sum, 0, (size_t)n * sizeof *sum);
    for (int64_t i = 0; i < t->vectors; ++i, x += t->width)
        for (int64_t k = 0; k < n; ++k) {
            sum[k] += x[k];
            square[k] += x[k] * x[k];
        }
    for (int64_t k = 0; k < n; ++k) all += (double)(sum[k] * sum[k] - square[k]);
    return all;
}

static void forward_body(const void *task, int64_t begin, int64_t end)
{
    const FmTask *t = task;
    float sum[COLUMNS];
    for (int64_t r = begin; r < end; ++r) {
        const float *x = row_floats(t->x, r, t->vectors * t->width, t->type, t->scratch_x);
        double twice = 0;
        for (int64_t c = 0; c < t->width; c += COLUMNS) {
            const int64_t n = t->width - c < COLUMNS ? t->width - c : COLUMNS;
            twice += add_vectors(t, x + c, n, sum);
        }
        const float y = (float)(twice / 2);
        simd_table(t->type)->from_floats(element_out(t->y, r, t->type), &y, 1);
    }
}

static void fm_forward(Op *op, const OpRun *run)
{
    FmTask t = task_of(op, run);
    work_run(forward_body, &t, op->spec.y.shape.dim[0], shape_count(op->spec.x[0].shape));
}

static void backward_body(const void *task, int64_t begin, int64_t end)
{
    const FmTask *t = task;
    const int64_t columns = t->vectors * t->width;
    float sum[COLUMNS], dy;
    for (int64_t r = begin; r < end; ++r) {
        const float *x = row_floats(t->x, r, columns, t->type, t->scratch_x);
        float *dx = row_open(t->dx, r, columns, t->type, t->scratch_dx);
        simd_table(t->type)->to_floats(&dy, element_at(t->dy, r, t->type), 1);
        for (int64_t c = 0; c < t->width; c += COLUMNS) {
            const int64_t n = t->width - c < COLUMNS ? t->width - c : COLUMNS;
            add_vectors(t, x + c, n, sum);
            for (int64_t i = 0; i < t->vectors; ++i)
                for (int64_t k = i * t->width + c; k < i * t->width + c + n; ++k)
                    dx[k] = r < t->real ? dy * (sum[k - i * t->width - c] - x[k]) : 0;
        }
        row_close(t->dx, r, columns, t->type, dx);
    }
}

static void fm_backward_data(Op *op, const OpRun *run)
{
    FmTask t = task_of(op, run);
    if (t.dx)
        work_run(backward_body, &t, op->spec.y.shape.dim[0], 2 * shape_count(op->spec.x[0].shape));
}

const OpTable cpu_fm = {
    .name = "fm",
    .plan = fm_plan,
    .forward = fm_forward,
    .backward_data = fm_backward_data,
};
