/* The request for an operation (OpSpec), its enums and structs (activations, pools, padding,
 * losses, rotary scalings, exchanges), and functions of a request. */
#ifndef WEFT_TENSOR_OP_SPEC_H
#define WEFT_TENSOR_OP_SPEC_H

#include "tensor/shape.h"

/* An operation's constant: OP_DENSE and so on, from tensor/op_list.h. */
typedef int OpKind;

enum { SPEC_INPUTS = 8, SPEC_PARAMS = 4, LOSS_COLUMNS = 3 };

/* Facts about an activation, as bits. If no bit is set, its derivative is computed from its input,
 * and act(0) is 0. */
enum {
    /* the derivative is computed from the output */
    ACT_FROM_Y = 1,
    /* act(0) is not 0 */
    ACT_MOVES_ZERO = 2,
};
/* Activations, with their names in a configuration's list of layers, and facts. gelu is the tanh
 * form. */
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
const char *act_name(Act act);
/* Returns the facts of an activation: ACT_FROM_Y, ACT_MOVES_ZERO, both or 0. */
unsigned act_facts(Act act);

/* POOL_AVG divides by the number of real pixels, without padding. */
typedef enum PoolMode { POOL_MAX, POOL_AVG, POOL_GLOBAL_AVG } PoolMode;
/* Stored in place of the maximum's position in its window if relu set the maximum to 0. A window
 * has fewer pixels than this. */
enum { POOL_CUT = 255 };

/* Pixels of an upsampled image: copies of the nearest pixel, or interpolated between the four
 * nearest. */
typedef enum UpsampleMode { UPSAMPLE_NEAREST, UPSAMPLE_BILINEAR } UpsampleMode;
/* largest factor by which a layer upsamples */
enum { UPSAMPLE_SCALE = 64 };

/* Values outside an image, as the modes of PyTorch's F.pad, with their names in a configuration:
 * zeros, the nearest pixel, the image mirrored at the centre of its outermost pixels, or the image
 * repeated. */
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
    /* rows above and below, columns left and right; a negative number cuts pixels off, with
     * PAD_ZERO only */
    int edge[4];
    /* mode of rows and mode of columns */
    PadMode mode[2];
} Padding;

/* A channel of an input, times a factor. */
typedef struct ChannelTerm {
    int16_t input, channel;
    float factor;
} ChannelTerm;
enum { CHANNEL_TERMS = 2 };
/* A channel that is a constant plus channels of inputs: shift + sum of the terms. */
typedef struct ChannelSum {
    int terms;
    float shift;
    ChannelTerm term[CHANNEL_TERMS];
} ChannelSum;

/* Losses of one number, functions of e = x - target whose value and slope are 0 at e = 0, with the
 * names of their layers. SQUARE: e^2. ABSOLUTE: |e|; its slope at 0 is taken for 0. HUBER: e^2 / 2
 * up to |e| = delta, beyond it delta (|e| - delta / 2) (Huber 1964). CHARBONNIER: sqrt(e^2 + eps^2)
 * - eps (Charbonnier et al. 1994, with e in units of eps). */
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

/* Weights of the classes of a loss, finite and at least 0; count 0: all 1. */
enum { CLASS_WEIGHTS_MOST = 256 };
typedef struct ClassWeights {
    int count;
    float value[CLASS_WEIGHTS_MOST];
} ClassWeights;

/* How a bag combines the rows of the ids that a sample has in one field. */
typedef enum BagMode {
    /* sum of the rows; 0 without ids */
    BAG_SUM,
    /* mean of the rows; 0 without ids */
    BAG_MEAN,
    /* bag_ids rows side by side, filled up with 0; more ids end the job (ERR_DATA) */
    BAG_CONCAT,
} BagMode;

/* Scalings of rotary angles for contexts longer than the model's original one, with their names in
 * a configuration. rotary_speeds computes the angular speeds. */
#define ROTARY_SCALINGS(_)                                                                         \
    _(DEFAULT, "default")                                                                          \
    _(LINEAR, "linear")                                                                            \
    _(DYNAMIC, "dynamic")                                                                          \
    _(LLAMA3, "llama3")                                                                            \
    _(YARN, "yarn")
#define ROTARY_ENTRY(ROTARY, name) ROTARY_##ROTARY,
typedef enum RotaryType { ROTARY_SCALINGS(ROTARY_ENTRY) } RotaryType;
#undef ROTARY_ENTRY
/* Numbers of a rotary scaling; 0: not given. */
typedef struct RotaryScaling {
    RotaryType type;
    /* ratio of the longest context to the original one; at least 1 */
    float factor;
    /* dynamic, llama3, yarn: tokens of the original context */
    int original;
    /* llama3: bounds, in turns of a pair within the original context: below the first, a pair's
     * speed is divided by `factor`; above the second, it is unchanged */
    float low_freq_factor, high_freq_factor;
    /* yarn: bounds in turns (defaults 32 and 1) */
    float beta_fast, beta_slow;
    /* yarn: these give the factor on cosines and sines */
    float attention_factor, mscale, mscale_all_dim;
    /* true (yarn): bounds are rounded to whole pairs */
    bool truncate;
} RotaryScaling;

/* Widths and heights of a detector's anchors, in pixels of the picture, level after level. */
enum { ANCHORS_MOST = 32 };
typedef struct Anchors {
    int count;
    float side[ANCHORS_MOST][2];
} Anchors;

/* How an exchange converts a tensor between whole and divided layers of a tensor group. Backward of
 * ENTER does what forward of LEAVE does, and vice versa; GATHER and SCATTER are such a pair,
 * too. */
typedef enum ExchangeKind {
    /* before divided layers, x is whole: y is x; dx is the sum of dy over the ranks */
    EXCHANGE_ENTER,
    /* after divided layers: y is the sum of x over the ranks (+ w[C]); dx is dy */
    EXCHANGE_LEAVE,
    /* before divided layers, x is a slice of the sequence: y is all of dim 1; dx is this rank's
     * slice of the sum of dy */
    EXCHANGE_GATHER,
    /* after divided layers: y is this rank's slice of dim 1 of the sum of x (+ w[C]); dx is all of
     * dy */
    EXCHANGE_SCATTER,
    /* before attention whose key heads are each divided by columns among a block of neighbouring
     * ranks. A row of x is queries and this rank's slices of a key head and of its values, a row of
     * y the same queries and the whole key head and values. dx has the same queries' gradients as
     * dy, and this rank's slices of the sums of dy over the block */
    EXCHANGE_KEYS,
} ExchangeKind;

/* The request for one operation: plain data, filled by a layer kind and completed by the backend
 * (layouts). The comment of each operation's OpInfo says what the operation computes. If `slice` is
 * set, this rank has one slice of a tensor:
 * - embedding: of the rows of w; y is -0 for tokens whose rows other ranks have
 * - softmax_loss: of each row of logits; y is the loss over all logits
 * - positions, dropout: of x
 * - exchange: of the tensor that it divides or gathers
 *
 * If the backend's precision is bf16 or fp16, activations and their gradients have that type; every
 * operation computes in fp32 on what it loads and rounds what it stores, and attention also rounds
 * the factors of its inner products. Parameters, dw, `saved`, a loss's y, float data and targets
 * stay fp32. An operation whose input is fp32 data prefers the backend's precision, and a reorder
 * converts the data. */
typedef struct OpSpec {
    OpKind kind;
    /* conv2d, conv_transpose2d, pool: height, width */
    int kernel[2], stride[2], pad[2];
    /* conv_transpose2d: rows added at the bottom of y, and columns added at its right (PyTorch's
     * output_padding) */
    int output_pad[2];
    /* pad */
    Padding padding;
    /* conv2d, conv_transpose2d, group_norm: number of groups of channels */
    int groups;
    PoolMode pool;
    PointLoss point;
    RegionLoss region;
    /* losses with a label for each pixel */
    ClassWeights class_weights;
    /* focal_loss: gamma, the exponent of 1 - p; 0: cross-entropy */
    float focus;
    /* upsample, pixel_shuffle: rows of y for each row of x, and columns of y for each column of
     * x */
    int scale;
    UpsampleMode upsample;
    /* true (bilinear): the centres of the outermost pixels of x and y coincide; false: the edges of
     * the two images do */
    bool align_corners;
    /* activation applied to the output; ACT_NONE: none */
    Act act;
    /* activation: factor of its negative side, alpha of elu, slope of leaky_relu; at least 0 */
    float act_factor;
    /* For a dense operation with a fused activation whose output another dense operation reads. The
     * second operation has this activation as x_act, and its dx[0] is the gradient of the
     * activation's input. The first has act_passed set and gets that gradient as dy. */
    Act x_act;
    /* true: see x_act */
    bool act_passed;
    /* true (batch_norm, dense): x[1], of the shape of y, is added before act */
    bool residual;
    /* true (batch_norm in training): statistics are over the micro-batches that all replicas
     * process at the same time. forward and backward_begin then also run for a micro-batch without
     * rows. */
    bool synced;
    /* POINT_HUBER: delta */
    float delta;
    /* eps: epsilon of norms and of POINT_CHARBONNIER. momentum: of batch_norm's running statistics
     * (0.1 is PyTorch's default). */
    float eps, momentum;
    /* drop: probability of dropout. smoothing: label smoothing of losses. */
    float drop, smoothing;
    /* yolo_loss: anchors of all inputs, the same number for each */
    Anchors anchors;
    /* yolo_loss: height and width of the pictures; layer tokens_to_pixels: of the image */
    int image[2];
    /* layer detect: number of classes; width and height of a cell in pixels of the picture */
    int classes, cell;
    /* true (dropout): whole channels of (N,C,H,W) are dropped */
    bool drop_channels;
    /* dropout: hash of the node's name */
    uint64_t seed_name;
    /* attention: heads of queries */
    int heads;
    /* attention: heads of keys and values, a divisor of heads; 0: equal to heads */
    int kv_heads;
    /* attention: base of the rotary angles; 0: 10000 */
    float rotary_base;
    /* true (attention): queries and keys are turned by rotary angles */
    bool rotary;
    RotaryScaling rotary_scaling;
    /* attention: number of keys that a query attends to, its own and those before it; 0: all of
     * them */
    int window;
    /* true (attention): a query attends to all keys, also to those after its own */
    bool full;
    TensorSlice slice;
    /* Sums that are cut into the same slices for every size of the tensor group. slices: in dense,
     * the sum over the inputs in forward (slices_inputs set) or the sum over the outputs in dx; in
     * a loss, the sums over the classes; in an exchange, the slices of the sum that it completes;
     * in attention, the gradients of keys and values, which are sums over query heads.
     * tokens: the gradients of parameters are sums over slices of the sequence; if slices_inputs is
     * set, only the gradient of the bias is. */
    SumSlices slices, tokens;
    /* true: see slices and tokens */
    bool slices_inputs;
    ExchangeKind exchange;
    /* bag: index of this bag among the model's bags; number of data fields that it reads; the first
     * of them; ids per field with BAG_CONCAT */
    int bag, bag_fields, bag_first, bag_ids;
    BagMode bag_mode;
    /* floats per row of a bag's table, or per vector: the input of interaction and fm is vectors
     * side by side */
    int row_width;
    /* true (bag): all its fields together count as one field */
    bool bag_together;
    /* true: no parameter, running statistic or table row of this operation changes, so
     * backward_weight is not run; false if only some of them are frozen */
    bool frozen;
    /* true: batch_norm normalises with its running statistics in training, too, and leaves them
     * unchanged */
    bool fixed_stats;
    /* true: dense stores w in plain order, because another operation shares it */
    bool plain_weight;
    /* true: the parameters are shared with another node of the same kind and shapes, so their
     * stored order must not depend on need_dx */
    bool shared_weight;
    /* channel_sum: one entry for each channel of y, and the number of entries; borrowed from the
     * graph */
    const ChannelSum *channel_sums;
    int sums;
    /* number of inputs; number of arrays in w: parameters first, then running statistics */
    int x_count, w_count;
    /* true: the gradient of input i is needed; false for the data */
    bool need_dx[SPEC_INPUTS];
    /* true: a later operation reads x[0], too: the backward pass may run with OpRun.dx_add */
    bool x_shared;
    /* shapes of the parameters in the model's order: conv2d OIHW, conv_transpose2d IOHW, dense out
     * x in, embedding V x C */
    Shape w[SPEC_PARAMS];
    /* x comes from the producers, y.shape from the layer kind, the layout of y from the backend */
    Desc x[SPEC_INPUTS], y;
} OpSpec;

/* Number of labels that a loss reads for a micro-batch: one for each pixel of (N,C,H,W), else one
 * for each row of x. */
static inline int64_t loss_labels(const OpSpec *spec)
{
    const Shape x = spec->x[0].shape;
    return shape_count(x) / x.dim[x.ndim == 4 ? 1 : x.ndim - 1];
}

/* How the tensor that an exchange sums or gathers is divided among the ranks that take part; its
 * type is that of y. */
Slices exchange_slices(const OpSpec *spec);

/* Heads of keys and values of an attention. */
static inline int attention_kv_heads(const OpSpec *spec)
{
    return spec->kv_heads > 0 ? spec->kv_heads : spec->heads;
}

/* The base of an attention's rotary angles: pair i of a head of width w turns by position *
 * base^(-2 i / w). */
static inline double attention_rotary_base(const OpSpec *spec)
{
    return spec->rotary_base > 0 ? (double)spec->rotary_base : 10000.0;
}

/* Writes the angular speeds of rotary embedding to speed[width / 2] for heads of that width: pair i
 * of a token at position t turns by t * speed[i]. length: tokens of the sequence, used by the
 * dynamic scaling. Returns the factor on cosines and sines. Sources: linear, Chen et al. 2023;
 * dynamic and yarn, Peng et al. 2023, section 3 and appendix A; llama3, Grattafiori et al. 2024
 * with Meta's code. */
double rotary_speeds(const OpSpec *spec, int64_t width, int64_t length, double *speed);
/* The number of query-key pairs of attention over `length` tokens. */
double attention_pairs(const OpSpec *spec, int64_t length);

/* Sets *y to the shape of x[0] with spec->padding. ERR_CONFIG, beginning with `name`, if x[0] is
 * too small for it. */
Status padding_shape(const OpSpec *spec, const char *name, Shape *y);
/* Returns the row (d = 0) or column (d = 1) of x[0] that row or column `at` of y copies; -1 if y is
 * 0 there. */
int64_t padding_source(const OpSpec *spec, int d, int64_t at);

/* The spec of an operation that converts `from` to another layout or number format of the same
 * shape. No layer kind makes this operation; the planner inserts it. */
OpSpec reorder_spec(Desc from, Desc to);

#endif
