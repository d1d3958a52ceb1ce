/* Views of memory, and a layout for all inputs of an operation. */
#include "view.h"

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
