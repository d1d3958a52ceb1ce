/* What an operation is asked to do, and the words for it: activations, pools, exchanges. */
#ifndef WEFT_TENSOR_OP_SPEC_H
#define WEFT_TENSOR_OP_SPEC_H

#include "tensor/shape.h"

/* Which operation: OP_DENSE and so on, of tensor/op_list.h. */
typedef int OpKind;

enum { SPEC_INPUTS = 8, SPEC_PARAMS = 4, LOSS_COLUMNS = 3 };

/* Activations, with their names in a config's list of layers. gelu is the tanh form. */
#define ACTIVATIONS(_)                                                                             \
    _(NONE, "")                                                                                    \
    _(RELU, "relu")                                                                                \
    _(RELU6, "relu6")                                                                              \
    _(GELU, "gelu")                                                                                \
    _(SILU, "silu")
#define ACT_ENTRY(ACT, name) ACT_##ACT,
#define ACT_COUNT(ACT, name) +1
typedef enum Act { ACTIVATIONS(ACT_ENTRY) } Act;
enum { ACTS = 0 ACTIVATIONS(ACT_COUNT) };
#undef ACT_ENTRY
#undef ACT_COUNT
const char *act_name(Act act);

/* The average is over real pixels only. */
typedef enum PoolMode { POOL_MAX, POOL_AVG, POOL_GLOBAL_AVG } PoolMode;
/* The place of a maximum in its window, where relu cut it off: windows have fewer pixels. */
enum { POOL_CUT = 255 };

/* What a bag does with the ids that a sample has in one field. */
typedef enum BagMode {
    /* the sum of their rows; none: 0 */
    BAG_SUM,
    /* the sum divided by how many they are; none: 0 */
    BAG_MEAN,
    /* bag_ids rows side by side, 0 where there are fewer; more are ERR_DATA */
    BAG_CONCAT,
} BagMode;

/* Scalings of rotary angles for contexts longer than the original one of the model, with their
 * names in a configuration. rotary_speeds computes the speeds of the angles. */
#define ROTARY_SCALINGS(_)                                                                         \
    _(DEFAULT, "default")                                                                          \
    _(LINEAR, "linear")                                                                            \
    _(DYNAMIC, "dynamic")                                                                          \
    _(LLAMA3, "llama3")                                                                            \
    _(YARN, "yarn")
#define ROTARY_ENTRY(ROTARY, name) ROTARY_##ROTARY,
typedef enum RotaryType { ROTARY_SCALINGS(ROTARY_ENTRY) } RotaryType;
#undef ROTARY_ENTRY
/* The numbers of a scaling; 0: not given. */
typedef struct RotaryScaling {
    RotaryType type;
    /* ratio of the longest context to the original one; at least 1 */
    float factor;
    /* dynamic, llama3, yarn: tokens of the original context */
    int original;
    /* llama3: bounds, in turns within the original context */
    float low_freq_factor, high_freq_factor;
    /* yarn: bounds in turns, 32 and 1 where not given; numbers that give the factor on cosines and
     * sines */
    float beta_fast, beta_slow, attention_factor, mscale, mscale_all_dim;
    /* yarn: bounds are rounded to whole pairs */
    bool truncate;
} RotaryScaling;

/* How an exchange changes what the ranks of a tensor group hold. Forward and backward are each
 * other's mirror. */
typedef enum ExchangeKind {
    /* Whole x to layers that are divided: y is x; dx the sum of dy over the ranks. */
    EXCHANGE_ENTER,
    /* Back: y the sum of x over the ranks (+ w[C]); dx is dy. */
    EXCHANGE_LEAVE,
    /* A sequence's slices to such layers: y all of dim 1; dx the slice of the sum of dy. */
    EXCHANGE_GATHER,
    /* Back: y the slice of dim 1 of the sum of x (+ w[C]); dx all of dy. */
    EXCHANGE_SCATTER,
} ExchangeKind;

/* What an operation is asked to do: plain data, filled by a layer kind, completed by the backend
 * (layouts). What each one computes stands at its row, src/tensor/op_info.c. Where `slice` says so,
 * an operation has one rank's slice of what it would else have whole: embedding its rows of w
 * (other ranks' tokens give 0), softmax_loss its logits (y is of all of them), positions and
 * dropout of x. Where the backend's precision is bf16 or fp16, activations and their gradients are
 * such, and every operation computes in fp32 on what it loads and rounds what it stores; attention
 * rounds the factors of its inner products, too. All else stays fp32: parameters and dw, `saved`, a
 * loss's y, float data and targets. An operation that is given fp32 data wishes the precision, and
 * a reorder converts it. */
typedef struct OpSpec {
    OpKind kind;
    /* conv2d, pool: height, width */
    int kernel[2], stride[2], pad[2];
    /* conv2d, group_norm */
    int groups;
    PoolMode pool;
    /* fused on the output; ACT_NONE if none */
    Act act;
    /* Of two dense, one behind the other, the second does for the first's act what backward has to
     * do: its x_act is that act, and dx[0] the gradient of act's input, which is what the first,
     * act_passed, gets as dy. */
    Act x_act;
    bool act_passed;
    /* batch_norm, dense: x[1], of y's shape, is added before act */
    bool residual;
    /* batch_norm: in training, statistics are over the micro-batches that all replicas have at the
     * same time. Then forward and backward_begin are run for one without rows, too */
    bool synced;
    /* norms; momentum of the running statistics (0.1: PyTorch's) */
    float eps, momentum;
    /* dropout probability; label smoothing */
    float drop, smoothing;
    /* dropout: hash of the node's name */
    uint64_t seed_name;
    /* attention */
    int heads;
    /* of keys and values; 0: heads. Divides heads */
    int kv_heads;
    /* of the angles; 0: 10000 */
    float rotary_base;
    bool rotary;
    RotaryScaling rotary_scaling;
    /* attention: number of keys that a query attends to, its own and those before it; 0: all of
     * them */
    int window;
    TensorSlice slice;
    ExchangeKind exchange;
    /* bag: which of the model's bags it is, from 0; how many of the data's fields it reads, from
     * the first one on; BAG_CONCAT's ids of a field; numbers of a row */
    int bag, bag_fields, bag_first, bag_ids;
    BagMode bag_mode;
    int row_width;
    /* bag: the ids of all fields are one field's. interaction, fm: the input is vectors of
     * row_width, side by side */
    bool bag_together;
    /* No w is trained, nor moves, and no row of a table: backward_weight is not run. Some of them
     * may be so without it. */
    bool frozen;
    /* batch_norm: it normalises with its running statistics, which stay, in training, too */
    bool fixed_stats;
    /* dense: w is stored in its plain order (another operation has the same w). */
    bool plain_weight;
    /* w: parameters first, then running statistics */
    int x_count, w_count;
    /* false: nobody wants this gradient (the data) */
    bool need_dx[SPEC_INPUTS];
    /* a later operation reads x[0], too: dx[0] may come with dx_add */
    bool x_shared;
    /* in the model's own order: OIHW, out x in, V x C */
    Shape w[SPEC_PARAMS];
    /* x: given by the producers. y.shape by the layer kind, y's layout by the backend. */
    Desc x[SPEC_INPUTS], y;
} OpSpec;

/* An attention's heads of keys and of values. */
static inline int attention_kv_heads(const OpSpec *spec)
{
    return spec->kv_heads > 0 ? spec->kv_heads : spec->heads;
}

/* The base of its rotary angles: pair i of a head that is w wide turns by position * base^(-2 i /
 * w). */
static inline double attention_rotary_base(const OpSpec *spec)
{
    return spec->rotary_base > 0 ? (double)spec->rotary_base : 10000.0;
}

/* Angular speeds of rotary embedding for a head that is `width` wide: pair i of a token at place t
 * is turned by the angle t * speed[i]; width / 2 pairs. length: of the sequence, by which the
 * dynamic scaling goes. Returns the factor on cosines and sines. Sources: linear, Chen et al. 2023;
 * dynamic and yarn, Peng et al. 2023, section 3 and appendix A; llama3, Grattafiori et al. 2024
 * with Meta's code. */
double rotary_speeds(const OpSpec *spec, int64_t width, int64_t length, double *speed);
/* Number of pairs of a query and a key that causal attention over `length` tokens has. */
double attention_pairs(const OpSpec *spec, int64_t length);

/* The spec of an operation that is no layer: `from` in another layout or number format, the same
 * shape. */
OpSpec reorder_spec(Desc from, Desc to);

#endif
