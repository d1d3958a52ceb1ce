/* activation: y = act(x). If the activation has ACT_FROM_Y, backward reads y, and y may share the
 * memory of x; else backward reads x. If it has ACT_MOVES_ZERO, forward clears the padded channels
 * of blocks afterwards. */
#include "view.h"

typedef struct ActTask {
    Act act;
    float factor;
    DType type;
    /* y, or dx in backward */
    void *out;
    /* x, or dy in backward */
    const void *a;
    /* backward: the tensor from which the derivative is computed, x or y */
    const void *b;
    int64_t n;
    View v;
} ActTask;
enum { ITEM_ELEMENTS = 4096 };

static Status activation_plan(Op *op, Desc preferred[SPEC_INPUTS])
{
    OpSpec *s = &op->spec;
    preferred[0] = s->y = in_precision(op, s->x[0]);
    op->needs_y = op->y_inplace = act_facts(s->act) & ACT_FROM_Y;
    op->needs_x[0] = !op->needs_y;
    op->dx_inplace = true;
    return OK;
}

static void forward_body(const void *task, int64_t begin, int64_t end)
{
    const ActTask *t = task;
    int64_t from = begin * ITEM_ELEMENTS,
            to = end * ITEM_ELEMENTS < t->n ? end * ITEM_ELEMENTS : t->n;
    simd_table(t->type)->act(t->act, t->factor, element_out(t->out, from, t->type),
                             element_at(t->a, from, t->type), to - from);
}

static void grad_body(const void *task, int64_t begin, int64_t end)
{
    const ActTask *t = task;
    int64_t from = begin * ITEM_ELEMENTS,
            to = end * ITEM_ELEMENTS < t->n ? end * ITEM_ELEMENTS : t->n;
    simd_table(t->type)->act_grad(t->act, t->factor, element_out(t->out, from, t->type),
                                  element_at(t->a, from, t->type), element_at(t->b, from, t->type),
                                  to - from);
}

/* Clears the padded channels of samples `begin` to `end` - 1. They are lanes of the last group of
 * channels (View). */
static void padding_body(const void *task, int64_t begin, int64_t end)
{
    const ActTask *t = task;
    const View *v = &t->v;
    const int lanes = view_lanes(v, v->groups - 1);
    for (int64_t n = begin; n < end; ++n)
        for (int64_t pixel = 0; pixel < v->hw; ++pixel) {
            const int64_t at = n * v->sample + (v->groups - 1) * v->plane + pixel * v->block;
            elements_zero(element_out(t->out, at + lanes, t->type), v->block - lanes, t->type);
        }
}

static ActTask task_of(const Op *op, void *out, const void *a, const void *b)
{
    const OpSpec *s = &op->spec;
    return (ActTask){.act = s->act,
                     .factor = s->act_factor,
                     .type = s->y.dtype,
                     .out = out,
                     .a = a,
                     .b = b,
                     .n = desc_elements(s->y),
                     .v = view_of(s->y)};
}

static void activation_forward(Op *op, const OpRun *run)
{
    const ActTask t = task_of(op, run->y, run->x[0], NULL);
    work_run(forward_body, &t, (t.n + ITEM_ELEMENTS - 1) / ITEM_ELEMENTS, t.n);
    if (act_facts(t.act) & ACT_MOVES_ZERO && t.v.channels % t.v.block != 0)
        work_run(padding_body, &t, t.v.n, t.v.n * t.v.plane);
}

static void activation_backward_data(Op *op, const OpRun *run)
{
    if (!run->dx[0]) return;
    const ActTask t = task_of(op, run->dx[0], run->dy, op->needs_y ? run->y : run->x[0]);
    work_run(grad_body, &t, (t.n + ITEM_ELEMENTS - 1) / ITEM_ELEMENTS, t.n);
}

const OpTable cpu_activation = {
    .name = "activation",
    .plan = activation_plan,
    .forward = activation_forward,
    .backward_data = activation_backward_data,
};
