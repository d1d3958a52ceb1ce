/* conv_transpose2d: transposed 2-d convolution, which makes images larger. */
#include "kinds.h"

static const char *const attrs[] = {"channels", "kernel", "stride", "pad",      "output_pad",
                                    "groups",   "bias",   "init",   "init_std", NULL};

static void defaults(OpSpec *spec, LayerSize *size)
{
    spec->stride[0] = spec->stride[1] = 1;
    spec->groups = 1;
    size->bias = true;
    size->init = INIT_UNIFORM;
}

static Status infer(OpSpec *spec, const LayerSize *size, LayerParam param[SPEC_PARAMS])
{
    static const char *const side[2] = {"height", "width"};
    int64_t out[2];
    TRY(check_conv(spec, size, "conv_transpose2d"));
    const Shape x = spec->x[0].shape;
    const int64_t outputs = size->width;
    for (int d = 0; d < 2; ++d) {
        const int k = spec->kernel[d], stride = spec->stride[d], more = spec->output_pad[d];
        if (k < 1) return fail(ERR_CONFIG, "conv_transpose2d needs kernel, for example kernel: 2");
        if (more >= stride)
            return fail(ERR_CONFIG,
                        "conv_transpose2d: output_pad %d must be smaller than stride %d", more,
                        stride);
        out[d] = (x.dim[2 + d] - 1) * stride - 2 * spec->pad[d] + k + more;
        if (out[d] < 1)
            return fail(ERR_CONFIG,
                        "conv_transpose2d: a kernel of %d and pad %d leave nothing of a %s of %lld",
                        k, spec->pad[d], side[d], (long long)x.dim[2 + d]);
    }
    spec->y = desc_plain(shape_of(4, x.dim[0], outputs, out[0], out[1]), DTYPE_F32);
    const Shape w = shape_of(4, x.dim[1], outputs / spec->groups, spec->kernel[0], spec->kernel[1]);
    set_weight_and_bias(spec, size, param, w, outputs);
    return OK;
}

static OnnxValue to_onnx(const OnnxLayer *l)
{
    const OpSpec *s = l->spec;
    const OnnxValue y = onnx_with_params(l, "ConvTranspose");
    onnx_attr_int(l, "group", s->groups);
    window_onnx(l);
    onnx_attr_ints(l, "output_padding", 2, (const int64_t[]){s->output_pad[0], s->output_pad[1]});
    return y;
}

const LayerKind kind_conv_transpose2d = {
    .name = "conv_transpose2d",
    .op = OP_CONV_TRANSPOSE2D,
    .attrs = attrs,
    .inputs = 1,
    .channels = CHANNELS_FIXED,
    .help = "transposed 2-d convolution, which makes images larger",
    .defaults = defaults,
    .infer = infer,
    .onnx = to_onnx,
};
