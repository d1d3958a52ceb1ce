/* layers: what kinds of layer there are. A kind is one const table in a file of its own:
 * attributes, shape rule, parameters with their initialisers. Running it is a backend's Op on the
 * OpSpec that the kind fills. */
#ifndef WEFT_LAYERS_H
#define WEFT_LAYERS_H

#include "config.h"
#include "layers/onnx.h"
#include "tensor.h"

/* Initialisers, PyTorch's defaults where it has the layer. fan is taken from the shape.
 * INIT_UNIFORM: U(-1/sqrt(fan_in), +1/sqrt(fan_in)) (PyTorch's Linear and Conv2d, weight and bias)
 * INIT_HE_NORMAL: N(0, 2/fan_out) (He et al. 2015; torchvision's ResNet and MobileNetV2
 * convolutions) INIT_NORMAL: N(0, scale^2). INIT_ZERO, INIT_ONE. */
typedef enum Init { INIT_ZERO, INIT_ONE, INIT_UNIFORM, INIT_HE_NORMAL, INIT_NORMAL } Init;

typedef struct LayerParam {
    /* "weight", "bias", "running_mean" */
    const char *name;
    Init init;
    /* INIT_NORMAL's deviation; INIT_UNIFORM: fan_in if > 0 */
    float scale;
    /* running statistic: not trained, no gradient */
    bool buffer;
    /* weight decay applies (not on biases and norms) */
    bool decay;
    /* it multiplies each channel by itself, once that is normalised over the batch: how large it is
     * says what the channel is worth (Liu et al. 2017, "Network slimming") */
    bool channel_scale;
} LayerParam;

/* What a layer does with channels: dimension 1 of (N,C) and (N,C,H,W), the last one of (N,T,C).
 * From it follows which parameters go when a channel is taken out (model/units.h), and where
 * model.widths may say another number. */
typedef enum LayerChannels {
    /* a row that does not say */
    CHANNELS_UNSAID,
    /* Opens LayerSize.width channels: rows of w[0] and elements of w[1]. Those that it reads are
     * dimension 1 of w[0]. With OpSpec.groups, each group of outputs reads its group of inputs;
     * with as many groups as inputs and outputs it keeps its input's channels. */
    CHANNELS_OPEN,
    /* Keeps its input's, each by itself or in OpSpec.groups equal groups of neighbours; its
     * parameters have an element for each. */
    CHANNELS_KEEP,
    /* Keeps those of several inputs, which thereby are the same ones. */
    CHANNELS_UNITE,
    /* Its inputs' side by side. */
    CHANNELS_CONCAT,
    /* Each becomes as many as there are numbers of it in a sample. */
    CHANNELS_FLATTEN,
    /* Channel i of the first half and of the second become channel i. */
    CHANNELS_HALVES,
    /* None of those that it reads can go, nor of its own. */
    CHANNELS_WHOLE,
} LayerChannels;

/* Whether a bag's fields have one table together, or a table each. */
typedef enum TableUse { TABLES_SHARED, TABLES_EACH } TableUse;

/* An attribute a layer takes in a config's layers list. It writes one field of OpSpec, or of
 * LayerSize. */
typedef struct LayerSize {
    /* dense: outputs; conv2d: channels out; embedding: C; bag: numbers of a row */
    int64_t width;
    /* embedding: V; positions: rows of its table (context); bag: of each table, 0: any id */
    int64_t vocab;
    /* dense, conv2d */
    bool bias;
    /* dense, conv2d: of the weight; the bias is 0 unless it is INIT_UNIFORM */
    Init init;
    /* INIT_NORMAL's deviation; bag's INIT_UNIFORM: U(-init_std, init_std) */
    float init_std;
    /* bag: an id is brought below vocab by a hash */
    bool hashed;
    /* bag */
    TableUse tables;
    /* of the data, for whom reads ids: fields of a sample; ids are below id_rows, 0: any */
    int64_t fields;
    uint64_t id_rows;
} LayerSize;

typedef struct LayerKind {
    /* as in the config: "conv2d" */
    const char *name;
    OpKind op;
    /* NULL-terminated names of the attributes it takes (see layer_attr); NULL: none */
    const char *const *attrs;
    /* how many; -1: two or more */
    int inputs;
    LayerChannels channels;
    /* one line */
    const char *help;
    /* NULL: all are 0 */
    void (*defaults)(OpSpec *spec, LayerSize *size);
    /* From spec->x shapes and size: y.shape, w[], w_count, param[]. Shapes that do not fit are
     * fail(ERR_CONFIG, what the layer got and what it needs), without a place: the caller adds
     * it. */
    Status (*infer)(OpSpec *spec, const LayerSize *size, LayerParam param[SPEC_PARAMS]);
    /* Its nodes in ONNX, of evaluation: layers/onnx.h. NULL: it has none, and a model with it is
     * not exported. */
    OnnxValue (*onnx)(const OnnxLayer *layer);
} LayerKind;

/* All kinds, i from 0: those of the list in kinds.c, then the operations that are layers by
 * themselves (OpInfo.layer_inputs). NULL behind the last. */
const LayerKind *layer_kind_at(int i);
/* NULL if there is none */
const LayerKind *layer_kind(const char *name);
/* Between the ranks of a tensor group: graph_split puts it in, no configuration asks for it, and it
 * has no shape rule. */
extern const LayerKind layer_exchange;

/* The words of train.loss, W(constant, "word", keys of train that the loss has a use for). */
#define LOSS_WORDS(W)                                                                              \
    W(LOSS_SOFTMAX, "softmax", "label_smoothing")                                                  \
    W(LOSS_MSE, "mse", NULL)                                                                       \
    W(LOSS_SIGMOID, "sigmoid", "auc")
typedef enum LossName { LOSS_WORDS(LIST_CONSTANT) } LossName;

/* What a loss asks of a model and of its data, and what its columns say behind the loss itself; its
 * operation says what it reads (OpInfo). A row for each LossName. */
typedef struct LossInfo {
    /* the layer that it is */
    const char *layer;
    /* outputs that the model ends in; 0: one for each class, token or target number */
    int64_t outputs;
    /* classes that the data must not exceed; 0: there may be any number */
    int64_t classes;
    /* labels may be tokens */
    bool of_tokens;
    /* the data's targets are numbers, not labels */
    bool of_targets;
    /* column 1 tells whether the label is among the so many best classes: 0: it does not, 1, 5 */
    int top;
    /* column 2 is the class that is best */
    bool best_class;
    /* column 2 is the logit of label 1 */
    bool logit;
    /* OpSpec.smoothing */
    bool smooths;
} LossInfo;
const LossInfo *loss_info(const Config *config);
/* as in the configuration: "mse" */
const char *loss_name(const Config *config);
enum { LAYERS_WORDS = 1 };
extern const ConfigWords layers_words[LAYERS_WORDS];

/* A layer of this kind: its operation and its defaults, before attributes and inputs. ERR_BUG where
 * the kind's row lacks what every row says. */
Status layer_begin(const LayerKind *kind, OpSpec *spec, LayerSize *size);
/* kind->infer, from nothing. ERR_BUG names what the shape rule should have set. */
Status layer_infer(const LayerKind *kind, OpSpec *spec, const LayerSize *size,
                   LayerParam param[SPEC_PARAMS]);
/* Sets one attribute from text ("kernel" = "3" or "3,5", "channels" = "32", "bias" = "false").
 * ERR_CONFIG, without place, for an unknown one (names the nearest), a wrong type or range. */
Status layer_attr(const LayerKind *kind, OpSpec *spec, LayerSize *size, const char *key,
                  const char *value);

/* First values of the row of an id in a sparse table: a pure function of (seed, table, id, column).
 * table: hash_text of its name. INIT_UNIFORM: U(-scale, scale); normal ones: N(0, scale^2). */
void layer_row_init(Init init, float scale, uint64_t seed, uint64_t table, uint64_t id, int width,
                    float *out);

/* Fills out[] (shape w, plain order) for one parameter. name: its full name; with seed it keys the
 * numbers. */
void layer_param_init(const LayerParam *param, const OpSpec *spec, int i, const char *name,
                      uint64_t seed, float *out);

#endif
