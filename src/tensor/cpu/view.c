/* Views of memory, work sharing between OpenMP's threads, and the mask of a fused activation. */
#include "view.h"

#include <omp.h>

/* with fewer elements a parallel region costs more than it saves */
enum { SERIAL_ELEMENTS = 20000 };

View view_of(Desc d)
{
    Shape s = d.flat ? d.image : d.shape;
    View v = {.n = s.dim[0], .groups = 1, .hw = 1, .block = 1};
    if (s.ndim == 4) {
        v.block = d.block;
        v.channels = s.dim[1];
        v.groups = (s.dim[1] + d.block - 1) / d.block;
        v.hw = s.dim[2] * s.dim[3];
    } else {
        v.channels = v.groups = shape_count(s) / s.dim[0];
    }
    v.plane = v.hw * v.block;
    v.sample = v.groups * v.plane;
    return v;
}

int view_lanes(const View *v, int64_t g)
{
    int64_t left = v->channels - g * v->block;
    return left < v->block ? (int)left : v->block;
}

void work_run(WorkBody body, const void *task, int64_t count, int64_t elements)
{
    if (elements < SERIAL_ELEMENTS || count < 2 || omp_get_max_threads() == 1) {
        body(task, 0, count);
        return;
    }
#pragma omp parallel
    {
        int64_t thread = omp_get_thread_num(), threads = omp_get_num_threads();
        int64_t begin = count * thread / threads, end = count * (thread + 1) / threads;
        if (begin < end) body(task, begin, end);
    }
}

int threads_use(int threads)
{
    int before = omp_get_max_threads();
    omp_set_num_threads(threads);
    return before;
}

Desc in_precision(const Op *op, Desc d)
{
    if (d.dtype != DTYPE_I32) d.dtype = op->backend->options.precision;
    return d;
}

Desc layout_common(const OpSpec *spec)
{
    Desc common = spec->x[0];
    for (int i = 1; i < spec->x_count; ++i) {
        Desc x = spec->x[i];
        if (common.block == 1 && !common.flat) common = x;
        if (common.flat && x.flat && !shape_equal(common.image, x.image))
            return layout_plain(common);
    }
    return common;
}

Desc layout_plain(Desc d)
{
    d.block = 1;
    d.flat = false;
    d.image = (Shape){0};
    return d;
}

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
    simd_table(m->type)->act_grad(m->act, dy, dy, element_at(m->y, from, m->type), to - from);
}

void mask_gradient(Act act, void *dy, const void *y, Desc like)
{
    Mask m = {act, like.dtype, dy, y, desc_elements(like)};
    work_run(mask_body, &m, (m.n + MASK_ITEM - 1) / MASK_ITEM, m.n);
}
