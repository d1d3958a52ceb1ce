/* pixels_to_tokens: converts an image to a sequence with a token for each pixel, row by row, for
 * attention and dense layers. tokens_to_pixels: converts such a sequence back to an image. */
#include "kinds.h"

static Status pixels_infer(OpSpec *spec, const LayerSize *size, LayerParam param[SPEC_PARAMS])
{
    (void)size;
    (void)param;
    TRY(check_floats(spec, "pixels_to_tokens", 4, 4, "images (N,C,H,W)"));
    const Shape x = spec->x[0].shape;
    spec->y = desc_plain(shape_of(3, x.dim[0], x.dim[2] * x.dim[3], x.dim[1], 1), DTYPE_F32);
    return OK;
}

static OnnxValue pixels_onnx(const OnnxLayer *l)
{
    const OnnxValue flat =
        onnx_add(l, "Reshape", "rows", l->x[0],
                 onnx_vector(l, 0, l->spec->x[0].shape.dim[1], l->spec->y.shape.dim[1]));
    const OnnxValue y = onnx_add(l, "Transpose", NULL, flat);
    onnx_attr_ints(l, "perm", 3, (const int64_t[]){0, 2, 1});
    return y;
}

/* Only the shape of the second input is used, so the rule removes that input from the operation. If
 * model.widths makes the rule run again, there is no second input, and height and width of the
 * image stay as they are. */
static Status tokens_infer(OpSpec *spec, const LayerSize *size, LayerParam param[SPEC_PARAMS])
{
    char a[64], b[64];
    (void)size;
    (void)param;
    const Shape x = spec->x[0].shape, image_shape = spec->x[1].shape;
    if (spec->x_count == 2 && image_shape.ndim == 4) {
        spec->image[0] = (int)image_shape.dim[2];
        spec->image[1] = (int)image_shape.dim[3];
    }
    if (x.ndim != 3 || (spec->x_count == 2 && image_shape.ndim != 4) ||
        x.dim[1] != (int64_t)spec->image[0] * spec->image[1])
        return fail(ERR_CONFIG,
                    "tokens_to_pixels got %s and %s, needs a sequence (N,H W,C) and the image "
                    "(N,C,H,W) of whose pixels it was made",
                    shape_text(x, a), spec->x_count == 2 ? shape_text(image_shape, b) : "an image");
    spec->x_count = 1;
    TRY(check_floats(spec, "tokens_to_pixels", 3, 3, "sequences (N,H W,C)"));
    spec->y =
        desc_plain(shape_of(4, x.dim[0], x.dim[2], spec->image[0], spec->image[1]), DTYPE_F32);
    return OK;
}

static OnnxValue tokens_onnx(const OnnxLayer *l)
{
    const Shape y = l->spec->y.shape;
    const OnnxValue turned = onnx_add(l, "Transpose", "channels", l->x[0]);
    onnx_attr_ints(l, "perm", 3, (const int64_t[]){0, 2, 1});
    return onnx_add(l, "Reshape", NULL, turned, onnx_vector(l, 0, y.dim[1], y.dim[2], y.dim[3]));
}

const LayerKind kind_pixels_to_tokens = {
    .name = "pixels_to_tokens",
    .op = OP_PIXEL_TOKENS,
    .inputs = 1,
    .channels = CHANNELS_FIXED,
    .help = "the pixels of an image as a sequence of tokens, row by row",
    .infer = pixels_infer,
    .onnx = pixels_onnx,
};

const LayerKind kind_tokens_to_pixels = {
    .name = "tokens_to_pixels",
    .op = OP_PIXEL_TOKENS,
    .inputs = 2,
    .channels = CHANNELS_FIXED,
    .help = "a sequence of pixels as an image, of the height and width of the second input",
    .infer = tokens_infer,
    .onnx = tokens_onnx,
};
