/* exchange: between layers that every rank of a tensor group computes alike, or for its slice of the sequence, and layers of
 * which each rank has a part (Shoeybi et al. 2019, "Megatron-LM", f and g; Korthikanti et al. 2022, g-bar). The bias of a
 * layer whose outputs are summed over the ranks is added here, once. */
#include "view.h"

#include <string.h>

typedef struct Swap {
    ExchangeKind kind;
    Slices divided;      /* what is summed and cut, or put together */
    int64_t rows, width; /* of y */
    DType type;
} Swap;

static bool cuts_sequence(const OpSpec *s)
{
    return s->exchange == EXCHANGE_GATHER || s->exchange == EXCHANGE_SCATTER;
}

static Status exchange_check(const OpSpec *s)
{
    char a[64], b[64];
    const TensorSlice *cut = &s->slice;
    Shape x = s->x[0].shape, y = s->y.shape;
    bool gather = s->exchange == EXCHANGE_GATHER;
    Shape whole = gather ? y : x, mine = gather ? x : y;
    if (!cuts_sequence(s) && shape_equal(x, y)) return OK;
    if (cuts_sequence(s) && x.ndim == 3 && y.ndim == 3 && whole.dim[1] == cut->whole &&
        mine.dim[1] == cut->count && x.dim[0] == y.dim[0] && x.dim[2] == y.dim[2])
        return OK;
    return fail(ERR_BUG, "exchange: %s cannot become %s", shape_text(x, a), shape_text(y, b));
}

static Status exchange_plan(Op *op, Desc wish[OP_INPUTS])
{
    OpSpec *s = &op->spec;
    TRY(exchange_check(s));
    wish[0] = in_precision(op, layout_plain(s->x[0]));
    s->y = desc_plain(s->y.shape, wish[0].dtype);
    Shape x = s->x[0].shape, y = s->y.shape;
    Swap *w = op->impl = mem_new(sizeof *w);
    *w = (Swap){.kind = s->exchange, .width = y.dim[y.ndim - 1], .type = s->y.dtype};
    w->rows = shape_count(y) / w->width;
    w->divided = (Slices){.runs = 1, .items = shape_count(x), .unit = 1, .type = w->type};
    if (cuts_sequence(s))
        w->divided =
            (Slices){.runs = x.dim[0], .items = s->slice.whole, .unit = x.dim[2], .type = w->type};
    else
        op->workspace_bytes = (size_t)(shape_count(x) / s->slice.ranks + 1) * dtype_bytes(w->type);
    op->y_alias = w->kind == EXCHANGE_ENTER;
    op->dx_alias[0] = w->kind == EXCHANGE_LEAVE;
    op->y_inplace = w->kind == EXCHANGE_LEAVE;
    op->dx_inplace = w->kind == EXCHANGE_ENTER;
    if (s->w_count) op->w_elements[0] = w->width;
    return OK;
}

static void impl_free(Op *op)
{
    mem_free(&op->impl);
}

static void sum_everywhere(const Swap *w, const OpRun *run, const void *from, void *to)
{
    const Exchange *x = run->exchange;
    x->reduce(x, w->divided, from, run->workspace);
    x->gather(x, w->divided, run->workspace, to);
}

typedef struct RowsTask {
    const Swap *w;
    const OpRun *run;
} RowsTask;

static void bias_body(const void *task, int64_t begin, int64_t end)
{
    const RowsTask *t = task;
    for (int64_t i = begin; i < end; ++i) {
        void *y = element_out(t->run->y, i * t->w->width, t->w->type);
        simd_table(t->w->type)->add_floats(y, y, t->run->w[0], t->w->width);
    }
}

static void exchange_forward(Op *op, const OpRun *run)
{
    const Swap *w = op->impl;
    const Exchange *x = run->exchange;
    if (w->kind == EXCHANGE_GATHER) x->gather(x, w->divided, run->x[0], run->y);
    if (w->kind == EXCHANGE_SCATTER) x->reduce(x, w->divided, run->x[0], run->y);
    if (w->kind == EXCHANGE_LEAVE) sum_everywhere(w, run, run->x[0], run->y);
    RowsTask t = {w, run};
    if (op->spec.w_count) work_run(bias_body, &t, w->rows, w->rows * w->width);
}

static void exchange_backward_data(Op *op, const OpRun *run)
{
    const Swap *w = op->impl;
    const Exchange *x = run->exchange;
    if (!run->dx[0]) return;
    if (w->kind == EXCHANGE_GATHER) x->reduce(x, w->divided, run->dy, run->dx[0]);
    if (w->kind == EXCHANGE_SCATTER) x->gather(x, w->divided, run->dy, run->dx[0]);
    if (w->kind == EXCHANGE_ENTER) sum_everywhere(w, run, run->dy, run->dx[0]);
}

/* begin, end: sixteenths of columns; rows are added in order. */
static void bias_gradient_body(const void *task, int64_t begin, int64_t end)
{
    const RowsTask *t = task;
    int64_t width = t->w->width;
    int64_t from = begin * SIMD_LANES, to = end * SIMD_LANES < width ? end * SIMD_LANES : width;
    float *dw = t->run->dw[0] + from;
    memset(dw, 0, (size_t)(to - from) * sizeof *dw);
    for (int64_t i = 0; i < t->w->rows; ++i)
        simd_table(t->w->type)
            ->add_into(dw, element_at(t->run->dy, i * width + from, t->w->type), to - from);
}

static void exchange_backward_weight(Op *op, const OpRun *run)
{
    const Swap *w = op->impl;
    RowsTask t = {w, run};
    if (op->spec.w_count)
        work_run(bias_gradient_body, &t, (w->width + SIMD_LANES - 1) / SIMD_LANES,
                 w->rows * w->width);
}

const OpTable cpu_exchange = {
    .name = "exchange",
    .plan = exchange_plan,
    .forward = exchange_forward,
    .backward_data = exchange_backward_data,
    .backward_weight = exchange_backward_weight,
    .free = impl_free,
};
