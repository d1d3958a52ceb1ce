/* flatten: copies no data; y is a view of x's memory. */
#include "view.h"

static Status flatten_plan(Op *op, Desc preferred[SPEC_INPUTS])
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
    op->y_is_x = op->dx_is_dy[0] = true;
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
