/* exchange: the communication between divided and undivided layers of a tensor-parallel group (the
 * operators f and g of Shoeybi et al. 2019, "Megatron-LM", and g-bar of Korthikanti et al. 2022).
 * The parameters of divided layers are divided among the ranks. Each rank computes undivided layers
 * on all tokens, or on its slice of the sequence. If a layer's outputs are summed over the ranks,
 * its bias is a parameter of the exchange, so that it is added once; the operation of each backend
 * adds it. EXCHANGE_KEYS instead gathers key heads whose columns are divided.
 *
 * This file also has the ranges of terms in a sum's slices, and the positions of a slice's elements
 * in the whole sample. */
#include "sliced.h"

static bool divides_sequence(const OpSpec *s)
{
    return s->exchange == EXCHANGE_ALL_GATHER || s->exchange == EXCHANGE_REDUCE_SCATTER;
}

static Status exchange_check(const OpSpec *s)
{
    char a[64], b[64];
    const TensorSlice *cut = &s->slice;
    Shape x = s->x[0].shape, y = s->y.shape;
    bool gather = s->exchange == EXCHANGE_ALL_GATHER, keys = s->exchange == EXCHANGE_KEYS;
    Shape whole = gather ? y : x, slice = gather ? x : y;
    if (keys && x.ndim == 3 && y.ndim == 3 && x.dim[0] == y.dim[0] && x.dim[1] == y.dim[1] &&
        x.dim[2] > 2 * cut->count && y.dim[2] - x.dim[2] == 2 * (cut->whole - cut->count))
        return OK;
    if (!keys && !divides_sequence(s) && shape_equal(x, y)) return OK;
    if (divides_sequence(s) && x.ndim == 3 && y.ndim == 3 && whole.dim[1] == cut->whole &&
        slice.dim[1] == cut->count && x.dim[0] == y.dim[0] && x.dim[2] == y.dim[2])
        return OK;
    return fail(ERR_BUG, "exchange: %s cannot become %s", shape_text(x, a), shape_text(y, b));
}

/* Returns whether the divided layers are on the side of x. Forward then adds the ranks' partial
 * sums. */
static bool adds_in_forward(ExchangeKind kind)
{
    return kind == EXCHANGE_LEAVE || kind == EXCHANGE_REDUCE_SCATTER;
}

DType exchange_input(const Op *op)
{
    const OpSpec *s = &op->spec;
    const bool parts = adds_in_forward(s->exchange) && s->x[0].dtype == DTYPE_F32;
    return s->slices.total > 0 && parts ? DTYPE_F32 : op->backend->options.precision;
}

/* Returns whether the tensor on the side of divided layers is fp32 although the backend's precision
 * is not. After a divided embedding it is not fp32: at most one rank's term of each sum differs
 * from 0, so the sum is exact in any type. */
static bool has_wide_side(const Op *op)
{
    const OpSpec *s = &op->spec;
    if (s->slices.total == 0 || op->backend->options.precision == DTYPE_F32) return false;
    return !adds_in_forward(s->exchange) || s->x[0].dtype == DTYPE_F32;
}

Slices exchange_slices(const OpSpec *s)
{
    const Shape x = s->x[0].shape;
    Slices all = {.ranges = 1,
                  .items = shape_count(x),
                  .item_elements = 1,
                  .ranks = s->slice.ranks,
                  .type = s->y.dtype};
    if (divides_sequence(s)) {
        all.ranges = x.dim[0];
        all.items = s->slice.whole;
        all.item_elements = x.dim[2];
    }
    /* each row of x has one contiguous range of keys and one of values */
    if (s->exchange == EXCHANGE_KEYS) {
        all.ranges = 2 * x.dim[0] * x.dim[1];
        all.items = s->slice.whole;
    }
    return all;
}

/* Sets the bytes of workspace. whole: elements of the undivided tensor. */
static void plan_workspace(Op *op, int64_t whole)
{
    const ExchangePlan *plan = op->impl;
    const size_t type = dtype_bytes(plan->type), wide = plan->convert ? sizeof(float) : type;
    const size_t slice = (size_t)plan->slice, all = (size_t)whole;
    op->workspace_bytes = 0;
    if (!divides_sequence(&op->spec)) op->workspace_bytes = slice * wide;
    if (plan->kind == EXCHANGE_KEYS) op->workspace_bytes += all * type;
    if (!plan->convert) return;
    if (plan->kind == EXCHANGE_ENTER) op->workspace_bytes += slice * type;
    if (plan->kind == EXCHANGE_LEAVE) op->workspace_bytes += all * wide;
    if (divides_sequence(&op->spec))
        op->workspace_bytes = slice * wide > all * type ? slice * wide : all * type;
}

Status exchange_plan(Op *op, Desc layout, const ExchangeCopies *copies)
{
    OpSpec *s = &op->spec;
    TRY(exchange_check(s));
    s->y = layout;
    Shape x = s->x[0].shape, y = s->y.shape;
    DType type = s->y.dtype;
    const bool wide = has_wide_side(op);
    if (wide && s->exchange == EXCHANGE_KEYS)
        return fail(ERR_BUG, "exchange: gradients of keys are not added in fp32 if keys are %s",
                    dtype_name(type));
    ExchangePlan *plan = op->impl = mem_new(sizeof *plan);
    *plan = (ExchangePlan){.kind = s->exchange,
                           .width = y.dim[y.ndim - 1],
                           .convert = wide ? copies->convert : NULL,
                           .copy_rows = copies->rows,
                           .divided = exchange_slices(s),
                           .type = type};
    plan->rows = shape_count(y) / plan->width;
    plan->slice = divides_sequence(s) || plan->kind == EXCHANGE_KEYS
                      ? plan->divided.ranges * s->slice.count * plan->divided.item_elements
                      : shape_count(x) / s->slice.ranks + 1;
    if (wide && !adds_in_forward(plan->kind)) s->y.dtype = DTYPE_F32;
    plan_workspace(op, plan->divided.ranges * plan->divided.items * plan->divided.item_elements);
    op->y_is_x = plan->kind == EXCHANGE_ENTER && !wide;
    op->dx_is_dy[0] = plan->kind == EXCHANGE_LEAVE && !wide;
    op->y_inplace = plan->kind == EXCHANGE_LEAVE && !wide;
    op->dx_inplace = plan->kind == EXCHANGE_ENTER && !wide;
    if (s->w_count) op->w_elements[0] = plan->width;
    return OK;
}

void exchange_free(Op *op)
{
    mem_free(&op->impl);
}

/* Sums `from` over the ranks; each rank gets the whole sum in `to`. */
static void all_reduce(const ExchangePlan *plan, const OpRun *run, const void *from, void *to)
{
    const Exchange *x = run->exchange;
    x->reduce_scatter(x, plan->divided, from, run->workspace);
    x->all_gather(x, plan->divided, run->workspace, to);
}

/* Converts the tensor `from`, which has the backend's precision, to the undivided fp32 tensor `to`.
 * If the exchange divides the sequence, `from` is this rank's slice, and all slices are gathered
 * first. */
static void widen(const Op *op, const OpRun *run, const void *from, void *to)
{
    const ExchangePlan *plan = op->impl;
    const Slices *d = &plan->divided;
    if (divides_sequence(&op->spec)) {
        run->exchange->all_gather(run->exchange, *d, from, run->workspace);
        from = run->workspace;
    }
    plan->convert(op, from, plan->type, to, DTYPE_F32, d->ranges * d->items * d->item_elements);
}

/* Sums the fp32 tensor `from` over the ranks; returns this rank's slice of the sum, in fp32. */
static void *reduce_wide(const Op *op, const OpRun *run, const void *from)
{
    const ExchangePlan *plan = op->impl;
    Slices wide = plan->divided;
    wide.type = DTYPE_F32;
    run->exchange->reduce_scatter(run->exchange, wide, from, run->workspace);
    return run->workspace;
}

/* Does what exchange_forward does if ExchangePlan.convert is set: the tensor on the side of divided
 * layers is then fp32. */
static void *forward_wide(const Op *op, const OpRun *run)
{
    const ExchangePlan *plan = op->impl;
    Slices wide = plan->divided;
    wide.type = DTYPE_F32;
    if (!adds_in_forward(plan->kind)) {
        widen(op, run, run->x[0], run->y);
        return run->y;
    }
    float *slice = reduce_wide(op, run, run->x[0]);
    if (plan->kind == EXCHANGE_REDUCE_SCATTER) return slice;
    run->exchange->all_gather(run->exchange, wide, slice, slice + plan->slice);
    return slice + plan->slice;
}

/* Does what exchange_backward_data does if ExchangePlan.convert is set: the tensor on the side of
 * divided layers is then fp32. */
static void backward_wide(const Op *op, const OpRun *run)
{
    const ExchangePlan *plan = op->impl;
    if (adds_in_forward(plan->kind)) {
        widen(op, run, run->dy, run->dx[0]);
        return;
    }
    float *slice = reduce_wide(op, run, run->dy);
    const bool gathers = plan->kind == EXCHANGE_ENTER;
    void *rounded = gathers ? (void *)(slice + plan->slice) : run->dx[0];
    const Slices *d = &plan->divided;
    const int rank = op->spec.slice.rank, ranks = op->spec.slice.ranks;
    const int64_t items =
        slice_first(d->items, ranks, rank + 1) - slice_first(d->items, ranks, rank);
    plan->convert(op, slice, DTYPE_F32, rounded, plan->type, d->ranges * items * d->item_elements);
    if (gathers) run->exchange->all_gather(run->exchange, *d, rounded, run->dx[0]);
}

/* Copies `count` elements of each of plan->rows rows. to_width, from_width: elements from one row
 * to the next. */
static void copy_columns(const Op *op, void *to, int64_t to_width, const void *from,
                         int64_t from_width, int64_t count)
{
    const ExchangePlan *plan = op->impl;
    const size_t bytes = dtype_bytes(plan->type);
    plan->copy_rows(op, to, (size_t)to_width * bytes, from, (size_t)from_width * bytes,
                    (size_t)count * bytes, plan->rows);
}

/* Does forward or backward of EXCHANGE_KEYS. Forward copies the queries of x to y, and gathers the
 * keys and values in y. Backward copies the gradients of the queries, and sums those of the keys
 * and values over the ranks; each rank gets its slices of the sums. The workspace has this rank's
 * slices of keys and values, then the whole keys and values. */
static void move_keys(const Op *op, const OpRun *run, bool forward)
{
    const ExchangePlan *plan = op->impl;
    const Exchange *x = run->exchange;
    const int64_t whole = 2 * op->spec.slice.whole, slice = 2 * op->spec.slice.count;
    const int64_t queries = plan->width - whole, width = queries + slice;
    const void *from = forward ? run->x[0] : run->dy;
    void *to = forward ? run->y : run->dx[0], *own = run->workspace;
    char *all = (char *)own + (size_t)plan->slice * dtype_bytes(plan->type);
    const size_t after = (size_t)queries * dtype_bytes(plan->type);
    const char *keys = (const char *)from + after;
    if (forward) {
        copy_columns(op, to, plan->width, from, width, queries);
        copy_columns(op, own, slice, keys, width, slice);
        x->all_gather(x, plan->divided, own, all);
        copy_columns(op, (char *)to + after, plan->width, all, whole, whole);
    } else {
        copy_columns(op, to, width, from, plan->width, queries);
        copy_columns(op, all, whole, keys, plan->width, whole);
        x->reduce_scatter(x, plan->divided, all, own);
        copy_columns(op, (char *)to + after, width, own, slice, slice);
    }
}

void *exchange_forward(const Op *op, const OpRun *run)
{
    const ExchangePlan *plan = op->impl;
    const Exchange *x = run->exchange;
    if (plan->convert) return forward_wide(op, run);
    if (plan->kind == EXCHANGE_ALL_GATHER) x->all_gather(x, plan->divided, run->x[0], run->y);
    if (plan->kind == EXCHANGE_REDUCE_SCATTER)
        x->reduce_scatter(x, plan->divided, run->x[0], run->y);
    if (plan->kind == EXCHANGE_LEAVE) all_reduce(plan, run, run->x[0], run->y);
    if (plan->kind == EXCHANGE_KEYS) move_keys(op, run, true);
    return run->y;
}

void exchange_backward_data(Op *op, const OpRun *run)
{
    const ExchangePlan *plan = op->impl;
    const Exchange *x = run->exchange;
    if (!run->dx[0]) return;
    if (plan->convert) {
        backward_wide(op, run);
        return;
    }
    if (plan->kind == EXCHANGE_ALL_GATHER) x->reduce_scatter(x, plan->divided, run->dy, run->dx[0]);
    if (plan->kind == EXCHANGE_REDUCE_SCATTER) x->all_gather(x, plan->divided, run->dy, run->dx[0]);
    if (plan->kind == EXCHANGE_ENTER) all_reduce(plan, run, run->dy, run->dx[0]);
    if (plan->kind == EXCHANGE_KEYS) move_keys(op, run, false);
}

/* Returns the unit at which this rank's slice i of a part begins, counted from this rank's first
 * unit. units: number of units of the part on all ranks. */
static int64_t slice_unit(const SumSlices *s, int64_t units, int i)
{
    return slice_first(units, s->total, s->first + i) - slice_first(units, s->total, s->first);
}

/* Returns the number of terms of a unit in the parts after the first part. k: number of terms that
 * this rank has. */
static int64_t unit_terms(const SumSlices *s, int64_t k)
{
    return k / (s->first_unit_ratio * slice_unit(s, s->units, s->count) +
                (s->parts - 1) * slice_unit(s, s->other_units, s->count));
}

SumRange sum_range(const SumSlices *s, int64_t k, int i, int part)
{
    const int64_t unit = unit_terms(s, k), wide = part ? unit : s->first_unit_ratio * unit;
    const int64_t units = part ? s->other_units : s->units;
    int64_t begin = 0;
    if (part > 0)
        begin = (s->first_unit_ratio * slice_unit(s, s->units, s->count) +
                 (part - 1) * slice_unit(s, s->other_units, s->count)) *
                unit;
    return (SumRange){.first = begin + slice_unit(s, units, i) * wide,
                      .end = begin + slice_unit(s, units, i + 1) * wide};
}

int64_t sum_least_terms(const SumSlices *s, int64_t k)
{
    return unit_terms(s, k) * (s->first_unit_ratio * (s->units / s->total) +
                               (s->parts - 1) * (s->other_units / s->total));
}

SampleSlice sample_slice(const OpSpec *spec)
{
    const TensorSlice *cut = &spec->slice;
    int64_t sample = shape_count(spec->y.shape) / spec->y.shape.dim[0], unit = 1;
    if (!cut->ranks) return (SampleSlice){.contiguous = sample, .stride = sample};
    for (int i = cut->dim + 1; i < spec->y.shape.ndim; ++i) unit *= spec->y.shape.dim[i];
    return (SampleSlice){
        .contiguous = cut->count * unit, .stride = cut->whole * unit, .first = cut->first * unit};
}

int64_t sum_levels(int slices)
{
    int64_t levels = 0;
    for (; slices > 1; slices /= 2) ++levels;
    return levels;
}
