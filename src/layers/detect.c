/* detect: the head of a detector on one level (YOLOv5's Detect). It is a 1x1 convolution. For each
 * anchor it has the channels x, y, w, h, object, and one channel for each class. As in YOLOv5, a
 * number is added to the initial bias of each object channel and each class channel. The number for
 * object channels makes about 8 cells of a picture of 640 x 640 pixels predict an object. The
 * number for class channels gives each class a probability of about 0.6 / classes, or of almost 1
 * if there is a single class. */
#include "kinds.h"

#include <math.h>

static const char *const attrs[] = {"channels", "classes", "cell", NULL};

static void defaults(OpSpec *spec, LayerSize *size)
{
    spec->kernel[0] = spec->kernel[1] = spec->stride[0] = spec->stride[1] = spec->groups = 1;
    size->bias = true;
    size->init = INIT_UNIFORM_FP16;
}

/* Returns the number that is added to the initial bias of channel i (LayerParam.add). */
static double bias_add(const OpSpec *spec, int64_t i)
{
    const int64_t channel = i % (BOX_CHANNELS + spec->classes);
    const double cells = 640.0 / spec->cell;
    if (channel < BOX_CHANNELS - 1) return 0;
    return channel < BOX_CHANNELS ? log(8 / (cells * cells)) : log(0.6 / (spec->classes - 0.99999));
}

static Status infer(OpSpec *spec, const LayerSize *size, LayerParam param[SPEC_PARAMS])
{
    TRY(check_floats(spec, "detect", 4, 4, "images (N,C,H,W)"));
    if (spec->classes < 1 || spec->cell < 1)
        return fail(ERR_CONFIG, "detect needs classes, and cell, the pixels of a cell's side");
    if (size->width < 1 || size->width % (BOX_CHANNELS + spec->classes) != 0)
        return fail(ERR_CONFIG,
                    "detect needs channels, a multiple of %d: 5 and %d classes for each anchor",
                    BOX_CHANNELS + spec->classes, spec->classes);
    const Shape x = spec->x[0].shape;
    spec->y = desc_plain(shape_of(4, x.dim[0], size->width, x.dim[2], x.dim[3]), DTYPE_F32);
    set_weight_and_bias(spec, size, param, shape_of(4, size->width, x.dim[1], 1, 1), size->width);
    param[1].add = bias_add;
    return OK;
}

const LayerKind kind_detect = {
    .name = "detect",
    .op = OP_CONV2D,
    .attrs = attrs,
    .inputs = 1,
    .channels = CHANNELS_NEW,
    .help = "a detector's head: boxes, objects and classes of each cell and anchor",
    .defaults = defaults,
    .infer = infer,
    .onnx = conv_onnx,
};
