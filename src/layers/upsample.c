/* upsample: each pixel becomes scale x scale pixels, which are copies (nearest) or interpolated
 * (bilinear). */
#include "kinds.h"

static const char *const attrs[] = {"scale", "mode", "align_corners", NULL};

static void defaults(OpSpec *spec, LayerSize *size)
{
    (void)size;
    spec->scale = 2;
}

static Status infer(OpSpec *spec, const LayerSize *size, LayerParam param[SPEC_PARAMS])
{
    (void)size;
    (void)param;
    TRY(check_floats(spec, "upsample", 4, 4, "images (N,C,H,W)"));
    if (spec->align_corners && spec->upsample == UPSAMPLE_NEAREST)
        return fail(ERR_CONFIG, "upsample: align_corners needs mode: bilinear");
    const Shape x = spec->x[0].shape;
    const int64_t h = x.dim[2] * spec->scale, w = x.dim[3] * spec->scale;
    spec->y = desc_plain(shape_of(4, x.dim[0], x.dim[1], h, w), DTYPE_F32);
    return OK;
}

/* By default the operator Resize aligns images by the centres of pixels (half_pixel) and copies the
 * nearest pixel. Since the scale is a whole number, pixel (i, j) of the output is then a copy of
 * pixel (i / scale, j / scale), rounded down, of the input. Attributes select the other modes. The
 * second input of Resize is not used. */
static OnnxValue to_onnx(const OnnxLayer *l)
{
    const float scale = (float)l->spec->scale;
    const OnnxValue scales = onnx_floats(l, 4, (const float[]){1, 1, scale, scale});
    const OnnxValue y = onnx_add(l, "Resize", NULL, l->x[0], ONNX_NONE, scales);
    switch (l->spec->upsample) {
    case UPSAMPLE_NEAREST:
        break;
    case UPSAMPLE_BILINEAR:
        onnx_attr_text(l, "mode", "linear");
        break;
    }
    if (l->spec->align_corners)
        onnx_attr_text(l, "coordinate_transformation_mode", "align_corners");
    return y;
}

const LayerKind kind_upsample = {
    .name = "upsample",
    .op = OP_UPSAMPLE,
    .attrs = attrs,
    .inputs = 1,
    .channels = CHANNELS_KEEP,
    .help = "each pixel becomes scale x scale pixels, equal or interpolated",
    .defaults = defaults,
    .infer = infer,
    .onnx = to_onnx,
};
