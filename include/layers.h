/* layers: the kinds of layer. A kind is one const table: attributes, shape rule, and parameters
 * with their initialisers. The shape rule fills an OpSpec, which describes the operation that a
 * backend computes. */
#ifndef WEFT_LAYERS_H
#define WEFT_LAYERS_H

#include "config.h"
#include "layers/onnx.h"
#include "tensor.h"

/* Initialisers of parameters. Layers that PyTorch also has use PyTorch's initialiser by default.
 * fan_in and fan_out are computed from the shape of the weight. */
typedef enum Init {
    /* not set: layer_infer_shapes fails with ERR_BUG */
    INIT_UNSET,
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

/* How a parameter is trained. */
typedef enum LayerParamUse {
    /* not set: layer_infer_shapes fails with ERR_BUG */
    USE_UNSET,
    /* trained, with weight decay */
    USE_DECAYED,
    /* trained, without weight decay: biases and norms */
    USE_UNDECAYED,
    /* trained, without weight decay. The parameter scales each channel after normalisation over the
     * batch, so its absolute value measures the channel's importance (Liu et al. 2017, "Network
     * slimming"). */
    USE_CHANNEL_SCALE,
    /* running statistic: not trained, no gradient */
    USE_STATISTIC,
} LayerParamUse;

/* A parameter or running statistic of a layer kind. */
typedef struct LayerParam {
    /* for example "weight" or "running_mean" */
    const char *name;
    Init init;
    /* INIT_NORMAL: standard deviation. INIT_UNIFORM, INIT_UNIFORM_FP16: if above 0, the fan_in to
     * use instead of the fan_in of the shape. */
    float scale;
    /* Returns a number that is added to the initial value of element i. The member may be NULL. */
    double (*add)(const OpSpec *spec, int64_t i);
    LayerParamUse use;
    /* layer_infer_shapes sets these from `use`. is_statistic: true if it is USE_STATISTIC; decay:
     * true if it is USE_DECAYED; channel_scale: true if it is USE_CHANNEL_SCALE. */
    bool is_statistic, decay, channel_scale;
} LayerParam;

/* How a layer's output channels depend on its input channels. Channels are dimension 1 of (N,C) and
 * (N,C,H,W), and the last dimension of (N,T,C). This decides which values of parameters are removed
 * together with a channel (model/units.h), and which layers model.widths can name. */
typedef enum LayerChannels {
    /* not set: layer_kind_check fails */
    CHANNELS_UNSET,
    /* The layer makes LayerSize.width new channels: rows of w[0] and elements of w[1]. Its input
     * channels are dimension 1 of w[0]. With OpSpec.groups, each group of output channels reads its
     * group of input channels. If the numbers of groups, inputs and outputs are equal (depthwise),
     * this value means the same as CHANNELS_KEEP. */
    CHANNELS_NEW,
    /* The layer keeps its input's channels, each by itself or in OpSpec.groups equal groups of
     * neighbours; its parameters have one element per channel. */
    CHANNELS_KEEP,
    /* channel i of the output combines channel i of all inputs, so these channels are pruned
     * together */
    CHANNELS_UNITE,
    /* the output has the channels of all inputs, one input after the other */
    CHANNELS_CONCAT,
    /* every element of a sample becomes a channel: an input channel becomes height x width
     * channels */
    CHANNELS_FLATTEN,
    /* channel i of the first half and channel i of the second half become channel i */
    CHANNELS_HALVES,
    /* neither input nor output channels can be pruned */
    CHANNELS_FIXED,
} LayerChannels;

/* The tables of a bag. TABLES_SHARED: one table for all fields; TABLES_EACH: one for each field. */
typedef enum TableUse { TABLES_SHARED, TABLES_EACH } TableUse;

/* Sizes and choices of a layer that are not in its OpSpec. Each attribute of a configured layer
 * sets one field of OpSpec or of LayerSize. */
typedef struct LayerSize {
    /* dense: number of outputs; convolutions, detect: number of output channels; embedding, fm,
     * interaction, numeric_embedding: numbers in a vector; bag: floats in a row */
    int64_t width;
    /* embedding: number of tokens; positions: number of positions (context); bag: number of rows of
     * each table, or 0 for a row for each id that occurs */
    int64_t rows;
    /* dense, convolutions, detect: true if the layer has a bias */
    bool bias;
    /* instance_norm: true if the layer has a weight and a bias */
    bool affine;
    /* initialiser of the weight, or of a bag's rows. A uniform initialiser also initialises the
     * bias; with any other, the bias begins at 0. */
    Init init;
    /* INIT_NORMAL: standard deviation; bag with INIT_UNIFORM: U(-init_std, init_std) */
    float init_std;
    /* bag: true if ids are hashed to numbers below vocab */
    bool hashed;
    /* bag: one table for all fields, or one for each */
    TableUse tables;
    /* bag. fields: number of fields of ids in a sample of the data; id_limit: all ids of the data
     * are below this number, 0: they have no bound. */
    int64_t fields;
    uint64_t id_limit;
} LayerSize;

/* The second input of a loss; the first is the logits. */
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
typedef enum LossResults {
    LOSS_RESULTS_UNSET,
    /* columns 1 and 2 are 0 */
    LOSS_RESULTS_NONE,
    /* column 1: number of logits that rank before the label's logit (larger, or equal with a lower
     * index), -1 without a label; column 2: class of the largest logit */
    LOSS_RESULTS_RANK,
    /* column 1: 0 if the sign of the logit predicts the label, else 1; column 2: the logit of label
     * 1 */
    LOSS_RESULTS_LOGIT,
    /* the parts of the loss for boxes (column 1) and for objects (column 2); the rest of the loss
     * is for classes */
    LOSS_RESULTS_PARTS,
} LossResults;

/* Values of LossInfo.outputs. OUTPUTS_PER_CLASS: one output for each class, for each token, or for
 * each number of the target. OUTPUTS_GRIDS: several grids, whose channels are for boxes, objects
 * and each class. */
enum { OUTPUTS_UNSET, OUTPUTS_PER_CLASS = -1, OUTPUTS_GRIDS = -2 };
/* Requirements of a loss on the model and the data, and the meaning of its results. */
typedef struct LossInfo {
    /* value of train.loss. word.help is taken from the layer kind; word.uses lists the keys of
     * section train that the loss uses. */
    ConfigWord word;
    LossReads reads;
    LossResults results;
    /* number of outputs of the model, or one of the constants OUTPUTS_... */
    int64_t outputs;
    /* largest number of classes that the data can have; 0 if there is no limit */
    int64_t classes;
} LossInfo;
/* Returns the largest k, 5 or 1, for which column 1 of the loss's results tells whether the label
 * is among the k likeliest classes; 0 if column 1 does not tell this. */
static inline int loss_top_k(const LossInfo *loss)
{
    return loss->results == LOSS_RESULTS_RANK ? 5 : loss->results == LOSS_RESULTS_LOGIT ? 1 : 0;
}

/* values of LayerKind.inputs for a number of inputs that is not fixed */
enum { INPUTS_TWO_OR_MORE = -1, INPUTS_ONE_OR_MORE = -2 };

typedef struct LayerKind LayerKind;
struct LayerKind {
    /* name in the configuration, for example "conv2d" */
    const char *name;
    OpKind op;
    /* NULL-terminated names of the accepted attributes (see layer_set_attr); may be NULL */
    const char *const *attrs;
    /* number of inputs, or one of the constants INPUTS_... */
    int inputs;
    /* must not be CHANNELS_UNSET */
    LayerChannels channels;
    /* help text, one line */
    const char *help;
    /* Sets defaults that are not 0. The member may be NULL. */
    void (*defaults)(OpSpec *spec, LayerSize *size);
    /* Returns the kind of a layer that must be inserted before this layer, and moves from spec to
     * *padding the padding that the inserted layer will do. Returns NULL if no layer must be
     * inserted. Called once, after the attributes are set. The member is NULL if no layer is ever
     * inserted. */
    const LayerKind *(*inserted_before)(OpSpec *spec, Padding *padding);
    /* The shape rule: sets spec->y.shape, spec->w[], spec->w_count and param[] from the shapes of
     * spec->x and from size. ERR_CONFIG: the shapes do not fit; the message has the shapes that the
     * layer got and needs, and the caller adds file and line. */
    Status (*infer)(OpSpec *spec, const LayerSize *size, LayerParam param[SPEC_PARAMS]);
    /* Adds the layer's ONNX nodes for evaluation (layers/onnx.h). The member is NULL if a model
     * with this layer cannot be exported. */
    OnnxValue (*onnx)(const OnnxLayer *layer);
    /* requirements of a loss; NULL if the layer is no loss */
    const LossInfo *loss;
};

/* Returns kind i, counted from 0, or NULL after the last kind. The first kinds are those listed in
 * kinds.c; the others are operations that are layers without a file of their own
 * (OpInfo.layer_inputs). */
const LayerKind *layer_kind_at(int i);
/* Returns the kind of that name, or NULL. */
const LayerKind *layer_kind(const char *name);
/* The kind that exchanges data between the ranks of a tensor-parallel group. graph_split inserts
 * layers of this kind and sets their shapes; it cannot be configured. */
extern const LayerKind layer_exchange;
/* The kind that adds channels of several layers. Rollouts, and models that read only some channels,
 * insert layers of this kind and set their sums; it cannot be configured. */
extern const LayerKind layer_channel_sum;

/* Returns the layer kind of the loss that train.loss selects. */
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

/* Checks the table of a kind. ERR_BUG, naming the kind: the table is incomplete or contradicts the
 * kind's operation. */
Status layer_kind_check(const LayerKind *kind);
/* Checks the tables of all kinds. Also checks that the table in attr.c has each of their
 * attributes, with a type, an effect (AttrEffect), and words or a range if the type needs them.
 * ERR_BUG: something is missing or wrong. */
Status layers_check(void);

/* Begins a layer of this kind: sets the operation and the defaults in *spec and *size. Call it
 * before attributes and inputs are set. ERR_BUG: the kind's table is incomplete. */
Status layer_begin(const LayerKind *kind, OpSpec *spec, LayerSize *size);
/* Clears the results of the shape rule, and calls kind->infer. ERR_BUG names a result that the
 * shape rule did not set. */
Status layer_infer_shapes(const LayerKind *kind, OpSpec *spec, const LayerSize *size,
                          LayerParam param[SPEC_PARAMS]);
/* Sets one attribute from text ("kernel" = "3" or "3,5", "channels" = "32", "bias" = "false").
 * ERR_CONFIG, without file and line: the kind has no such attribute (the message suggests one), or
 * the value has a wrong type or is out of range. */
Status layer_set_attr(const LayerKind *kind, OpSpec *spec, LayerSize *size, const char *key,
                      const char *value);
/* bytes of an attribute's value as text, with a final zero */
enum { ATTR_VALUE = 64 };
/* An attribute with different values in two layers. name: the attribute, borrowed. value: its
 * values as text: "4", "true", "[3, 5]". */
typedef struct AttrDifference {
    const char *name;
    char value[2][ATTR_VALUE];
} AttrDifference;
/* Compares two layers of one kind after layer_infer_shapes. Returns true and sets *difference if an
 * attribute makes them compute different outputs from the same tensors. It does not compare
 * attributes that only training uses, nor attributes that change the shape of a tensor. */
bool layer_find_difference(const LayerKind *kind, const OpSpec *const spec[2],
                           const LayerSize *const size[2], AttrDifference *difference);

/* Computes the initial values of an id's row in a sparse table, `width` floats: a pure function of
 * (seed, table, id, column). table: hash_text of the table's name. INIT_UNIFORM: U(-scale, scale);
 * normal initialisers: N(0, scale^2). */
void layer_row_init(Init init, float scale, uint64_t seed, uint64_t table, uint64_t id, int width,
                    float *out);

/* Computes the initial values of the layer's parameter i into `out`, in plain order with shape
 * spec->w[i]. name: full name of the parameter; name and seed determine the random numbers. */
void layer_param_init(const LayerParam *param, const OpSpec *spec, int i, const char *name,
                      uint64_t seed, float *out);

#endif
