/* activation: y = act(x). relu and relu6 compute their gradient from the output, so y may share x's
 * memory; gelu and silu need x. */
#include "view.h"

typedef struct ActTask {
    Act act;
    DType type;
    void *out;
    /* x, or dy in backward */
    const void *a;
    /* backward: x or y, from which the derivative is computed */
    const void *b;
    int64_t n;
} ActTask;
enum { ITEM_ELEMENTS = 4096 };

static Status activation_plan(Op *op, Desc preferred[SPEC_INPUTS])
{
    OpSpec *s = &op->spec;
    preferred[0] = s->y = in_precision(op, s->x[0]);
    op->needs_y = op->y_inplace = s->act == ACT_RELU || s->act == ACT_RELU6;
    op->needs_x[0] = !op->needs_y;
    op->dx_inplace = true;
    return OK;
}

static void forward_body(const void *task, int64_t begin, int64_t end)
{
    const ActTask *t = task;
    int64_t from = begin * ITEM_ELEMENTS,
            to = end * ITEM_ELEMENTS < t->n ? end * ITEM_ELEMENTS : t->n;
    simd_table(t->type)->act(t->act, element_out(t->out, from, t->type),
                             element_at(t->a, from, t->type), to - from);
}

static void grad_body(const void *task, int64_t begin, int64_t end)
{
    const ActTask *t = task;
    int64_t from = begin * ITEM_ELEMENTS,
            to = end * ITEM_ELEMENTS < t->n ? end * ITEM_ELEMENTS : t->n;
    simd_table(t->type)->act_grad(t->act, element_out(t->out, from, t->type),
                                  element_at(t->a, from, t->type), element_at(t->b, from, t->type),
                                  to - from);
}

static void activation_forward(Op *op, const OpRun *run)
{
    const OpSpec *s = &op->spec;
    ActTask t = {
        .act = s->act, .type = s->y.dtype, .out = run->y, .a = run->x[0], .n = desc_elements(s->y)};
    work_run(forward_body, &t, (t.n + ITEM_ELEMENTS - 1) / ITEM_ELEMENTS, t.n);
}

static void activation_backward_data(Op *op, const OpRun *run)
{
    if (!run->dx[0]) return;
    const OpSpec *s = &op->spec;
    const void *value = op->needs_y ? run->y : run->x[0];
    ActTask t = {.act = s->act,
                 .type = s->y.dtype,
                 .out = run->dx[0],
                 .a = run->dy,
                 .b = value,
                 .n = desc_elements(s->y)};
    work_run(grad_body, &t, (t.n + ITEM_ELEMENTS - 1) / ITEM_ELEMENTS, t.n);
}

const OpTable cpu_activation = {
    .name = "activation",
    .plan = activation_plan,
    .forward = activation_forward,
    .backward_data = activation_backward_data,
};
