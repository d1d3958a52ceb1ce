/* Losses for images with a label for each pixel: focal_loss, dice_loss and iou_loss. focal_loss
 * also accepts samples with one label each, as does softmax_loss (loss.c). */
#include "kinds.h"

static Status focal_infer(OpSpec *spec, const LayerSize *size, LayerParam param[SPEC_PARAMS])
{
    char text[64];
    (void)size;
    (void)param;
    TRY(check_floats(spec, "focal_loss", 2, 4, "(N,K) or (N,C,H,W)"));
    if (spec->x[0].shape.ndim == 3)
        return fail(ERR_CONFIG, "focal_loss got %s, needs (N,K) or (N,C,H,W)",
                    shape_text(spec->x[0].shape, text));
    TRY(check_class_weights(spec, "focal_loss"));
    spec->y = desc_plain(shape_of(2, loss_labels(spec), LOSS_COLUMNS, 1, 1), DTYPE_F32);
    return OK;
}

static const char *region_name(RegionLoss region)
{
    switch (region) {
    case REGION_DICE:
        return "dice_loss";
    case REGION_IOU:
        return "iou_loss";
    }
    return "";
}

static Status region_infer(OpSpec *spec, const LayerSize *size, LayerParam param[SPEC_PARAMS])
{
    (void)size;
    (void)param;
    TRY(check_floats(spec, region_name(spec->region), 4, 4, "(N,C,H,W)"));
    spec->y = desc_plain(shape_of(2, spec->x[0].shape.dim[0], LOSS_COLUMNS, 1, 1), DTYPE_F32);
    return OK;
}

static void focal_defaults(OpSpec *spec, LayerSize *size)
{
    (void)size;
    spec->focus = 2;
}

static void dice_defaults(OpSpec *spec, LayerSize *size)
{
    (void)size;
    spec->region = REGION_DICE;
}

static void iou_defaults(OpSpec *spec, LayerSize *size)
{
    (void)size;
    spec->region = REGION_IOU;
}

static const char *const focal_attrs[] = {"gamma", "class_weights", NULL};

static const LossInfo focal = {.word = {.word = "focal", .uses = "focal_gamma class_weights"},
                               .reads = LOSS_READS_CLASSES,
                               .results = LOSS_RESULTS_RANK,
                               .outputs = OUTPUTS_PER_CLASS};
static const LossInfo dice = {.word = {.word = "dice"},
                              .reads = LOSS_READS_CLASSES,
                              .results = LOSS_RESULTS_NONE,
                              .outputs = OUTPUTS_PER_CLASS};
static const LossInfo iou = {.word = {.word = "iou"},
                             .reads = LOSS_READS_CLASSES,
                             .results = LOSS_RESULTS_NONE,
                             .outputs = OUTPUTS_PER_CLASS};

const LayerKind kind_focal_loss = {
    .name = "focal_loss",
    .op = OP_FOCAL_LOSS,
    .attrs = focal_attrs,
    .inputs = 1,
    .channels = CHANNELS_FIXED,
    .help = "cross-entropy of the softmax times (1 - p)^gamma",
    .defaults = focal_defaults,
    .infer = focal_infer,
    .loss = &focal,
};
const LayerKind kind_dice_loss = {
    .name = "dice_loss",
    .op = OP_REGION_LOSS,
    .inputs = 1,
    .channels = CHANNELS_FIXED,
    .help = "1 - soft Dice coefficient of the classes of an image's pixels",
    .defaults = dice_defaults,
    .infer = region_infer,
    .loss = &dice,
};
const LayerKind kind_iou_loss = {
    .name = "iou_loss",
    .op = OP_REGION_LOSS,
    .inputs = 1,
    .channels = CHANNELS_FIXED,
    .help = "1 - soft intersection over union of the classes of an image's pixels",
    .defaults = iou_defaults,
    .infer = region_infer,
    .loss = &iou,
};
