/* softmax_loss (cross-entropy with label smoothing), mse_loss and sigmoid_loss (cross-entropy of
 * one logit). Each gives (rows, LOSS_COLUMNS) results. A model ends with the one that train.loss
 * selects. */
#include "kinds.h"

static const char *const softmax_attrs[] = {"smoothing", NULL};

static Status softmax_infer(OpSpec *spec, const LayerSize *size, LayerParam param[SPEC_PARAMS])
{
    (void)size;
    (void)param;
    TRY(need_floats(spec, "softmax_loss", 2, 3, "(N,K) or (N,T,K)"));
    Shape x = spec->x[0].shape;
    int64_t rows = shape_count(x) / x.dim[x.ndim - 1];
    spec->y = desc_plain(shape_of(2, rows, LOSS_COLUMNS, 1, 1), DTYPE_F32);
    return OK;
}

static Status mse_infer(OpSpec *spec, const LayerSize *size, LayerParam param[SPEC_PARAMS])
{
    (void)size;
    (void)param;
    TRY(need_floats(spec, "mse_loss", 2, 2, "(N,K)"));
    spec->y = desc_plain(shape_of(2, spec->x[0].shape.dim[0], LOSS_COLUMNS, 1, 1), DTYPE_F32);
    return OK;
}

static Status sigmoid_infer(OpSpec *spec, const LayerSize *size, LayerParam param[SPEC_PARAMS])
{
    char text[64];
    (void)size;
    (void)param;
    TRY(need_floats(spec, "sigmoid_loss", 2, 2, "(N,1)"));
    Shape x = spec->x[0].shape;
    if (x.dim[1] != 1)
        return fail(ERR_CONFIG, "sigmoid_loss got %s, needs (N,1)", shape_text(x, text));
    spec->y = desc_plain(shape_of(2, x.dim[0], LOSS_COLUMNS, 1, 1), DTYPE_F32);
    return OK;
}

const LayerKind kind_softmax_loss = {
    .name = "softmax_loss",
    .op = OP_SOFTMAX_LOSS,
    .attrs = softmax_attrs,
    .inputs = 1,
    .channels = CHANNELS_WHOLE,
    .help = "cross-entropy of the softmax, with label smoothing",
    .infer = softmax_infer,
};
const LayerKind kind_mse_loss = {
    .name = "mse_loss",
    .op = OP_MSE_LOSS,
    .inputs = 1,
    .channels = CHANNELS_WHOLE,
    .help = "mean squared error",
    .infer = mse_infer,
};

const LayerKind kind_sigmoid_loss = {
    .name = "sigmoid_loss",
    .op = OP_SIGMOID_LOSS,
    .inputs = 1,
    .channels = CHANNELS_WHOLE,
    .help = "cross-entropy of the sigmoid of one logit",
    .infer = sigmoid_infer,
};

static const LossInfo infos[] = {
    [LOSS_SOFTMAX] =
        {.layer = "softmax_loss", .of_tokens = true, .top = 5, .best_class = true, .smooths = true},
    [LOSS_MSE] = {.layer = "mse_loss", .of_targets = true},
    [LOSS_SIGMOID] = {.layer = "sigmoid_loss", .outputs = 1, .classes = 2, .top = 1, .logit = true},
};

#define LOSS_WORD(constant, name, keys) [constant] = {.word = name, .uses = keys},
static const ConfigWord words[] = {LOSS_WORDS(LOSS_WORD)};
enum { LOSSES = sizeof words / sizeof *words };
_Static_assert(sizeof infos / sizeof *infos == LOSSES, "a row for each loss");

static ConfigWord loss_word(int i)
{
    if (i >= LOSSES) return (ConfigWord){0};
    ConfigWord word = words[i];
    word.help = layer_kind(infos[i].layer)->help;
    return word;
}

const LossInfo *loss_info(const Config *config)
{
    return &infos[config->train.loss];
}

const char *loss_name(const Config *config)
{
    return words[config->train.loss].word;
}

const ConfigWords layers_words[LAYERS_WORDS] = {{"train.loss", .word = loss_word}};
