/* dropout (Srivastava et al. 2014): in training, sets values to zero with probability p, and
 * multiplies the other values by 1/(1-p). dropout2d (Tompson et al. 2015) does the same with all
 * values of a channel of a sample together. */
#include "kinds.h"

static const char *const attrs[] = {"p", NULL};

static void defaults(OpSpec *spec, LayerSize *size)
{
    (void)size;
    spec->drop = 0.5f;
}

static void channels_defaults(OpSpec *spec, LayerSize *size)
{
    defaults(spec, size);
    spec->drop_channels = true;
}

static Status infer(OpSpec *spec, const LayerSize *size, LayerParam param[SPEC_PARAMS])
{
    (void)size;
    (void)param;
    if (spec->drop_channels)
        TRY(check_floats(spec, "dropout2d", 4, 4, "images (N,C,H,W)"));
    else
        TRY(check_floats(spec, "dropout", 2, 4, "(N,C), (N,T,C) or (N,C,H,W)"));
    spec->y = desc_plain(spec->x[0].shape, DTYPE_F32);
    return OK;
}

/* Dropout does nothing in evaluation. */
static OnnxValue to_onnx(const OnnxLayer *l)
{
    return l->x[0];
}

const LayerKind kind_dropout = {
    .name = "dropout",
    .op = OP_DROPOUT,
    .attrs = attrs,
    .inputs = 1,
    .channels = CHANNELS_KEEP,
    .help = "zeroes values with probability p while training",
    .defaults = defaults,
    .infer = infer,
    .onnx = to_onnx,
};
const LayerKind kind_dropout2d = {
    .name = "dropout2d",
    .op = OP_DROPOUT,
    .attrs = attrs,
    .inputs = 1,
    .channels = CHANNELS_KEEP,
    .help = "zeroes whole channels of a sample with probability p while training",
    .defaults = channels_defaults,
    .infer = infer,
    .onnx = to_onnx,
};
