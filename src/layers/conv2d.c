/* conv2d: 2-d convolution over images, with stride, padding and groups. If there are as many groups
 * as channels, the convolution is depthwise. */
#include "kinds.h"

static const char *const attrs[] = {"channels", "kernel", "stride", "pad",      "pad_mode",
                                    "groups",   "bias",   "init",   "init_std", NULL};

static void defaults(OpSpec *spec, LayerSize *size)
{
    spec->stride[0] = spec->stride[1] = 1;
    spec->groups = 1;
    size->bias = true;
    size->init = INIT_UNIFORM;
}

/* LayerKind.inserted_before: if the mode of padding is not zero, moves the padding to a pad layer
 * before the convolution. */
static const LayerKind *before(OpSpec *spec, Padding *padding)
{
    bool moved = false;
    for (int d = 0; d < 2; ++d) {
        const bool same = spec->pad[d] == PADDING_SAME;
        /* the shape rule refuses an even kernel with `pad: same` */
        if (spec->padding.mode[d] == PAD_ZERO || (same && spec->kernel[d] % 2 == 0)) continue;
        const int pad = same ? (spec->kernel[d] - 1) / 2 : spec->pad[d];
        padding->edge[2 * d] = padding->edge[2 * d + 1] = pad;
        padding->mode[d] = spec->padding.mode[d];
        moved = moved || pad > 0;
        spec->pad[d] = 0;
    }
    spec->padding = (Padding){0};
    return moved ? &kind_pad : NULL;
}

static Status infer(OpSpec *spec, const LayerSize *size, LayerParam param[SPEC_PARAMS])
{
    int64_t out[2];
    TRY(check_conv(spec, size, "conv2d"));
    Shape x = spec->x[0].shape;
    const int64_t outputs = size->width;
    TRY(window_infer(spec, "conv2d", out));
    spec->y = desc_plain(shape_of(4, x.dim[0], outputs, out[0], out[1]), DTYPE_F32);
    Shape w = shape_of(4, outputs, x.dim[1] / spec->groups, spec->kernel[0], spec->kernel[1]);
    set_weight_and_bias(spec, size, param, w, outputs);
    return OK;
}

OnnxValue conv_onnx(const OnnxLayer *l)
{
    OnnxValue y = onnx_with_params(l, "Conv");
    onnx_attr_int(l, "group", l->spec->groups);
    window_onnx(l);
    return y;
}

const LayerKind kind_conv2d = {
    .name = "conv2d",
    .op = OP_CONV2D,
    .attrs = attrs,
    .inputs = 1,
    .channels = CHANNELS_NEW,
    .help = "2-d convolution",
    .defaults = defaults,
    .inserted_before = before,
    .infer = infer,
    .onnx = conv_onnx,
};
