/* exchange: converts between layers that all ranks of a tensor group compute alike, or for their
 * slice of the sequence, and layers that are divided among the ranks (Shoeybi et al. 2019,
 * "Megatron-LM", f and g; Korthikanti et al. 2022, g-bar). If a layer's outputs are summed over the
 * ranks, its bias belongs to the exchange, so that it is added once; each backend adds it in its
 * own way. */
#include "sliced.h"

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

Status exchange_plan(Op *op, Desc layout)
{
    OpSpec *s = &op->spec;
    TRY(exchange_check(s));
    s->y = layout;
    Shape x = s->x[0].shape, y = s->y.shape;
    DType type = s->y.dtype;
    Swap *w = op->impl = mem_new(sizeof *w);
    *w = (Swap){.kind = s->exchange, .width = y.dim[y.ndim - 1]};
    w->rows = shape_count(y) / w->width;
    w->divided = (Slices){.runs = 1, .items = shape_count(x), .unit = 1, .type = type};
    if (cuts_sequence(s))
        w->divided =
            (Slices){.runs = x.dim[0], .items = s->slice.whole, .unit = x.dim[2], .type = type};
    else
        op->workspace_bytes = (size_t)(shape_count(x) / s->slice.ranks + 1) * dtype_bytes(type);
    op->y_alias = w->kind == EXCHANGE_ENTER;
    op->dx_alias[0] = w->kind == EXCHANGE_LEAVE;
    op->y_inplace = w->kind == EXCHANGE_LEAVE;
    op->dx_inplace = w->kind == EXCHANGE_ENTER;
    if (s->w_count) op->w_elements[0] = w->width;
    return OK;
}

void exchange_free(Op *op)
{
    mem_free(&op->impl);
}

static void sum_everywhere(const Swap *w, const OpRun *run, const void *from, void *to)
{
    const Exchange *x = run->exchange;
    x->reduce(x, w->divided, from, run->workspace);
    x->gather(x, w->divided, run->workspace, to);
}

void exchange_forward(const Op *op, const OpRun *run)
{
    const Swap *w = op->impl;
    const Exchange *x = run->exchange;
    if (w->kind == EXCHANGE_GATHER) x->gather(x, w->divided, run->x[0], run->y);
    if (w->kind == EXCHANGE_SCATTER) x->reduce(x, w->divided, run->x[0], run->y);
    if (w->kind == EXCHANGE_LEAVE) sum_everywhere(w, run, run->x[0], run->y);
}

void exchange_backward_data(Op *op, const OpRun *run)
{
    const Swap *w = op->impl;
    const Exchange *x = run->exchange;
    if (!run->dx[0]) return;
    if (w->kind == EXCHANGE_GATHER) x->reduce(x, w->divided, run->dy, run->dx[0]);
    if (w->kind == EXCHANGE_SCATTER) x->gather(x, w->divided, run->dy, run->dx[0]);
    if (w->kind == EXCHANGE_ENTER) sum_everywhere(w, run, run->dy, run->dx[0]);
}

SampleSlice sample_slice(const OpSpec *spec)
{
    const TensorSlice *cut = &spec->slice;
    int64_t sample = shape_count(spec->y.shape) / spec->y.shape.dim[0], unit = 1;
    if (!cut->ranks) return (SampleSlice){.run = sample, .stride = sample};
    for (int i = cut->dim + 1; i < spec->y.shape.ndim; ++i) unit *= spec->y.shape.dim[i];
    return (SampleSlice){
        .run = cut->count * unit, .stride = cut->whole * unit, .first = cut->first * unit};
}
