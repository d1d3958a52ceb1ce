/* pad: adds rows and columns around an image, or cuts rows and columns off, in the layout of its
 * input. */
#include "copies.h"

static Status pad_check(const OpSpec *s)
{
    char a[64], b[64];
    Shape y;
    if (s->x[0].shape.ndim != 4) return fail(ERR_CONFIG, "pad: the input is no image");
    TRY(padding_shape(s, "pad", &y));
    if (shape_equal(y, s->y.shape)) return OK;
    return fail(ERR_CONFIG, "pad: output %s, expected %s", shape_text(s->y.shape, a),
                shape_text(y, b));
}

/* y[n][c][i][j] = x[n][c][source of i][source of j], or 0 if i or j has no source
 * (padding_source). */
const OpInfo info_pad = {
    .name = "pad",
    .check = pad_check,
    .split = SPLIT_NEVER,
    .fuse = FUSE_NEVER,
    .residual = RESIDUAL_NEVER,
    .communication = COMMUNICATES_NEVER,
    .tokens = TOKENS_TOGETHER,
    .params = PARAMS_NONE,
    .reads = READS_NOTHING,
    .traffic = TRAFFIC_ONCE,
    .dx = DX_WRITTEN,
    .acts = ACTS_NONE,
};

static Status pad_plan(Op *op, Desc preferred[SPEC_INPUTS])
{
    OpSpec *s = &op->spec;
    op->impl = copies_new(s, padding_source);
    preferred[0] = in_precision(op, s->x[0]);
    s->y.block = s->x[0].block;
    s->y.dtype = preferred[0].dtype;
    return OK;
}

static void pad_free(Op *op)
{
    Copies *copies = op->impl;
    copies_free(&copies);
    op->impl = NULL;
}

static void pad_forward(Op *op, const OpRun *run)
{
    copies_forward(op->impl, op, run);
}

static void pad_backward_data(Op *op, const OpRun *run)
{
    copies_backward(op->impl, op, run);
}

const OpTable cpu_pad = {
    .name = "pad",
    .plan = pad_plan,
    .forward = pad_forward,
    .backward_data = pad_backward_data,
    .free = pad_free,
};
