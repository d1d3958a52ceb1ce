/* concat along the channels. In memory, the output consists of `outer` groups, and each group has
 * one contiguous segment of each input. If channels are the slowest dimension of a sample (plain
 * layout, or blocks that all inputs but the last fill completely), a segment is an input's sample.
 * If channels are the fastest dimension (channels-last), a segment is an input's channels of one
 * pixel. */
#include "view.h"

#include <string.h>

typedef struct Concat {
    /* number of groups of segments */
    int64_t outer;
    /* elements of a segment of each input */
    int64_t segment[SPEC_INPUTS];
    /* elements of a group */
    int64_t total;
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

static Status concat_plan(Op *op, Desc preferred[SPEC_INPUTS])
{
    OpSpec *s = &op->spec;
    bool blocked = all_blocked(s), last = !blocked && all_channels_last(s);
    Concat *c = op->impl = mem_new(sizeof *c);
    View v = {0};
    for (int i = 0; i < s->x_count; ++i) {
        preferred[i] = in_precision(op, blocked || last ? s->x[i] : layout_plain(s->x[i]));
        v = view_of(preferred[i]);
        c->segment[i] = last ? v.block : v.sample;
        c->total += c->segment[i];
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
    /* true: backward, in which dy is cut into the inputs' gradients */
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
            size_t bytes = (size_t)c->segment[i] * dtype_bytes(type);
            int64_t from = o * c->segment[i];
            if (!t->back)
                memcpy(element_out(t->run->y, at, type), element_at(t->run->x[i], from, type),
                       bytes);
            else if (t->run->dx[i])
                memcpy(element_out(t->run->dx[i], from, type), element_at(t->run->dy, at, type),
                       bytes);
            at += c->segment[i];
        }
    }
}

static void concat_run(Op *op, const OpRun *run, bool back)
{
    const Concat *c = op->impl;
    ConcatTask t = {.op = op, .run = run, .back = back};
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
