/* positions: adds row t of a table to token t of every sequence. The gradient of a row is summed by
 * one thread, over the samples in order. It is 0 for rows beyond the sequence. It is -0 for rows
 * whose tokens are on other ranks, because adding -0 changes no sum over ranks. */
#include "view.h"

typedef struct Positions {
    /* samples of x */
    int64_t samples;
    /* tokens of a sequence in x */
    int64_t length;
    /* rows of the table */
    int64_t table_rows;
    /* elements of a row of the table */
    int64_t width;
    /* position of x's first token in the whole sequence */
    int64_t first;
    /* tokens of the whole sequence, on all ranks */
    int64_t whole;
    DType type;
} Positions;

typedef struct PositionsTask {
    const Positions *p;
    const OpRun *run;
} PositionsTask;

static Status positions_plan(Op *op, Desc preferred[SPEC_INPUTS])
{
    OpSpec *s = &op->spec;
    Shape x = s->x[0].shape, w = s->w[0];
    preferred[0] = s->y = in_precision(op, layout_plain(s->x[0]));
    Positions *p = op->impl = mem_new(sizeof *p);
    *p = (Positions){.samples = x.dim[0],
                     .length = x.dim[1],
                     .table_rows = w.dim[0],
                     .width = w.dim[1],
                     .first = s->slice.first,
                     .whole = s->slice.ranks ? s->slice.whole : x.dim[1],
                     .type = s->y.dtype};
    op->w_elements[0] = p->table_rows * p->width;
    op->y_inplace = true;
    op->dx_is_dy[0] = true;
    return OK;
}

static void impl_free(Op *op)
{
    mem_free(&op->impl);
}

static void forward_body(const void *task, int64_t begin, int64_t end)
{
    const PositionsTask *t = task;
    const Positions *p = t->p;
    for (int64_t i = begin; i < end; ++i) {
        void *y = element_out(t->run->y, i * p->width, p->type);
        const void *x = element_at(t->run->x[0], i * p->width, p->type);
        const float *row = t->run->w[0] + (p->first + i % p->length) * p->width;
        if (i < t->run->sample_count * p->length)
            simd_table(p->type)->add_floats(y, x, row, p->width);
        else
            elements_zero(y, p->width, p->type);
    }
}

static void positions_forward(Op *op, const OpRun *run)
{
    PositionsTask t = {.p = op->impl, .run = run};
    int64_t tokens = t.p->samples * t.p->length;
    work_run(forward_body, &t, tokens, tokens * t.p->width);
}

static void sum_body(const void *task, int64_t begin, int64_t end)
{
    const PositionsTask *t = task;
    const Positions *p = t->p;
    for (int64_t i = begin; i < end; ++i) {
        float *dw = t->run->dw[0] + i * p->width;
        const int64_t token = i - p->first;
        const bool here = token >= 0 && token < p->length;
        for (int64_t k = 0; k < p->width; ++k) dw[k] = here || i >= p->whole ? 0.0f : -0.0f;
        for (int64_t n = 0; here && n < t->run->sample_count; ++n) {
            int64_t at = (n * p->length + token) * p->width;
            simd_table(p->type)->add_into(dw, element_at(t->run->dy, at, p->type), p->width);
        }
    }
}

static void positions_backward_weight(Op *op, const OpRun *run)
{
    PositionsTask t = {.p = op->impl, .run = run};
    work_run(sum_body, &t, t.p->table_rows,
             (t.p->samples * t.p->length + t.p->table_rows) * t.p->width);
}

const OpTable cpu_positions = {
    .name = "positions",
    .plan = positions_plan,
    .forward = positions_forward,
    .backward_weight = positions_backward_weight,
    .free = impl_free,
};
