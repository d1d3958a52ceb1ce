/* pad: adds rows and columns around an image or, with negative numbers, cuts them off. crop: cuts
 * out the middle of its first input, with the height and width of its second input (Ronneberger et
 * al. 2015, "U-Net"). */
#include "kinds.h"

static const char *const attrs[] = {"pad", "mode", NULL};

static Status pad_infer(OpSpec *spec, const LayerSize *size, LayerParam param[SPEC_PARAMS])
{
    Shape y;
    (void)size;
    (void)param;
    TRY(check_floats(spec, "pad", 4, 4, "images (N,C,H,W)"));
    TRY(padding_shape(spec, "pad", &y));
    spec->y = desc_plain(y, DTYPE_F32);
    return OK;
}

/* Only the shape of the second input is used, so the rule removes that input from the operation. If
 * model.widths makes the rule run again, there is no second input, and the rule cuts off as many
 * rows and columns as before. */
static Status crop_infer(OpSpec *spec, const LayerSize *size, LayerParam param[SPEC_PARAMS])
{
    char a[64], b[64];
    Shape y;
    (void)size;
    (void)param;
    TRY(check_floats(spec, "crop", 4, 4, "images (N,C,H,W)"));
    for (int d = 0; d < 2 && spec->x_count == 2; ++d) {
        const int64_t rest = spec->x[0].shape.dim[2 + d] - spec->x[1].shape.dim[2 + d];
        if (rest < 0)
            return fail(ERR_CONFIG,
                        "crop got %s and %s, needs a first input of at least the size "
                        "of the second",
                        shape_text(spec->x[0].shape, a), shape_text(spec->x[1].shape, b));
        spec->padding.edge[2 * d] = -(int)(rest / 2);
        spec->padding.edge[2 * d + 1] = -(int)(rest - rest / 2);
    }
    spec->x_count = 1;
    TRY(padding_shape(spec, "crop", &y));
    spec->y = desc_plain(y, DTYPE_F32);
    return OK;
}

/* Pads with copies of rows or columns from the opposite edge of the image. d: 0 for rows, 1 for
 * columns. The result is named LAYER/step or, if step is NULL, LAYER. */
static OnnxValue wrap_onnx(const OnnxLayer *l, OnnxValue x, int d, const char *step)
{
    const int *edge = &l->spec->padding.edge[2 * d];
    const int64_t size = l->spec->x[0].shape.dim[2 + d], axis = 2 + d;
    OnnxValue part[3];
    int parts = 0;
    if (edge[0] > 0)
        part[parts++] =
            onnx_add(l, "Slice", d ? "left" : "above", x, onnx_vector(l, size - edge[0]),
                     onnx_vector(l, size), onnx_vector(l, axis));
    part[parts++] = x;
    if (edge[1] > 0)
        part[parts++] = onnx_add(l, "Slice", d ? "right" : "below", x, onnx_vector(l, 0),
                                 onnx_vector(l, edge[1]), onnx_vector(l, axis));
    const OnnxValue y = onnx_add_node(l, "Concat", step, part, parts);
    onnx_attr_int(l, "axis", axis);
    return y;
}

/* Returns the mode's word in ONNX; NULL: the operator Pad does not have the mode. */
static const char *onnx_mode(PadMode mode)
{
    switch (mode) {
    case PAD_ZERO:
        return "constant";
    case PAD_REPLICATE:
        return "edge";
    case PAD_REFLECT:
        return "reflect";
    case PAD_CIRCULAR:
        break;
    }
    return NULL;
}

/* Pads with ONNX's operator Pad. d: 0 for rows, 1 for columns, 2 for both, whose modes are then
 * equal. step: as in wrap_onnx. */
static OnnxValue edges_onnx(const OnnxLayer *l, OnnxValue x, int d, const char *step)
{
    const Padding *p = &l->spec->padding;
    const int64_t rows = d != 1, columns = d != 0;
    const OnnxValue edges = onnx_vector(l, 0, 0, rows * p->edge[0], columns * p->edge[2], 0, 0,
                                        rows * p->edge[1], columns * p->edge[3]);
    const OnnxValue y = onnx_add(l, "Pad", step, x, edges);
    onnx_attr_text(l, "mode", onnx_mode(p->mode[d == 1]));
    return y;
}

/* The operator Pad has no circular mode in opset 17, so circular padding is done by wrap_onnx. */
static OnnxValue to_onnx(const OnnxLayer *l)
{
    const PadMode *mode = l->spec->padding.mode;
    if (mode[0] == mode[1] && mode[0] != PAD_CIRCULAR) return edges_onnx(l, l->x[0], 2, NULL);
    const OnnxValue x = (mode[0] == PAD_CIRCULAR ? wrap_onnx : edges_onnx)(l, l->x[0], 0, "rows");
    return (mode[1] == PAD_CIRCULAR ? wrap_onnx : edges_onnx)(l, x, 1, NULL);
}

const LayerKind kind_pad = {
    .name = "pad",
    .op = OP_PAD,
    .attrs = attrs,
    .inputs = 1,
    .channels = CHANNELS_KEEP,
    .help = "rows and columns around an image: zeros, copies, mirrored or from the other end",
    .infer = pad_infer,
    .onnx = to_onnx,
};

const LayerKind kind_crop = {
    .name = "crop",
    .op = OP_PAD,
    .inputs = 2,
    .channels = CHANNELS_KEEP,
    .help = "the middle of the first input, of the height and width of the second",
    .infer = crop_infer,
    .onnx = to_onnx,
};
