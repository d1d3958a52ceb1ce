/* reorder: the same tensor in another layout. spec.y's layout is given by whoever asks for it; backward goes back. A
 * flattened image is still an image here: its plain order is that of the plain image. */
#include "cpu.h"
#include "linear.h"

typedef struct Reorder {
    Kernel *forward, *data;
} Reorder;

static Status direction_new(Kernel **kernel, Dnnl *dnnl, const Format *from, const Format *to)
{
    TRY(kernel_plan(
        kernel, dnnl,
        &(KernelSpec){.kind = KERNEL_REORDER, .role = {[ROLE_X] = from, [ROLE_Y] = to}}));
    return kernel_build(*kernel);
}

static Status reorder_plan(Op *op, Desc wish[OP_INPUTS])
{
    OpSpec *s = &op->spec;
    (void)wish;
    const Desc *from = &s->x[0], *to = &s->y;
    Shape image = from->flat ? from->image : to->flat ? to->image : from->shape;
    bool one_image = !from->flat || !to->flat || shape_equal(from->image, to->image);
    if (image.ndim != 4 || !one_image || !shape_equal(from->shape, to->shape) ||
        from->dtype != DTYPE_F32)
        return fail(ERR_BUG, "reorder: only float images have more than one layout");
    Reorder *r = op->impl = mem_new(sizeof *r);
    Dnnl *dnnl = cpu_dnnl(op->backend);
    Format *x = format_image(image, from->block, false);
    Format *y = format_image(image, to->block, false);
    Status status = direction_new(&r->forward, dnnl, x, y);
    if (status == OK && s->need_dx[0]) status = direction_new(&r->data, dnnl, y, x);
    if (status == OK) {
        size_t forward = kernel_scratch_bytes(r->forward);
        size_t data = r->data ? kernel_scratch_bytes(r->data) : 0;
        op->workspace_bytes = forward > data ? forward : data;
    }
    format_free(&x);
    format_free(&y);
    return status;
}

static void reorder_forward(Op *op, const OpRun *run)
{
    Reorder *r = op->impl;
    void *x = (void *)(uintptr_t)run->x[0];
    kernel_run(r->forward, (void *const[ROLES]){[ROLE_X] = x, [ROLE_Y] = run->y}, run->workspace);
}

static void reorder_backward_data(Op *op, const OpRun *run)
{
    Reorder *r = op->impl;
    if (!r->data || !run->dx[0]) return;
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
