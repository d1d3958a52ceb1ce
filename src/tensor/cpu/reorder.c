/* reorder: copies a tensor to another layout or number format. The caller of op_new sets spec.y,
 * the layout and number format of the result; backward converts the gradient back. A flat tensor
 * (Desc.flat) is copied as its 4-d image. */
#include "dnnl/linear.h"
#include "view.h"

typedef struct Reorder {
    /* oneDNN's reorder of x; NULL: the layouts are equal, and only the number format changes;
     * owned */
    Kernel *forward;
    /* oneDNN's reorder of dy; NULL: dx is not needed, or `forward` is NULL; owned */
    Kernel *data;
} Reorder;

enum { ITEM_ELEMENTS = 4096 };
typedef struct ConvertTask {
    DType from, to;
    const void *x;
    void *y;
    int64_t n;
} ConvertTask;

/* Makes a kernel that copies a tensor from one format to another. */
static Status reorder_kernel_new(Kernel **kernel, Dnnl *dnnl, const Format *from, const Format *to)
{
    TRY(kernel_plan(
        kernel, dnnl,
        &(KernelSpec){.kind = KERNEL_REORDER, .role = {[ROLE_X] = from, [ROLE_Y] = to}}));
    return kernel_build(*kernel);
}

static Status reorder_plan(Op *op, Desc preferred[SPEC_INPUTS])
{
    OpSpec *s = &op->spec;
    (void)preferred;
    const Desc *from = &s->x[0], *to = &s->y;
    Desc converted = *from;
    converted.dtype = to->dtype;
    if (from->dtype != DTYPE_I32 && from->dtype != to->dtype && desc_equal(converted, *to)) {
        op->impl = mem_new(sizeof(Reorder));
        return OK;
    }
    Shape image = from->flat ? from->image : to->flat ? to->image : from->shape;
    bool one_image = !from->flat || !to->flat || shape_equal(from->image, to->image);
    if (image.ndim != 4 || !one_image || !shape_equal(from->shape, to->shape) ||
        from->dtype == DTYPE_I32 || to->dtype == DTYPE_I32)
        return fail(ERR_BUG, "reorder: only an image of floats has more than one layout");
    Reorder *r = op->impl = mem_new(sizeof *r);
    Dnnl *dnnl = cpu_dnnl(op->backend);
    Format *x = format_image(image, from->block, false, from->dtype);
    Format *y = format_image(image, to->block, false, to->dtype);
    Status status = reorder_kernel_new(&r->forward, dnnl, x, y);
    if (status == OK && s->need_dx[0]) status = reorder_kernel_new(&r->data, dnnl, y, x);
    if (status == OK) {
        size_t forward = kernel_scratch_bytes(r->forward);
        size_t data = r->data ? kernel_scratch_bytes(r->data) : 0;
        op->workspace_bytes = forward > data ? forward : data;
    }
    format_free(&x);
    format_free(&y);
    return status;
}

static void convert_body(const void *task, int64_t begin, int64_t end)
{
    const ConvertTask *t = task;
    int64_t from = begin * ITEM_ELEMENTS,
            to = end * ITEM_ELEMENTS < t->n ? end * ITEM_ELEMENTS : t->n;
    const void *x = element_at(t->x, from, t->from);
    void *y = element_out(t->y, from, t->to);
    if (t->to == DTYPE_F32)
        simd_table(t->from)->to_floats(y, x, to - from);
    else
        simd_table(t->to)->from_floats(y, x, to - from);
}

static void convert(Desc from, Desc to, const void *x, void *y)
{
    ConvertTask t = {.from = from.dtype, .to = to.dtype, .x = x, .y = y, .n = desc_elements(from)};
    work_run(convert_body, &t, (t.n + ITEM_ELEMENTS - 1) / ITEM_ELEMENTS, t.n);
}

static void reorder_forward(Op *op, const OpRun *run)
{
    Reorder *r = op->impl;
    if (!r->forward) {
        convert(op->spec.x[0], op->spec.y, run->x[0], run->y);
        return;
    }
    void *x = (void *)(uintptr_t)run->x[0];
    kernel_run(r->forward, (void *const[ROLES]){[ROLE_X] = x, [ROLE_Y] = run->y}, run->workspace);
}

static void reorder_backward_data(Op *op, const OpRun *run)
{
    Reorder *r = op->impl;
    if (!run->dx[0]) return;
    if (!r->data) {
        convert(op->spec.y, op->spec.x[0], run->dy, run->dx[0]);
        return;
    }
    kernel_run(r->data, (void *const[ROLES]){[ROLE_X] = run->dy, [ROLE_Y] = run->dx[0]},
               run->workspace);
}

static void reorder_free(Op *op)
{
    Reorder *r = op->impl;
    if (!r) return;
    kernel_free(&r->forward);
    kernel_free(&r->data);
    mem_free(&op->impl);
}

const OpTable cpu_reorder = {
    .name = "reorder",
    .plan = reorder_plan,
    .forward = reorder_forward,
    .backward_data = reorder_backward_data,
    .free = reorder_free,
};
