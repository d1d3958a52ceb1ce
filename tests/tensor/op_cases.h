/* Cases of operations, for tests that run all cases. bag, exchange, flatten, pixel_tokens and
 * reorder have no case. */
#ifndef WEFT_TEST_OP_CASES_H
#define WEFT_TEST_OP_CASES_H

#include "op_case_run.h"

typedef struct Case {
    const char *name;
    OpSpec spec;
} Case;

static inline Desc image(int64_t n, int64_t c, int64_t h, int64_t w)
{
    return rig_desc(shape_of(4, n, c, h, w), 16);
}

static inline OpSpec one(OpKind kind, Desc x, Desc y)
{
    OpSpec s = {.kind = kind, .x_count = 1, .x = {x}, .y = y, .need_dx = {true}};
    s.eps = 1e-5f;
    s.groups = 1;
    return s;
}

static inline OpSpec dense(int64_t n, int64_t in, int64_t out, bool plain_weight, Act act)
{
    OpSpec s = one(OP_DENSE, plain(2, n, in, 1, 1), plain(2, n, out, 1, 1));
    s.w_count = 2;
    s.w[0] = shape_of(2, out, in, 1, 1);
    s.w[1] = shape_of(1, out, 1, 1, 1);
    s.plain_weight = plain_weight;
    s.act = act;
    return s;
}

/* A convolution of n images of side x side pixels, padded by half a kernel. */
static inline OpSpec conv_of(int64_t n, int64_t side, int64_t c, int64_t o, int groups, int kernel,
                             int stride)
{
    int pad = kernel / 2;
    int64_t out = (side + 2 * pad - kernel) / stride + 1;
    OpSpec s = one(OP_CONV2D, image(n, c, side, side), image(n, o, out, out));
    s.x[0].block = c <= 3 ? 1 : 16;
    s.need_dx[0] = c > 3;
    s.groups = groups;
    for (int d = 0; d < 2; ++d) {
        s.kernel[d] = kernel;
        s.stride[d] = stride;
        s.pad[d] = pad;
    }
    s.w_count = 1;
    s.w[0] = shape_of(4, o, c / groups, kernel, kernel);
    return s;
}

static inline OpSpec conv(int64_t c, int64_t o, int groups, int kernel, int stride)
{
    return conv_of(2, 14, c, o, groups, kernel, stride);
}

/* A convolution with a 3x3 kernel over images of one pixel: all taps except the middle one are on
 * padding. */
static inline OpSpec conv_of_a_pixel(void)
{
    OpSpec s = conv(32, 48, 1, 3, 2);
    s.x[0] = image(2, 32, 1, 1);
    s.y = image(2, 48, 1, 1);
    return s;
}

/* A transposed convolution, with a bias, that makes images twice as large. */
static inline OpSpec conv_transpose(int64_t c, int64_t o, int groups, int kernel)
{
    OpSpec s = one(OP_CONV_TRANSPOSE2D, image(2, c, 9, 7), image(2, o, 18, 14));
    s.groups = groups;
    for (int d = 0; d < 2; ++d) {
        s.kernel[d] = kernel;
        s.stride[d] = 2;
        s.pad[d] = (kernel - 1) / 2;
        s.output_pad[d] = kernel % 2;
    }
    s.w_count = 2;
    s.w[0] = shape_of(4, c, o / groups, kernel, kernel);
    s.w[1] = shape_of(1, o, 1, 1, 1);
    return s;
}

static inline OpSpec batch_norm(Desc x, Act act, bool residual)
{
    OpSpec s = one(OP_BATCH_NORM, x, x);
    s.act = act;
    s.residual = residual;
    s.x_count = 1 + residual;
    s.x[1] = x;
    s.w_count = 4;
    for (int i = 0; i < 4; ++i) s.w[i] = shape_of(1, x.shape.dim[1], 1, 1, 1);
    return s;
}

static inline OpSpec layer_norm(Desc x)
{
    OpSpec s = one(OP_LAYER_NORM, x, x);
    s.w_count = 2;
    s.w[0] = s.w[1] = shape_of(1, x.shape.dim[x.shape.ndim - 1], 1, 1, 1);
    return s;
}

static inline OpSpec rms_norm(Desc x)
{
    OpSpec s = layer_norm(x);
    s.kind = OP_RMS_NORM;
    s.w_count = 1;
    return s;
}

static inline OpSpec group_norm(Desc x, int groups, Act act)
{
    OpSpec s = one(OP_GROUP_NORM, x, x);
    s.groups = groups;
    s.act = act;
    s.w_count = 2;
    s.w[0] = s.w[1] = shape_of(1, x.shape.dim[1], 1, 1, 1);
    return s;
}

static inline OpSpec activation(Act act)
{
    OpSpec s = one(OP_ACTIVATION, plain(2, 3, 1777, 1, 1), plain(2, 3, 1777, 1, 1));
    s.act = act;
    s.act_factor = 0.3f;
    return s;
}

static inline OpSpec pool(PoolMode mode, int block)
{
    bool global = mode == POOL_GLOBAL_AVG;
    Desc x = rig_desc(shape_of(4, 2, 20, 15, 13), block);
    OpSpec s = one(OP_POOL, x, plain(4, 2, 20, global ? 1 : 8, global ? 1 : 7));
    s.pool = mode;
    for (int d = 0; d < 2; ++d) {
        s.kernel[d] = 3;
        s.stride[d] = 2;
        s.pad[d] = 1;
    }
    return s;
}

static inline OpSpec join(OpKind kind, Desc x, Desc y, Act act)
{
    OpSpec s = one(kind, x, y);
    s.x_count = 3;
    s.x[1] = s.x[2] = x;
    s.act = act;
    return s;
}

static inline OpSpec film(Desc x)
{
    OpSpec s = one(OP_FILM, x, x);
    s.x_count = 2;
    s.x[1] = plain(2, x.shape.dim[0], 2 * x.shape.dim[1], 1, 1);
    s.need_dx[1] = true;
    return s;
}

static inline OpSpec dropout(Desc x)
{
    OpSpec s = one(OP_DROPOUT, x, x);
    s.drop = 0.3f;
    return s;
}

static inline OpSpec embedding(void)
{
    OpSpec s =
        one(OP_EMBEDDING, desc_plain(shape_of(2, 3, 6, 1, 1), DTYPE_I32), plain(3, 3, 6, 37, 1));
    s.w_count = 1;
    s.w[0] = shape_of(2, 11, 37, 1, 1);
    return s;
}

static inline OpSpec positions(void)
{
    OpSpec s = one(OP_POSITIONS, plain(3, 3, 6, 37, 1), plain(3, 3, 6, 37, 1));
    s.w_count = 1;
    s.w[0] = shape_of(2, 9, 37, 1, 1);
    return s;
}

static inline OpSpec attention(int64_t length, int width, bool rotary)
{
    enum { HEADS = 3 };
    OpSpec s = one(OP_ATTENTION, plain(3, 2, length, 3 * HEADS * width, 1),
                   plain(3, 2, length, HEADS * width, 1));
    s.heads = HEADS;
    s.rotary = rotary;
    return s;
}

static inline OpSpec shared_keys(int64_t length, int width, int kv_heads, bool rotary)
{
    OpSpec s = attention(length, width, rotary);
    s.heads = 4;
    s.kv_heads = kv_heads;
    s.x[0] = plain(3, 2, length, (4 + 2 * kv_heads) * width, 1);
    s.y = plain(3, 2, length, 4 * width, 1);
    return s;
}

static inline OpSpec windowed(int64_t length, int width, int window)
{
    OpSpec s = attention(length, width, true);
    s.window = window;
    return s;
}

static inline OpSpec full(int64_t length, int width, int kv_heads)
{
    OpSpec s = shared_keys(length, width, kv_heads, false);
    s.bidirectional = true;
    return s;
}

static inline OpSpec loss(OpKind kind, int64_t width)
{
    return one(kind, plain(2, 5, width, 1, 1), plain(2, 5, LOSS_COLUMNS, 1, 1));
}

/* A loss with a label for each pixel. A sample has more than PIXEL_PIECE pixels. */
static inline OpSpec pixel_loss(OpKind kind)
{
    const int64_t lines = kind == OP_REGION_LOSS ? 3 : 3 * 25 * 40;
    OpSpec s = one(kind, plain(4, 3, 4, 25, 40), plain(2, lines, LOSS_COLUMNS, 1, 1));
    s.focus = kind == OP_FOCAL_LOSS ? 2 : 0;
    s.class_weights = (ClassWeights){4, {1, 0.5f, 3, 2}};
    return s;
}

/* A loss of fields. A sample has more than POINT_PIECE numbers. */
static inline OpSpec field_loss(PointLoss point)
{
    OpSpec s = one(OP_POINT_LOSS, plain(4, 3, 4, 25, 40), plain(2, 3, LOSS_COLUMNS, 1, 1));
    s.point = point;
    s.delta = s.eps = 0.5f;
    return s;
}

static inline OpSpec upsample(int block)
{
    OpSpec s = one(OP_UPSAMPLE, rig_desc(shape_of(4, 2, 20, 5, 7), block), plain(4, 2, 20, 15, 21));
    s.scale = 3;
    return s;
}

static inline OpSpec bilinear(int block, int64_t channels)
{
    OpSpec s = one(OP_UPSAMPLE, rig_desc(shape_of(4, 2, channels, 5, 37), block),
                   plain(4, 2, channels, 20, 148));
    s.scale = 4;
    s.upsample = UPSAMPLE_BILINEAR;
    s.align_corners = block == 1;
    return s;
}

static inline OpSpec pixel_shuffle(int block, int64_t channels)
{
    OpSpec s = one(OP_PIXEL_SHUFFLE, rig_desc(shape_of(4, 2, channels, 5, 7), block),
                   plain(4, 2, channels / 4, 10, 14));
    s.scale = 2;
    return s;
}

static inline OpSpec pad(int block, PadMode rows, PadMode columns)
{
    OpSpec s = one(OP_PAD, rig_desc(shape_of(4, 2, 20, 5, 17), block), plain(4, 2, 20, 10, 22));
    s.padding = (Padding){{2, 3, 4, 1}, {rows, columns}};
    return s;
}

/* A channel_sum of two inputs: a copy, a sum with a constant, and a sum of two channels of the
 * second input, one of which is also in the sum before. */
static inline OpSpec channel_sum(void)
{
    static const ChannelSum sums[] = {{1, 0, {{0, 3, 1}}},
                                      {2, 0.5F, {{0, 1, -2}, {1, 2, 0.75F}}},
                                      {2, -1, {{1, 2, 1}, {1, 0, 3}}}};
    OpSpec s = one(OP_CHANNEL_SUM, plain(4, 2, 5, 7, 9), plain(4, 2, 3, 7, 9));
    s.x_count = 2;
    s.x[1] = s.y;
    s.need_dx[1] = true;
    s.channel_sums = sums;
    s.sums = 3;
    return s;
}

static inline OpSpec yolo_loss(void)
{
    OpSpec s = one(OP_YOLO_LOSS, image(2, 16, 8, 6), plain(2, 2, LOSS_COLUMNS, 1, 1));
    s.x_count = 2;
    s.x[1] = image(2, 16, 4, 3);
    s.need_dx[1] = true;
    s.image[0] = 64;
    s.image[1] = 48;
    s.anchors = (Anchors){4, {{10, 13}, {33, 23}, {30, 20}, {40, 45}}};
    return s;
}

static inline OpSpec vectors(OpKind kind, int width, int64_t n, int64_t out)
{
    OpSpec s = one(kind, plain(2, 40, n * width, 1, 1), plain(2, 40, out, 1, 1));
    s.row_width = width;
    return s;
}

static inline OpSpec numeric_embedding(int64_t n, int64_t width)
{
    OpSpec s = one(OP_NUMERIC_EMBEDDING, plain(2, 40, n, 1, 1), plain(2, 40, n * width, 1, 1));
    s.w_count = 1;
    s.w[0] = shape_of(2, n, width, 1, 1);
    return s;
}

static inline const Case *cases(int *count)
{
    static Case list[96];
    int n = 0;
#define CASE(text, ...) list[n++] = (Case){text, __VA_ARGS__}
    CASE("dense", dense(96, 80, 112, false, ACT_NONE));
    CASE("dense, relu", dense(33, 45, 67, false, ACT_RELU));
    CASE("dense, plain weight", dense(64, 48, 1003, true, ACT_NONE));
    CASE("conv 3x3", conv(32, 48, 1, 3, 1));
    CASE("conv 3x3, stride 2", conv(32, 48, 1, 3, 2));
    CASE("conv 3x3 of a pixel", conv_of_a_pixel());
    CASE("conv 1x1", conv(32, 64, 1, 1, 1));
    CASE("conv 7x7 of raw data", conv(3, 32, 1, 7, 2));
    CASE("conv by channel", conv(32, 32, 32, 3, 1));
    CASE("conv_transpose 3x3", conv_transpose(32, 48, 1, 3));
    CASE("conv_transpose 2x2", conv_transpose(32, 16, 1, 2));
    CASE("conv_transpose by channel", conv_transpose(32, 32, 32, 3));
    CASE("batch_norm", batch_norm(image(4, 20, 7, 9), ACT_NONE, false));
    CASE("batch_norm, relu", batch_norm(image(4, 20, 7, 9), ACT_RELU, false));
    CASE("batch_norm, residual", batch_norm(image(4, 32, 7, 9), ACT_RELU, true));
    CASE("batch_norm, silu", batch_norm(image(4, 20, 7, 9), ACT_SILU, false));
    CASE("batch_norm, plain", batch_norm(plain(2, 16, 37, 1, 1), ACT_RELU6, false));
    CASE("layer_norm", layer_norm(plain(3, 3, 7, 333, 1)));
    CASE("rms_norm", rms_norm(plain(3, 3, 7, 333, 1)));
    CASE("group_norm", group_norm(image(4, 20, 7, 9), 5, ACT_NONE));
    CASE("group_norm, relu", group_norm(image(3, 48, 7, 9), 2, ACT_RELU));
    CASE("group_norm, plain", group_norm(plain(4, 2, 6, 5, 7), 3, ACT_NONE));
    CASE("swiglu", one(OP_SWIGLU, plain(3, 3, 7, 666, 1), plain(3, 3, 7, 333, 1)));
    for (int act = ACT_NONE + 1; act < ACTS; ++act) CASE(act_name((Act)act), activation((Act)act));
    CASE("pool max", pool(POOL_MAX, 16));
    CASE("pool max, plain", pool(POOL_MAX, 1));
    CASE("pool avg", pool(POOL_AVG, 16));
    CASE("pool avg, channels last", pool(POOL_AVG, 0));
    CASE("pool global", pool(POOL_GLOBAL_AVG, 16));
    CASE("upsample", upsample(16));
    CASE("upsample, plain", upsample(1));
    CASE("upsample, bilinear", bilinear(16, 20));
    CASE("upsample, bilinear, plain", bilinear(1, 20));
    CASE("upsample, bilinear, channels last", bilinear(0, 40));
    CASE("pixel_shuffle", pixel_shuffle(16, 64));
    CASE("pixel_shuffle, padding", pixel_shuffle(16, 80));
    CASE("pixel_shuffle, plain", pixel_shuffle(1, 12));
    CASE("pixel_shuffle, channels last", pixel_shuffle(0, 20));
    CASE("pad", pad(16, PAD_REFLECT, PAD_CIRCULAR));
    CASE("pad, plain", pad(1, PAD_REPLICATE, PAD_ZERO));
    CASE("yolo_loss", yolo_loss());
    CASE("add", join(OP_ADD, image(2, 20, 9, 7), image(2, 20, 9, 7), ACT_RELU));
    CASE("film", film(image(3, 20, 9, 7)));
    CASE("film, plain", film(plain(4, 2, 6, 5, 7)));
    CASE("channel_sum", channel_sum());
    CASE("concat", join(OP_CONCAT, image(2, 16, 5, 5), image(2, 48, 5, 5), ACT_NONE));
    CASE("dropout", dropout(plain(2, 3, 1777, 1, 1)));
    CASE("dropout, blocks", dropout(image(2, 20, 9, 7)));
    CASE("embedding", embedding());
    CASE("positions", positions());
    CASE("attention", attention(150, 32, false));
    CASE("attention, odd", attention(70, 20, true));
    CASE("attention, shared keys", shared_keys(150, 32, 2, false));
    CASE("attention, one head of keys", shared_keys(70, 20, 1, true));
    CASE("attention, window", windowed(150, 32, 20));
    CASE("attention, full", full(150, 32, 4));
    CASE("attention, full, shared keys", full(70, 20, 2));
    CASE("attention, window of tiles", windowed(200, 20, 65));
    CASE("softmax_loss", loss(OP_SOFTMAX_LOSS, 3001));
    CASE("point_loss", loss(OP_POINT_LOSS, 40));
    CASE("point_loss, huber, fields", field_loss(POINT_HUBER));
    CASE("point_loss, charbonnier, fields", field_loss(POINT_CHARBONNIER));
    CASE("softmax_loss, pixels", pixel_loss(OP_SOFTMAX_LOSS));
    CASE("focal_loss, pixels", pixel_loss(OP_FOCAL_LOSS));
    CASE("region_loss, dice", pixel_loss(OP_REGION_LOSS));
    CASE("sigmoid_loss", loss(OP_SIGMOID_LOSS, 1));
    CASE("interaction", vectors(OP_INTERACTION, 21, 7, 21));
    CASE("fm", vectors(OP_FM, 150, 4, 1));
    CASE("numeric_embedding", numeric_embedding(30, 20));
#undef CASE
    *count = n;
    return list;
}

#endif
