/* softmax_loss (cross-entropy with label smoothing) and mse_loss: (rows, LOSS_COLUMNS) per-sample
 * results. The model ends with one of them, chosen by train.loss. */
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

#define LOSS_WORD(constant, name, keys) [constant] = {.word = name, .uses = keys},

static ConfigWord loss_word(int i)
{
    static const ConfigWord word[] = {LOSS_WORDS(LOSS_WORD)};
    return i < (int)(sizeof word / sizeof word[0]) ? word[i] : (ConfigWord){0};
}

const ConfigWords layers_words[LAYERS_WORDS] = {{"train.loss", .word = loss_word}};
