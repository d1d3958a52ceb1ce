/* yolo_loss: the loss of YOLOv5 on the grids of several levels (see
 * src/tensor/cpu/loss/yolo_loss.c). */
#include "kinds.h"

static const char *const attrs[] = {"anchors", "image", "smoothing", NULL};

/* Sets the anchors of YOLOv5's models with three levels. The cells of the three levels have sides
 * of 8, 16 and 32 pixels. */
static void defaults(OpSpec *spec, LayerSize *size)
{
    (void)size;
    spec->anchors = (Anchors){9,
                              {{10, 13},
                               {16, 30},
                               {33, 23},
                               {30, 61},
                               {62, 45},
                               {59, 119},
                               {116, 90},
                               {156, 198},
                               {373, 326}}};
}

static Status infer(OpSpec *spec, const LayerSize *size, LayerParam param[SPEC_PARAMS])
{
    (void)size;
    (void)param;
    TRY(check_floats(spec, "yolo_loss", 4, 4, "grids (N,C,H,W)"));
    if (spec->image[0] < 1)
        return fail(ERR_CONFIG, "yolo_loss needs image, the sides of the pictures");
    spec->y = desc_plain(shape_of(2, spec->x[0].shape.dim[0], LOSS_COLUMNS, 1, 1), DTYPE_F32);
    return op_info(spec->kind)->check(spec);
}

static const LossInfo loss = {.word = {.word = "yolo", .uses = "label_smoothing"},
                              .reads = LOSS_READS_BOXES,
                              .results = LOSS_RESULTS_PARTS,
                              .outputs = OUTPUTS_GRIDS};

const LayerKind kind_yolo_loss = {
    .name = "yolo_loss",
    .op = OP_YOLO_LOSS,
    .attrs = attrs,
    .inputs = INPUTS_TWO_OR_MORE,
    .channels = CHANNELS_FIXED,
    .help = "YOLOv5's loss of boxes, objects and classes on grids of several levels",
    .defaults = defaults,
    .infer = infer,
    .loss = &loss,
};
