/* Operations that move or join tensors: add (fused relu or relu6), concat along the channels, flatten (moves nothing). */
#include "view.h"

#include <string.h>

typedef struct AddTask {
    const Op *op;
    const OpRun *run;
    int64_t n;
} AddTask;
enum { ITEM = 4096 };

static Status add_plan(Op *op, Desc preferred[OP_INPUTS])
{
    OpSpec *s = &op->spec;
    s->y = in_precision(op, layout_common(s));
    for (int i = 0; i < s->x_count; ++i) {
        preferred[i] = s->y;
        op->dx_alias[i] = true;
    }
    op->needs_y = s->act != ACT_NONE;
    op->y_inplace = true;
    return OK;
}

/* bf16 is rounded once, whatever the number of inputs: n at most ITEM elements from `from` on. */
static void add_rounded_once(const AddTask *t, int64_t from, int64_t n)
{
    const OpSpec *s = &t->op->spec;
    const SimdTable *floats = simd_table(DTYPE_F32), *half = simd_table(DTYPE_BF16);
    float sum[ITEM], term[ITEM];
    half->to_floats(sum, element_at(t->run->x[0], from, DTYPE_BF16), n);
    for (int i = 1; i < s->x_count; ++i) {
        half->to_floats(term, element_at(t->run->x[i], from, DTYPE_BF16), n);
        floats->add_act(i + 1 < s->x_count ? ACT_NONE : s->act, sum, sum, term, n);
    }
    half->from_floats(element_out(t->run->y, from, DTYPE_BF16), sum, n);
}

static void add_body(const void *task, int64_t begin, int64_t end)
{
    const AddTask *t = task;
    const OpSpec *s = &t->op->spec;
    for (int64_t from = begin * ITEM; from < end * ITEM && from < t->n; from += ITEM) {
        int64_t n = t->n - from < ITEM ? t->n - from : ITEM;
        const DType type = s->y.dtype;
        if (type == DTYPE_BF16 && s->x_count > 2) {
            add_rounded_once(t, from, n);
            continue;
        }
        void *y = element_out(t->run->y, from, type);
        const void *sum = element_at(t->run->x[0], from, type);
        if (s->x_count == 1) simd_table(type)->act(s->act, y, sum, n);
        for (int i = 1; i < s->x_count; ++i) {
            Act act = i + 1 < s->x_count ? ACT_NONE : s->act;
            simd_table(type)->add_act(act, y, sum, element_at(t->run->x[i], from, type), n);
            sum = y;
        }
    }
}

static void add_forward(Op *op, const OpRun *run)
{
    AddTask t = {op, run, desc_elements(op->spec.y)};
    work_run(add_body, &t, (t.n + ITEM - 1) / ITEM, t.n);
}

static void add_backward_begin(Op *op, const OpRun *run)
{
    if (op->spec.act != ACT_NONE) mask_gradient(op->spec.act, run->dy, run->y, op->spec.y);
}

const OpTable cpu_add = {
    .name = "add",
    .plan = add_plan,
    .forward = add_forward,
    .backward_begin = add_backward_begin,
};

/* concat is `outer` times a run of each input after the other: whole samples where channels are the slowest (plain, or
 * blocks that the inputs fill), pixels where they are the fastest (channels last). */
typedef struct Concat {
    int64_t outer, run[OP_INPUTS], total; /* elements */
} Concat;

static bool all_blocked(const OpSpec *s)
{
    for (int i = 0; i < s->x_count; ++i) {
        const Desc *d = &s->x[i];
        if (d->flat || d->block != s->x[0].block) return false;
        if (i + 1 < s->x_count && d->shape.ndim == 4 && d->shape.dim[1] % d->block) return false;
    }
    return true;
}

static bool all_channels_last(const OpSpec *s)
{
    for (int i = 0; i < s->x_count; ++i)
        if (s->x[i].shape.ndim != 4 || s->x[i].block != s->x[i].shape.dim[1]) return false;
    return true;
}

static Status concat_plan(Op *op, Desc preferred[OP_INPUTS])
{
    OpSpec *s = &op->spec;
    bool blocked = all_blocked(s), last = !blocked && all_channels_last(s);
    Concat *c = op->impl = mem_new(sizeof *c);
    View v = {0};
    for (int i = 0; i < s->x_count; ++i) {
        preferred[i] = in_precision(op, blocked || last ? s->x[i] : layout_plain(s->x[i]));
        v = view_of(preferred[i]);
        c->run[i] = last ? v.block : v.sample;
        c->total += c->run[i];
    }
    c->outer = last ? v.n * v.hw : v.n;
    Shape y = s->y.shape;
    s->y = desc_plain(y, preferred[0].dtype);
    if (blocked) s->y.block = s->x[0].block;
    if (last) s->y.block = (int)y.dim[1];
    return OK;
}

static void impl_free(Op *op)
{
    mem_free(&op->impl);
}

typedef struct ConcatTask {
    const Op *op;
    const OpRun *run;
    bool back;
} ConcatTask;

static void concat_body(const void *task, int64_t begin, int64_t end)
{
    const ConcatTask *t = task;
    const Concat *c = t->op->impl;
    const DType type = t->op->spec.y.dtype;
    for (int64_t o = begin; o < end; ++o) {
        int64_t at = o * c->total;
        for (int i = 0; i < t->op->spec.x_count; ++i) {
            size_t bytes = (size_t)c->run[i] * dtype_bytes(type);
            int64_t from = o * c->run[i];
            if (!t->back)
                memcpy(element_out(t->run->y, at, type), element_at(t->run->x[i], from, type),
                       bytes);
            else if (t->run->dx[i])
                memcpy(element_out(t->run->dx[i], from, type), element_at(t->run->dy, at, type),
                       bytes);
            at += c->run[i];
        }
    }
}

static void concat_run(Op *op, const OpRun *run, bool back)
{
    const Concat *c = op->impl;
    ConcatTask t = {op, run, back};
    work_run(concat_body, &t, c->outer, c->outer * c->total);
}

static void concat_forward(Op *op, const OpRun *run)
{
    concat_run(op, run, false);
}
static void concat_backward_data(Op *op, const OpRun *run)
{
    concat_run(op, run, true);
}

const OpTable cpu_concat = {
    .name = "concat",
    .plan = concat_plan,
    .forward = concat_forward,
    .backward_data = concat_backward_data,
    .free = impl_free,
};

static Status flatten_plan(Op *op, Desc preferred[OP_INPUTS])
{
    OpSpec *s = &op->spec;
    Desc x = s->x[0];
    (void)preferred;
    s->y = (Desc){.shape = s->y.shape, .dtype = x.dtype, .block = 1};
    if (!desc_is_plain(x)) {
        s->y.block = x.block;
        s->y.flat = true;
        s->y.image = x.flat ? x.image : x.shape;
    }
    op->y_alias = op->dx_alias[0] = true;
    return OK;
}

static void flatten_forward(Op *op, const OpRun *run)
{
    (void)op;
    (void)run;
}

const OpTable cpu_flatten = {
    .name = "flatten",
    .plan = flatten_plan,
    .forward = flatten_forward,
};
