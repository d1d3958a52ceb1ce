/* exchange: the communication between two kinds of layers of a tensor group: those that each rank
 * computes on all tokens or on its slice of the sequence, and those whose parameters are divided
 * among the ranks (Shoeybi et al. 2019, "Megatron-LM", f and g; Korthikanti et al. 2022, g-bar). If
 * a layer's outputs are summed over the ranks, its bias is a parameter of the exchange, so that it
 * is added once; each backend's operation adds it. */
#include "sliced.h"

static bool divides_sequence(const OpSpec *s)
{
    return s->exchange == EXCHANGE_GATHER || s->exchange == EXCHANGE_SCATTER;
}

static Status exchange_check(const OpSpec *s)
{
    char a[64], b[64];
    const TensorSlice *cut = &s->slice;
    Shape x = s->x[0].shape, y = s->y.shape;
    bool gather = s->exchange == EXCHANGE_GATHER;
    Shape whole = gather ? y : x, slice = gather ? x : y;
    if (!divides_sequence(s) && shape_equal(x, y)) return OK;
    if (divides_sequence(s) && x.ndim == 3 && y.ndim == 3 && whole.dim[1] == cut->whole &&
        slice.dim[1] == cut->count && x.dim[0] == y.dim[0] && x.dim[2] == y.dim[2])
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
    ExchangePlan *plan = op->impl = mem_new(sizeof *plan);
    *plan = (ExchangePlan){.kind = s->exchange, .width = y.dim[y.ndim - 1]};
    plan->rows = shape_count(y) / plan->width;
    plan->divided = (Slices){.runs = 1, .items = shape_count(x), .unit = 1, .type = type};
    if (divides_sequence(s))
        plan->divided =
            (Slices){.runs = x.dim[0], .items = s->slice.whole, .unit = x.dim[2], .type = type};
    else
        op->workspace_bytes = (size_t)(shape_count(x) / s->slice.ranks + 1) * dtype_bytes(type);
    op->y_alias = plan->kind == EXCHANGE_ENTER;
    op->dx_alias[0] = plan->kind == EXCHANGE_LEAVE;
    op->y_inplace = plan->kind == EXCHANGE_LEAVE;
    op->dx_inplace = plan->kind == EXCHANGE_ENTER;
    if (s->w_count) op->w_elements[0] = plan->width;
    return OK;
}

void exchange_free(Op *op)
{
    mem_free(&op->impl);
}

/* Sums over the ranks; each rank gets the whole sum. */
static void all_reduce(const ExchangePlan *plan, const OpRun *run, const void *from, void *to)
{
    const Exchange *x = run->exchange;
    x->reduce(x, plan->divided, from, run->workspace);
    x->gather(x, plan->divided, run->workspace, to);
}

void exchange_forward(const Op *op, const OpRun *run)
{
    const ExchangePlan *plan = op->impl;
    const Exchange *x = run->exchange;
    if (plan->kind == EXCHANGE_GATHER) x->gather(x, plan->divided, run->x[0], run->y);
    if (plan->kind == EXCHANGE_SCATTER) x->reduce(x, plan->divided, run->x[0], run->y);
    if (plan->kind == EXCHANGE_LEAVE) all_reduce(plan, run, run->x[0], run->y);
}

void exchange_backward_data(Op *op, const OpRun *run)
{
    const ExchangePlan *plan = op->impl;
    const Exchange *x = run->exchange;
    if (!run->dx[0]) return;
    if (plan->kind == EXCHANGE_GATHER) x->reduce(x, plan->divided, run->dy, run->dx[0]);
    if (plan->kind == EXCHANGE_SCATTER) x->gather(x, plan->divided, run->dy, run->dx[0]);
    if (plan->kind == EXCHANGE_ENTER) all_reduce(plan, run, run->dy, run->dx[0]);
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
