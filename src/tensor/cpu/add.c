/* add: y = act(x0 + x1 + ...), where act is relu, relu6 or none. The gradient of each input is dy
 * itself. */
#include "mask.h"
#include "view.h"

typedef struct AddTask {
    const Op *op;
    const OpRun *run;
    int64_t n;
} AddTask;
enum { ITEM_ELEMENTS = 4096 };

static Status add_plan(Op *op, Desc preferred[SPEC_INPUTS])
{
    OpSpec *s = &op->spec;
    s->y = in_precision(op, layout_common(s));
    for (int i = 0; i < s->x_count; ++i) {
        preferred[i] = s->y;
        op->dx_is_dy[i] = true;
    }
    op->needs_y = s->act != ACT_NONE;
    op->y_inplace = true;
    return OK;
}

/* Adds the elements `from` to `from` + n - 1 of all inputs in fp32, so that a bf16 sum of any
 * number of inputs is rounded once. n is at most ITEM_ELEMENTS. */
static void add_rounded_once(const AddTask *t, int64_t from, int64_t n)
{
    const OpSpec *s = &t->op->spec;
    const SimdTable *floats = simd_table(DTYPE_F32), *half = simd_table(DTYPE_BF16);
    float sum[ITEM_ELEMENTS], term[ITEM_ELEMENTS];
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
    for (int64_t from = begin * ITEM_ELEMENTS; from < end * ITEM_ELEMENTS && from < t->n;
         from += ITEM_ELEMENTS) {
        int64_t n = t->n - from < ITEM_ELEMENTS ? t->n - from : ITEM_ELEMENTS;
        const DType type = s->y.dtype;
        if (type == DTYPE_BF16 && s->x_count > 2) {
            add_rounded_once(t, from, n);
            continue;
        }
        void *y = element_out(t->run->y, from, type);
        const void *sum = element_at(t->run->x[0], from, type);
        if (s->x_count == 1) simd_table(type)->act(s->act, 0.0f, y, sum, n);
        for (int i = 1; i < s->x_count; ++i) {
            Act act = i + 1 < s->x_count ? ACT_NONE : s->act;
            simd_table(type)->add_act(act, y, sum, element_at(t->run->x[i], from, type), n);
            sum = y;
        }
    }
}

static void add_forward(Op *op, const OpRun *run)
{
    AddTask t = {.op = op, .run = run, .n = desc_elements(op->spec.y)};
    work_run(add_body, &t, (t.n + ITEM_ELEMENTS - 1) / ITEM_ELEMENTS, t.n);
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
