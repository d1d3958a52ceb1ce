/* layers: the kinds of layer. A kind is one const table: attributes, shape rule, and parameters
 * with their initialisers. The shape rule fills an OpSpec, the request for an operation, which a
 * backend computes. */
#ifndef WEFT_LAYERS_H
#define WEFT_LAYERS_H

#include "config.h"
#include "layers/onnx.h"
#include "tensor.h"

/* Initialisers. A layer that PyTorch has begins with PyTorch's initialiser by default. fan_in and
 * fan_out are computed from the shape of the weight. */
typedef enum Init {
    /* not set: layer_infer fails with ERR_BUG */
    INIT_UNSET,
    /* constants */
    INIT_ZERO,
    INIT_ONE,
    /* U(-1/sqrt(fan_in), +1/sqrt(fan_in)): weight and bias of PyTorch's Linear and Conv2d */
    INIT_UNIFORM,
    /* INIT_UNIFORM, rounded to fp16 */
    INIT_UNIFORM_FP16,
    /* N(0, 2/fan_out) (He et al. 2015): convolutions of torchvision's ResNet and MobileNetV2 */
    INIT_HE_NORMAL,
    /* N(0, scale^2) */
    INIT_NORMAL,
    INITS
} Init;

/* How a parameter is trained; USE_UNSET is refused. */
typedef enum LayerParamUse {
    USE_UNSET,
    /* trained, with weight decay */
    USE_DECAYED,
    /* trained, without weight decay: biases and norms */
    USE_UNDECAYED,
    /* trained, without weight decay; the parameter scales each channel after normalisation over the
     * batch, so that its absolute value measures the channel's importance (Liu et al. 2017,
     * "Network slimming") */
    USE_CHANNEL_SCALE,
    /* running statistic: not trained, no gradient */
    USE_STATISTIC,
} LayerParamUse;

typedef struct LayerParam {
    /* for example "weight" or "running_mean" */
    const char *name;
    Init init;
    /* INIT_NORMAL: standard deviation. INIT_UNIFORM and INIT_UNIFORM_FP16: if above 0, the fan_in
     * to use instead of the shape's. */
    float scale;
    /* returns a number that is added to the initial value of element i; may be NULL */
    double (*add)(const OpSpec *spec, int64_t i);
    LayerParamUse use;
    /* set by layer_infer. buffer: true if use is USE_STATISTIC; decay: if it is USE_DECAYED;
     * channel_scale: if it is USE_CHANNEL_SCALE. */
    bool buffer, decay, channel_scale;
} LayerParam;

/* How a layer's output channels depend on its input channels. Channels are dimension 1 of (N,C) and
 * (N,C,H,W), and the last dimension of (N,T,C). This value decides which values of parameters are
 * removed with a channel (model/units.h), and which layers model.widths can name. */
typedef enum LayerChannels {
    /* not set: an error at start */
    CHANNELS_UNSET,
    /* The layer has LayerSize.width new channels: rows of w[0] and elements of w[1]. Its input
     * channels are dimension 1 of w[0]. With OpSpec.groups, each group of outputs reads its group
     * of inputs. If the numbers of groups, inputs and outputs are equal (depthwise), the layer
     * keeps its input's channels. */
    CHANNELS_NEW,
    /* The layer keeps its input's channels, each by itself or in OpSpec.groups equal groups of
     * neighbours; its parameters have one element per channel. */
    CHANNELS_KEEP,
    /* channel i of the output combines channel i of all inputs, so these channels are pruned
     * together */
    CHANNELS_UNITE,
    /* the output has the channels of all inputs, one input after the other */
    CHANNELS_CONCAT,
    /* every element of a sample becomes a channel: height x width of them for each input channel */
    CHANNELS_FLATTEN,
    /* channel i of the first half and channel i of the second half become channel i */
    CHANNELS_HALVES,
    /* neither input nor output channels can be pruned */
    CHANNELS_FIXED,
} LayerChannels;

/* The tables of a bag: one for all fields, or one for each field. */
typedef enum TableUse { TABLES_SHARED, TABLES_EACH } TableUse;

/* Sizes and choices of a layer that are not in its OpSpec. Each attribute of a configured layer
 * sets one field of OpSpec or of LayerSize. */
typedef struct LayerSize {
    /* dense: number of outputs; convolutions, detect: number of output channels; embedding, fm,
     * interaction, numeric_embedding: length of a vector; bag: floats per row */
    int64_t width;
    /* embedding: number of tokens; positions: number of rows of its table (context); bag: number of
     * rows of each table, or 0 for a row for every id */
    int64_t vocab;
    /* true: the layer (dense, convolutions, detect) has a bias */
    bool bias;
    /* true: instance_norm has a weight and a bias */
    bool affine;
    /* initialiser of the weight, or of a bag's rows. A uniform initialiser is also that of the
     * bias; otherwise the bias begins at 0. */
    Init init;
    /* INIT_NORMAL: standard deviation; bag with INIT_UNIFORM: U(-init_std, init_std) */
    float init_std;
    /* true: a bag hashes ids to numbers below vocab */
    bool hashed;
    /* bag: one table for all fields, or one for each */
    TableUse tables;
    /* bag: facts about the data. fields: number of fields of ids in a sample; id_rows: all ids are
     * below it; 0: ids have no bound */
    int64_t fields;
    uint64_t id_rows;
} LayerSize;

/* The second input of a loss, after the logits. */
typedef enum LossReads {
    LOSS_READS_UNSET,
    /* labels that are classes */
    LOSS_READS_CLASSES,
    /* labels that are classes or tokens */
    LOSS_READS_TOKENS,
    /* targets that are numbers */
    LOSS_READS_TARGETS,
    /* boxes with classes */
    LOSS_READS_BOXES,
} LossReads;

/* The meaning of columns 1 and 2 of a loss's results; column 0 is the loss. */
typedef enum LossColumns {
    LOSS_COLUMNS_UNSET,
    /* both columns are 0 */
    LOSS_COLUMNS_NONE,
    /* column 1: number of logits above the label's, -1 without a label; column 2: class of the
     * largest logit */
    LOSS_COLUMNS_BEST,
    /* column 1: 0 if the sign of the logit predicts the label, else 1; column 2: the logit of label
     * 1 */
    LOSS_COLUMNS_LOGIT,
    /* the parts of the loss for boxes (column 1) and for objects (column 2); the rest of the loss
     * is for classes */
    LOSS_COLUMNS_PARTS,
} LossColumns;

/* OUTPUTS_GRIDS: several grids with channels for boxes, objects and each class */
enum { OUTPUTS_UNSET, OUTPUTS_PER_CLASS = -1, OUTPUTS_GRIDS = -2 };
/* Requirements of a loss on the model and the data, and the meaning of its results. */
typedef struct LossInfo {
    /* value of train.loss. `help` is taken from the layer; `uses` lists the keys of section train
     * that the loss uses; label_smoothing becomes OpSpec.smoothing. */
    ConfigWord word;
    LossReads reads;
    LossColumns columns;
    /* number of outputs of the model; or OUTPUTS_PER_CLASS: one for each class, for each token, or
     * for each number of the target; or OUTPUTS_GRIDS */
    int64_t outputs;
    /* largest number of classes that the data can have; 0 if there is no limit */
    int64_t classes;
} LossInfo;
/* Returns the largest k, 5 or 1, for which column 1 of the results tells whether the label is among
 * the k best classes; 0: it does not tell this for any k. */
static inline int loss_top_k(const LossInfo *loss)
{
    return loss->columns == LOSS_COLUMNS_BEST ? 5 : loss->columns == LOSS_COLUMNS_LOGIT ? 1 : 0;
}

/* numbers of inputs that are not fixed */
enum { INPUTS_TWO_OR_MORE = -1, INPUTS_ONE_OR_MORE = -2 };

typedef struct LayerKind LayerKind;
struct LayerKind {
    /* name in the configuration, for example "conv2d" */
    const char *name;
    OpKind op;
    /* NULL-terminated names of the accepted attributes (see layer_set_attr); may be NULL */
    const char *const *attrs;
    /* number of inputs, or one of the constants above */
    int inputs;
    /* CHANNELS_UNSET is refused */
    LayerChannels channels;
    /* help text, one line */
    const char *help;
    /* sets non-zero defaults; may be NULL */
    void (*defaults)(OpSpec *spec, LayerSize *size);
    /* Returns the kind of a layer that must be inserted before this layer, or NULL for none; moves
     * from spec to *padding the padding that the inserted layer will do. Called once, after the
     * attributes are set. The field is NULL if no layer is ever inserted. */
    const LayerKind *(*before)(OpSpec *spec, Padding *padding);
    /* The shape rule: sets y.shape, w[], w_count and param[] from the shapes of spec->x and from
     * size. If shapes do not fit, fails with ERR_CONFIG and a message with the shapes that the
     * layer got and needs; the caller adds file and line. */
    Status (*infer)(OpSpec *spec, const LayerSize *size, LayerParam param[SPEC_PARAMS]);
    /* Adds the layer's ONNX nodes for evaluation (layers/onnx.h). NULL if a model with this layer
     * cannot be exported. */
    OnnxValue (*onnx)(const OnnxLayer *layer);
    /* NULL if the layer is no loss */
    const LossInfo *loss;
};

/* Returns kind i, counted from 0, or NULL after the last: first the kinds listed in kinds.c, then
 * the operations that are layers without a file (OpInfo.layer_inputs). */
const LayerKind *layer_kind_at(int i);
/* Returns the kind of that name, or NULL. */
const LayerKind *layer_kind(const char *name);
/* The exchange between the ranks of a tensor-parallel group. graph_split inserts this layer and
 * sets its shapes; it cannot be configured. */
extern const LayerKind layer_exchange;
/* Sums of channels of several layers. Rollouts, and models that read only some channels, insert
 * this layer and set its sums; it cannot be configured. */
extern const LayerKind layer_channel_sum;

/* Returns the layer of the loss that train.loss selects. */
const LayerKind *loss_kind(const Config *config);
/* Returns loss_kind(config)->loss. */
const LossInfo *loss_info(const Config *config);
/* Returns the value of train.loss, for example "mse". */
const char *loss_name(const Config *config);
/* Returns the name of the layer kind that model.activation selects, for example "tanh". */
const char *activation_layer(const Config *config);
/* The words of train.loss and of model.activation, for config_use_words. */
enum { LAYERS_WORDS = 2 };
extern const ConfigWords layers_words[LAYERS_WORDS];

/* ERR_BUG, naming the kind, if its table is incomplete or contradicts its operation. */
Status layer_kind_check(const LayerKind *kind);
/* Checks the tables of all kinds, and that the table in attr.c has each of their attributes, with a
 * type, an effect (AttrEffect), and words or a range if the type needs them. ERR_BUG. */
Status layers_check(void);

/* Starts a layer of this kind: sets its operation and its defaults, before attributes and inputs.
 * ERR_BUG if the kind's table is incomplete. */
Status layer_begin(const LayerKind *kind, OpSpec *spec, LayerSize *size);
/* Runs kind->infer on cleared results. ERR_BUG names a result that the shape rule did not set. */
Status layer_infer(const LayerKind *kind, OpSpec *spec, const LayerSize *size,
                   LayerParam param[SPEC_PARAMS]);
/* Sets one attribute from text ("kernel" = "3" or "3,5", "channels" = "32", "bias" = "false").
 * ERR_CONFIG, without file and line, for an unknown attribute (the message suggests a known one), a
 * wrong type or range. */
Status layer_set_attr(const LayerKind *kind, OpSpec *spec, LayerSize *size, const char *key,
                      const char *value);
/* An attribute with different values in two layers. Values are texts: "4", "true", "[3, 5]". */
enum { ATTR_VALUE = 64 };
typedef struct AttrDifference {
    /* borrowed */
    const char *name;
    char value[2][ATTR_VALUE];
} AttrDifference;
/* Compares two layers of one kind after layer_infer. Returns true, and sets *difference, if an
 * attribute makes them compute different outputs from the same tensors. Attributes that only
 * training uses, and attributes that change the shape of a tensor, are not compared. */
bool layer_attr_differs(const LayerKind *kind, const OpSpec *const spec[2],
                        const LayerSize *const size[2], AttrDifference *difference);

/* Computes the initial values of an id's row in a sparse table: a pure function of (seed, table,
 * id, column). table: hash_text of the table's name. INIT_UNIFORM: U(-scale, scale); normal
 * initialisers: N(0, scale^2). */
void layer_row_init(Init init, float scale, uint64_t seed, uint64_t table, uint64_t id, int width,
                    float *out);

/* Computes the initial values of parameter i into out, in plain order with shape spec->w[i]. name:
 * the parameter's full name; name and seed determine the random numbers. */
void layer_param_init(const LayerParam *param, const OpSpec *spec, int i, const char *name,
                      uint64_t seed, float *out);

#endif
