/* mse_loss, l1_loss, huber_loss and charbonnier_loss: losses that compare each output of the model
 * with the corresponding number of the target. They differ in the function that is applied to the
 * difference. */
#include "kinds.h"

static void mse_defaults(OpSpec *spec, LayerSize *size)
{
    (void)size;
    spec->point = POINT_SQUARE;
}

static void l1_defaults(OpSpec *spec, LayerSize *size)
{
    (void)size;
    spec->point = POINT_ABSOLUTE;
}

static void huber_defaults(OpSpec *spec, LayerSize *size)
{
    (void)size;
    spec->point = POINT_HUBER;
    spec->delta = 1;
}

static void charbonnier_defaults(OpSpec *spec, LayerSize *size)
{
    (void)size;
    spec->point = POINT_CHARBONNIER;
    spec->eps = 1e-3f;
}

static Status infer(OpSpec *spec, const LayerSize *size, LayerParam param[SPEC_PARAMS])
{
#define NAME(LOSS, layer) layer,
    static const char *const name[POINT_LOSS_COUNT] = {POINT_LOSSES(NAME)};
#undef NAME
    (void)size;
    (void)param;
    TRY(check_floats(spec, name[spec->point], 2, 4, "(N,K), (N,C,L) or (N,C,H,W)"));
    spec->y = desc_plain(shape_of(2, spec->x[0].shape.dim[0], LOSS_COLUMNS, 1, 1), DTYPE_F32);
    return OK;
}

static const char *const huber_attrs[] = {"delta", NULL};
static const char *const charbonnier_attrs[] = {"eps", NULL};

static const LossInfo mse = {.word = {.word = "mse"},
                             .reads = LOSS_READS_TARGETS,
                             .results = LOSS_RESULTS_NONE,
                             .outputs = OUTPUTS_PER_CLASS};
static const LossInfo l1 = {.word = {.word = "l1"},
                            .reads = LOSS_READS_TARGETS,
                            .results = LOSS_RESULTS_NONE,
                            .outputs = OUTPUTS_PER_CLASS};
static const LossInfo huber = {.word = {.word = "huber", .uses = "huber_delta"},
                               .reads = LOSS_READS_TARGETS,
                               .results = LOSS_RESULTS_NONE,
                               .outputs = OUTPUTS_PER_CLASS};
static const LossInfo charbonnier = {.word = {.word = "charbonnier", .uses = "charbonnier_eps"},
                                     .reads = LOSS_READS_TARGETS,
                                     .results = LOSS_RESULTS_NONE,
                                     .outputs = OUTPUTS_PER_CLASS};

const LayerKind kind_mse_loss = {
    .name = "mse_loss",
    .op = OP_POINT_LOSS,
    .inputs = 1,
    .channels = CHANNELS_FIXED,
    .help = "mean squared error",
    .defaults = mse_defaults,
    .infer = infer,
    .loss = &mse,
};
const LayerKind kind_l1_loss = {
    .name = "l1_loss",
    .op = OP_POINT_LOSS,
    .inputs = 1,
    .channels = CHANNELS_FIXED,
    .help = "mean absolute error",
    .defaults = l1_defaults,
    .infer = infer,
    .loss = &l1,
};
const LayerKind kind_huber_loss = {
    .name = "huber_loss",
    .op = OP_POINT_LOSS,
    .attrs = huber_attrs,
    .inputs = 1,
    .channels = CHANNELS_FIXED,
    .help = "squared error / 2 up to delta, linear beyond",
    .defaults = huber_defaults,
    .infer = infer,
    .loss = &huber,
};
const LayerKind kind_charbonnier_loss = {
    .name = "charbonnier_loss",
    .op = OP_POINT_LOSS,
    .attrs = charbonnier_attrs,
    .inputs = 1,
    .channels = CHANNELS_FIXED,
    .help = "sqrt(error^2 + eps^2) - eps, a smooth absolute error",
    .defaults = charbonnier_defaults,
    .infer = infer,
    .loss = &charbonnier,
};
