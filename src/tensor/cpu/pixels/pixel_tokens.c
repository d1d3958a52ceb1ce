/* pixel_tokens: converts images to sequences of their pixels, or back. In both, the channels of a
 * pixel are side by side (the image is in channels-last order), so no data are copied. */
#include "../view.h"

static bool is_sequence_of(Shape image, Shape tokens)
{
    return image.ndim == 4 && tokens.ndim == 3 && image.dim[0] == tokens.dim[0] &&
           image.dim[2] * image.dim[3] == tokens.dim[1] && image.dim[1] == tokens.dim[2];
}

static Status tokens_check(const OpSpec *s)
{
    char a[64], b[64];
    const Shape x = s->x[0].shape, y = s->y.shape;
    if (is_sequence_of(x, y) || is_sequence_of(y, x)) return OK;
    return fail(ERR_CONFIG, "pixel_tokens: input %s and output %s do not match", shape_text(x, a),
                shape_text(y, b));
}

/* x (N,C,H,W) -> y (N,H W,C), or the other way round. */
const OpInfo info_pixel_tokens = {
    .name = "pixel_tokens",
    .check = tokens_check,
    .split = SPLIT_NEVER,
    .fuse = FUSE_NEVER,
    .residual = RESIDUAL_NEVER,
    .communication = COMMUNICATES_NEVER,
    .tokens = TOKENS_TOGETHER,
    .params = PARAMS_NONE,
    .reads = READS_NOTHING,
    .traffic = TRAFFIC_ONCE,
    .dx = DX_IS_DY,
    .acts = ACTS_NONE,
};

/* Returns the layout in which the channels of a pixel are side by side. */
static Desc together(Desc d)
{
    d = layout_plain(d);
    if (d.shape.ndim == 4) d.block = (int)d.shape.dim[1];
    return d;
}

static Status tokens_plan(Op *op, Desc preferred[SPEC_INPUTS])
{
    OpSpec *s = &op->spec;
    preferred[0] = in_precision(op, together(s->x[0]));
    s->y = together(desc_plain(s->y.shape, preferred[0].dtype));
    op->y_is_x = op->dx_is_dy[0] = true;
    return OK;
}

static void tokens_forward(Op *op, const OpRun *run)
{
    (void)op;
    (void)run;
}

const OpTable cpu_pixel_tokens = {
    .name = "pixel_tokens",
    .plan = tokens_plan,
    .forward = tokens_forward,
};
