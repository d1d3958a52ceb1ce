/* Masks the gradient of a fused activation (mask.h), in items of MASK_ITEM elements. */
#include "mask.h"
#include "view.h"

typedef struct Mask {
    Act act;
    DType type;
    void *dy;
    const void *y;
    int64_t n;
} Mask;

enum { MASK_ITEM = 4096 };
static void mask_body(const void *task, int64_t begin, int64_t end)
{
    const Mask *m = task;
    int64_t from = begin * MASK_ITEM, to = end * MASK_ITEM < m->n ? end * MASK_ITEM : m->n;
    void *dy = element_out(m->dy, from, m->type);
    simd_table(m->type)->act_grad(m->act, 0.0f, dy, dy, element_at(m->y, from, m->type), to - from);
}

void mask_gradient(Act act, void *dy, const void *y, Desc layout)
{
    Mask m = {.act = act, .type = layout.dtype, .dy = dy, .y = y, .n = desc_elements(layout)};
    work_run(mask_body, &m, (m.n + MASK_ITEM - 1) / MASK_ITEM, m.n);
}
