/* pixel_shuffle: scale x scale channels become one channel with scale x scale pixels for each
 * pixel. */
#include "kinds.h"

static const char *const attrs[] = {"scale", NULL};

static void defaults(OpSpec *spec, LayerSize *size)
{
    (void)size;
    spec->scale = 2;
}

static Status infer(OpSpec *spec, const LayerSize *size, LayerParam param[SPEC_PARAMS])
{
    char text[64];
    (void)size;
    (void)param;
    TRY(check_floats(spec, "pixel_shuffle", 4, 4, "images (N,C,H,W)"));
    const Shape x = spec->x[0].shape;
    const int64_t r = spec->scale;
    if (x.dim[1] % (r * r))
        return fail(ERR_CONFIG, "pixel_shuffle got %s, needs a multiple of %lld channels",
                    shape_text(x, text), (long long)(r * r));
    spec->y = desc_plain(shape_of(4, x.dim[0], x.dim[1] / (r * r), x.dim[2] * r, x.dim[3] * r),
                         DTYPE_F32);
    return OK;
}

static OnnxValue to_onnx(const OnnxLayer *l)
{
    const OnnxValue y = onnx_add(l, "DepthToSpace", NULL, l->x[0]);
    onnx_attr_int(l, "blocksize", l->spec->scale);
    onnx_attr_text(l, "mode", "CRD");
    return y;
}

const LayerKind kind_pixel_shuffle = {
    .name = "pixel_shuffle",
    .op = OP_PIXEL_SHUFFLE,
    .attrs = attrs,
    .inputs = 1,
    .channels = CHANNELS_FIXED,
    .help = "scale x scale channels become scale x scale pixels of one channel",
    .defaults = defaults,
    .infer = infer,
    .onnx = to_onnx,
};
