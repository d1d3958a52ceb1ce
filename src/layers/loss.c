/* softmax_loss (cross-entropy with label smoothing and class weights) and sigmoid_loss
 * (cross-entropy of one logit). Their output is (number of labels, LOSS_COLUMNS). This file also
 * finds the loss that train.loss selects, defines the words of train.loss, and has the list of the
 * module's words (layers_words). */
#include "kinds.h"

static const char *const softmax_attrs[] = {"smoothing", "class_weights", NULL};

static Status softmax_infer(OpSpec *spec, const LayerSize *size, LayerParam param[SPEC_PARAMS])
{
    (void)size;
    (void)param;
    TRY(check_floats(spec, "softmax_loss", 2, 4, "(N,K), (N,T,K) or (N,C,H,W)"));
    TRY(check_class_weights(spec, "softmax_loss"));
    spec->y = desc_plain(shape_of(2, loss_labels(spec), LOSS_COLUMNS, 1, 1), DTYPE_F32);
    return OK;
}

static Status sigmoid_infer(OpSpec *spec, const LayerSize *size, LayerParam param[SPEC_PARAMS])
{
    char text[64];
    (void)size;
    (void)param;
    TRY(check_floats(spec, "sigmoid_loss", 2, 2, "(N,1)"));
    Shape x = spec->x[0].shape;
    if (x.dim[1] != 1)
        return fail(ERR_CONFIG, "sigmoid_loss got %s, needs (N,1)", shape_text(x, text));
    spec->y = desc_plain(shape_of(2, x.dim[0], LOSS_COLUMNS, 1, 1), DTYPE_F32);
    return OK;
}

static const LossInfo softmax = {
    .word = {.word = "softmax", .uses = "label_smoothing class_weights"},
    .reads = LOSS_READS_TOKENS,
    .results = LOSS_RESULTS_RANK,
    .outputs = OUTPUTS_PER_CLASS};
static const LossInfo sigmoid = {.word = {.word = "sigmoid", .uses = "auc"},
                                 .reads = LOSS_READS_CLASSES,
                                 .results = LOSS_RESULTS_LOGIT,
                                 .outputs = 1,
                                 .classes = 2};

const LayerKind kind_softmax_loss = {
    .name = "softmax_loss",
    .op = OP_SOFTMAX_LOSS,
    .attrs = softmax_attrs,
    .inputs = 1,
    .channels = CHANNELS_FIXED,
    .help = "cross-entropy of the softmax, with label smoothing",
    .infer = softmax_infer,
    .loss = &softmax,
};

const LayerKind kind_sigmoid_loss = {
    .name = "sigmoid_loss",
    .op = OP_SIGMOID_LOSS,
    .inputs = 1,
    .channels = CHANNELS_FIXED,
    .help = "cross-entropy of the sigmoid of one logit",
    .infer = sigmoid_infer,
    .loss = &sigmoid,
};

/* Returns loss i, in the order of the list of kinds, or NULL. */
static const LayerKind *loss_at(int i)
{
    const LayerKind *kind;
    for (int k = 0; (kind = layer_kind_at(k)); ++k)
        if (kind->loss && i-- == 0) return kind;
    return NULL;
}

static ConfigWord loss_word(int i)
{
    const LayerKind *kind = loss_at(i);
    ConfigWord word = kind ? kind->loss->word : (ConfigWord){0};
    if (kind) word.help = kind->help;
    return word;
}

const LayerKind *loss_kind(const Config *config)
{
    return loss_at(config->train.loss);
}

const LossInfo *loss_info(const Config *config)
{
    return loss_kind(config)->loss;
}

const char *loss_name(const Config *config)
{
    return loss_info(config)->word.word;
}

const ConfigWords layers_words[LAYERS_WORDS] = {{"train.loss", .word = loss_word},
                                                {"model.activation", .word = activation_word}};
