/* The description of an operation of a model (OpSpec), with its enums and structs (activations,
 * pools, padding, losses, rotary scalings, exchanges), and functions that compute with it. */
#ifndef WEFT_TENSOR_OP_SPEC_H
#define WEFT_TENSOR_OP_SPEC_H

#include "tensor/shape.h"

/* The constant of an operation: OP_DENSE and so on, from tensor/op_list.h. */
typedef int OpKind;

/* SPEC_INPUTS: largest number of inputs of an operation. SPEC_PARAMS: largest number of its
 * parameters and running statistics. LOSS_COLUMNS: numbers in a row of a loss's y. */
enum { SPEC_INPUTS = 8, SPEC_PARAMS = 4, LOSS_COLUMNS = 3 };

/* Facts about an activation, as bits. If no bit is set, its derivative is computed from its input,
 * and act(0) is 0. */
enum {
    /* the derivative is computed from the output */
    ACT_FROM_Y = 1,
    /* act(0) is not 0 */
    ACT_MOVES_ZERO = 2,
};
/* Activations, with their names in a configuration's list of layers, and their facts. gelu is the
 * tanh form. */
#define ACTIVATIONS(_)                                                                             \
    _(NONE, "", 0)                                                                                 \
    _(RELU, "relu", ACT_FROM_Y)                                                                    \
    _(RELU6, "relu6", ACT_FROM_Y)                                                                  \
    _(GELU, "gelu", 0)                                                                             \
    _(SILU, "silu", 0)                                                                             \
    _(TANH, "tanh", ACT_FROM_Y)                                                                    \
    _(SIGMOID, "sigmoid", ACT_FROM_Y | ACT_MOVES_ZERO)                                             \
    _(ELU, "elu", ACT_FROM_Y)                                                                      \
    _(LEAKY_RELU, "leaky_relu", ACT_FROM_Y)                                                        \
    _(SOFTPLUS, "softplus", ACT_MOVES_ZERO)                                                        \
    _(MISH, "mish", 0)                                                                             \
    _(HARDSWISH, "hardswish", 0)
#define ACT_ENTRY(ACT, name, facts) ACT_##ACT,
#define ACT_COUNT(ACT, name, facts) +1
typedef enum Act { ACTIVATIONS(ACT_ENTRY) } Act;
enum { ACTS = 0 ACTIVATIONS(ACT_COUNT) };
#undef ACT_ENTRY
#undef ACT_COUNT
/* Returns the name of an activation; "" for ACT_NONE. */
const char *act_name(Act act);
/* Returns the facts of an activation: ACT_FROM_Y, ACT_MOVES_ZERO, both or 0. */
unsigned act_facts(Act act);

/* Modes of a pool. POOL_AVG divides by the number of pixels that are in the image, without
 * padding. */
typedef enum PoolMode { POOL_MAX, POOL_AVG, POOL_GLOBAL_AVG } PoolMode;
/* Number that is stored instead of the position of the maximum in its window if relu has set the
 * maximum to 0. A window has fewer pixels than this. */
enum { POOL_NO_POSITION = 255 };

/* How the pixels of an upsampled image are computed: each copies the nearest pixel, or is
 * interpolated between the four nearest pixels. */
typedef enum UpsampleMode { UPSAMPLE_NEAREST, UPSAMPLE_BILINEAR } UpsampleMode;
/* largest factor by which a layer upsamples */
enum { UPSAMPLE_SCALE = 64 };

/* Values outside an image, like the modes of PyTorch's F.pad, with their names in a configuration.
 * zero: zeros; replicate: the nearest pixel; reflect: the image is mirrored at the centre of its
 * outermost pixels; circular: the image is repeated. */
#define PAD_MODES(_)                                                                               \
    _(ZERO, "zero")                                                                                \
    _(REPLICATE, "replicate")                                                                      \
    _(REFLECT, "reflect")                                                                          \
    _(CIRCULAR, "circular")
#define PAD_ENTRY(MODE, name) PAD_##MODE,
typedef enum PadMode { PAD_MODES(PAD_ENTRY) } PadMode;
#undef PAD_ENTRY
/* Rows and columns around an image. */
typedef struct Padding {
    /* number of rows above and below, and of columns left and right; a negative number cuts pixels
     * off, only with PAD_ZERO */
    int edge[4];
    /* mode of the rows and mode of the columns */
    PadMode mode[2];
} Padding;

/* A channel of an input, times a factor. input: index of the input; channel: index of the channel
 * in it. */
typedef struct ChannelTerm {
    int16_t input, channel;
    float factor;
} ChannelTerm;
/* largest number of terms of a ChannelSum */
enum { CHANNEL_TERMS = 2 };
/* A channel that is a constant plus channels of inputs: shift plus the sum of the terms. */
typedef struct ChannelSum {
    int terms;
    float shift;
    ChannelTerm term[CHANNEL_TERMS];
} ChannelSum;

/* Losses of one number, with the names of their layers. They are functions of e = x - target; value
 * and slope are 0 at e = 0. SQUARE: e^2. ABSOLUTE: |e|; its slope at 0 is taken as 0.
 * HUBER: e^2 / 2 up to |e| = delta, above that delta (|e| - delta / 2) (Huber 1964).
 * CHARBONNIER: sqrt(e^2 + eps^2) - eps (Charbonnier et al. 1994, with e in units of eps). */
#define POINT_LOSSES(_)                                                                            \
    _(SQUARE, "mse_loss")                                                                          \
    _(ABSOLUTE, "l1_loss")                                                                         \
    _(HUBER, "huber_loss")                                                                         \
    _(CHARBONNIER, "charbonnier_loss")
#define POINT_ENTRY(LOSS, layer) POINT_##LOSS,
#define POINT_COUNT(LOSS, layer) +1
typedef enum PointLoss { POINT_LOSSES(POINT_ENTRY) } PointLoss;
enum { POINT_LOSS_COUNT = 0 POINT_LOSSES(POINT_COUNT) };
#undef POINT_ENTRY
#undef POINT_COUNT

/* Losses that measure how a class's probabilities overlap with its pixels. */
typedef enum RegionLoss { REGION_DICE, REGION_IOU } RegionLoss;

/* largest number of classes of a loss with weights */
enum { CLASS_WEIGHTS_MOST = 256 };
/* Weights of the classes of a loss, finite and at least 0; count 0: all are 1. */
typedef struct ClassWeights {
    int count;
    float value[CLASS_WEIGHTS_MOST];
} ClassWeights;

/* How a bag combines the rows of the ids that a sample has in one field. */
typedef enum BagMode {
    /* sum of the rows; zeros if there are no ids */
    BAG_SUM,
    /* mean of the rows; zeros if there are no ids */
    BAG_MEAN,
    /* OpSpec.bag_ids rows side by side, filled up with zeros; more ids end the job (ERR_DATA) */
    BAG_CONCAT,
} BagMode;

/* Scalings of rotary angles for contexts longer than the context of the model's original training,
 * with their names in a configuration. rotary_speeds computes the angular speeds. */
#define ROTARY_SCALINGS(_)                                                                         \
    _(DEFAULT, "default")                                                                          \
    _(LINEAR, "linear")                                                                            \
    _(DYNAMIC, "dynamic")                                                                          \
    _(LLAMA3, "llama3")                                                                            \
    _(YARN, "yarn")
#define ROTARY_ENTRY(ROTARY, name) ROTARY_##ROTARY,
typedef enum RotaryType { ROTARY_SCALINGS(ROTARY_ENTRY) } RotaryType;
#undef ROTARY_ENTRY
/* Numbers of a rotary scaling; a number that is not given is 0. A pair is two elements of a head
 * that are rotated together. */
typedef struct RotaryScaling {
    RotaryType type;
    /* ratio of the longest context to the original context; at least 1 */
    float factor;
    /* dynamic, llama3, yarn: number of tokens of the original context */
    int original;
    /* llama3: bounds on the number of turns that a pair makes within the original context. The
     * speed of a pair below low_freq_factor is divided by `factor`; the speed of a pair above
     * high_freq_factor does not change. */
    float low_freq_factor, high_freq_factor;
    /* yarn: bounds on this number of turns; defaults 32 and 1 */
    float beta_fast, beta_slow;
    /* yarn: numbers from which the factor on cosines and sines is computed */
    float attention_factor, mscale, mscale_all_dim;
    /* yarn: true if the bounds are rounded to whole pairs */
    bool truncate;
} RotaryScaling;

/* largest number of anchors of a detector */
enum { ANCHORS_MOST = 32 };
/* The anchors of a detector, level after level. */
typedef struct Anchors {
    int count;
    /* width and height of each anchor, in pixels of the picture */
    float side[ANCHORS_MOST][2];
} Anchors;

/* How an exchange converts a tensor between undivided and divided layers of a tensor-parallel
 * group. Backward of ENTER does what forward of LEAVE does, and vice versa; backward of GATHER does
 * what forward of SCATTER does, and vice versa. */
typedef enum ExchangeKind {
    /* before divided layers; every rank has all of x: y is x; dx is the sum of dy over the ranks */
    EXCHANGE_ENTER,
    /* after divided layers: y is the sum of x over the ranks, plus w[C] if there is one; dx is
     * dy */
    EXCHANGE_LEAVE,
    /* before divided layers; x is a slice of the sequence: y is all of dim 1; dx is this rank's
     * slice of the sum of dy */
    EXCHANGE_ALL_GATHER,
    /* after divided layers: y is this rank's slice of dim 1 of the sum of x, plus w[C] if there is
     * one; dx is all of dy */
    EXCHANGE_REDUCE_SCATTER,
    /* before attention whose key heads are divided by columns, each among a block of neighbouring
     * ranks. A row of x has queries, and this rank's slices of a key head and of its values. A row
     * of y has the same queries, the whole key head, and its values. dx has the same gradients of
     * queries as dy, and this rank's slices of the sums of dy over the block. */
    EXCHANGE_KEYS,
} ExchangeKind;

/* The description of one operation: plain data that a layer kind fills and the backend completes
 * (layouts). The comment of each operation's OpInfo says what the operation computes. If `slice` is
 * set, this rank has only one slice of a tensor:
 * - embedding: a slice of the rows of w; y is -0 for tokens whose rows other ranks have
 * - softmax_loss: a slice of each row of logits; y is the loss over all logits
 * - positions, dropout: a slice of x
 * - exchange: a slice of the tensor that it divides or gathers
 *
 * If the backend's precision is bf16 or fp16, activations and their gradients have that type. Every
 * operation computes in fp32 with the values that it loads, and rounds the values that it stores;
 * attention also rounds the factors of its inner products. Parameters, dw, `saved`, the y of a
 * loss, float data and targets stay fp32. An operation whose input is fp32 data prefers the
 * backend's precision, and a reorder converts the data. */
typedef struct OpSpec {
    OpKind kind;
    /* conv2d, conv_transpose2d, pool: height and width of the kernel and of the stride, and padding
     * of rows and columns on each side */
    int kernel[2], stride[2], pad[2];
    /* conv_transpose2d: rows added at the bottom of y, and columns added at its right (PyTorch's
     * output_padding) */
    int output_pad[2];
    /* operation pad */
    Padding padding;
    /* conv2d, conv_transpose2d, group_norm: number of groups of channels */
    int groups;
    PoolMode pool;
    PointLoss point;
    RegionLoss region;
    /* weights of the classes, for losses with a label for each pixel */
    ClassWeights class_weights;
    /* focal_loss: gamma, the exponent of 1 - p; 0: cross-entropy */
    float focus;
    /* upsample, pixel_shuffle: number of rows of y for each row of x, and of columns of y for each
     * column of x */
    int scale;
    UpsampleMode upsample;
    /* upsample with UPSAMPLE_BILINEAR: true if the centres of the outermost pixels of x and y
     * coincide, false if the edges of the two images do */
    bool align_corners;
    /* activation that the operation applies to its output; ACT_NONE: none */
    Act act;
    /* operation activation: factor of the negative side, alpha of elu or slope of leaky_relu; at
     * least 0 */
    float act_factor;
    /* Activation whose derivative a dense operation includes in its dx[0]; ACT_NONE: none. Let the
     * dense operation A have a fused activation, and let the dense operation B read the output of
     * A. If x_act of B is that activation, dx[0] of B is the gradient of the activation's input. A
     * then has act_passed set, and gets this gradient as dy. */
    Act x_act;
    /* true: see x_act */
    bool act_passed;
    /* batch_norm, dense: true if x[1], which has the shape of y, is added before the activation */
    bool residual;
    /* batch_norm in training: true if statistics are over the micro-batches that all replicas
     * process at the same time. forward and backward_begin then also run for a micro-batch without
     * rows. */
    bool synced;
    /* POINT_HUBER: delta */
    float delta;
    /* eps: epsilon of norms and of POINT_CHARBONNIER. momentum: weight of the newest micro-batch in
     * batch_norm's running statistics (PyTorch's default is 0.1). */
    float eps, momentum;
    /* drop: probability with which dropout drops an element; smoothing: label smoothing of
     * losses */
    float drop, smoothing;
    /* yolo_loss: anchors of all inputs; each input has the same number of anchors */
    Anchors anchors;
    /* height and width of the pictures (yolo_loss) or of the image (layer tokens_to_pixels) */
    int image[2];
    /* layer detect. classes: number of classes; cell: side of a cell in pixels of the picture */
    int classes, cell;
    /* dropout: true if whole channels of (N,C,H,W) are dropped */
    bool drop_channels;
    /* dropout: hash of the node's name */
    uint64_t seed_name;
    /* attention: number of query heads */
    int heads;
    /* attention: number of heads of keys and of values, a divisor of heads; 0: equal to heads */
    int kv_heads;
    /* attention: base of the rotary angles; 0: 10000 */
    float rotary_base;
    /* attention: true if queries and keys are rotated by rotary angles */
    bool rotary;
    RotaryScaling rotary_scaling;
    /* attention: number of keys that a query attends to, the key at its own position and those
     * before it; 0: all of them */
    int window;
    /* attention: true if a query attends to all keys, also to those after its own position */
    bool bidirectional;
    TensorSlice slice;
    /* Sums that are cut into the same slices for every size of the tensor-parallel group. slices:
     * in dense, the sum over the inputs in forward (if slices_inputs is true) or the sum over the
     * outputs in dx (if it is false); in a loss, the sums over the classes; in an exchange, the
     * slices of the sum that it completes; in attention, the gradients of keys and values, which
     * are sums over query heads. token_slices: the gradients of parameters, which are sums over
     * slices of the sequence; if slices_inputs is true, only the gradient of the bias. */
    SumSlices slices, token_slices;
    /* dense: true if `slices` cuts the sum over the inputs */
    bool slices_inputs;
    ExchangeKind exchange;
    /* bag. bag: index of this bag among the model's bags; bag_fields: number of fields of the data
     * that it reads; bag_first: the first such field; bag_ids: number of rows of a field with
     * BAG_CONCAT. */
    int bag, bag_fields, bag_first, bag_ids;
    BagMode bag_mode;
    /* bag: floats in a row of its table; interaction, fm: floats in each of the vectors that are
     * side by side in the input */
    int row_width;
    /* bag: true if all its fields together count as one field */
    bool bag_together;
    /* true: no parameter, running statistic or table row of this operation changes, so
     * backward_weight is not run; false if only some of them are frozen */
    bool frozen;
    /* batch_norm: true if it normalises with its running statistics in training, too, and does not
     * change them */
    bool fixed_stats;
    /* true: the operation stores w in plain order, because another operation shares it */
    bool plain_weight;
    /* true: the parameters are shared with another node of the same kind and shapes, so their
     * stored order must not depend on need_dx */
    bool shared_weight;
    /* channel_sum: one entry for each channel of y, [sums]; borrowed from the graph */
    const ChannelSum *channel_sums;
    int sums;
    /* x_count: number of inputs; w_count: number of arrays in w, parameters first, then running
     * statistics */
    int x_count, w_count;
    /* need_dx[i] is true if the gradient of input i is needed; it is false for the data */
    bool need_dx[SPEC_INPUTS];
    /* true: a later operation also reads x[0], so the backward pass may run with OpRun.dx_add */
    bool x_shared;
    /* shapes of the parameters in plain order: conv2d OIHW, conv_transpose2d IOHW, dense out x in,
     * embedding V x C */
    Shape w[SPEC_PARAMS];
    /* inputs and output. x is copied from the operations that compute the inputs; the layer kind
     * sets y.shape, the backend the layout of y */
    Desc x[SPEC_INPUTS], y;
} OpSpec;

/* Returns the number of labels that a loss reads for a micro-batch: one for each pixel of
 * (N,C,H,W), else one for each row of x. */
static inline int64_t loss_labels(const OpSpec *spec)
{
    const Shape x = spec->x[0].shape;
    return shape_count(x) / x.dim[x.ndim == 4 ? 1 : x.ndim - 1];
}

/* Returns the constant of a point loss; 0: it has none. */
static inline float point_parameter(const OpSpec *spec)
{
    switch (spec->point) {
    case POINT_SQUARE:
    case POINT_ABSOLUTE:
        break;
    case POINT_HUBER:
        return spec->delta;
    case POINT_CHARBONNIER:
        return spec->eps;
    }
    return 0;
}

/* Returns how the tensor that an exchange sums or gathers is divided among the ranks that take
 * part. Its type is that of y. */
Slices exchange_slices(const OpSpec *spec);

/* Returns the number of heads of keys and of values of an attention. */
static inline int attention_kv_heads(const OpSpec *spec)
{
    return spec->kv_heads > 0 ? spec->kv_heads : spec->heads;
}

/* Returns the base of an attention's rotary angles: pair i of a head of width w is rotated by
 * position * base^(-2 i / w). */
static inline double attention_rotary_base(const OpSpec *spec)
{
    return spec->rotary_base > 0 ? (double)spec->rotary_base : 10000.0;
}

/* Writes the angular speeds of rotary embedding to speed[0 .. width / 2 - 1], for heads of that
 * width: pair i of a token at position t is rotated by t * speed[i]. length: number of tokens of
 * the sequence, which only the dynamic scaling uses. Returns the factor on cosines and sines.
 * Sources: linear, Chen et al. 2023; dynamic and yarn, Peng et al. 2023, section 3 and appendix A;
 * llama3, Grattafiori et al. 2024 with Meta's code. */
double rotary_speeds(const OpSpec *spec, int64_t width, int64_t length, double *speed);
/* Returns the number of pairs of a query and a key that it attends to, for attention over `length`
 * tokens. */
double attention_pairs(const OpSpec *spec, int64_t length);

/* Sets *y to the shape of x[0] with spec->padding. ERR_CONFIG: x[0] is too small for this padding;
 * the message begins with `name`. */
Status padding_shape(const OpSpec *spec, const char *name, Shape *y);
/* Returns the row (d = 0) or column (d = 1) of x[0] that row or column `at` of y copies; -1 if y is
 * 0 there. */
int64_t padding_source(const OpSpec *spec, int d, int64_t at);

/* Returns the spec of an operation that converts a tensor with layout and number format `from` to
 * `to`, of the same shape. No layer kind makes this operation; the planner inserts it. */
OpSpec reorder_spec(Desc from, Desc to);

#endif
