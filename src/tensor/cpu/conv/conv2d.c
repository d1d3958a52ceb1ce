/* conv2d by oneDNN and by weft's own kernels. conv_choose chooses the layouts of x and y and the
 * algorithm from shape, type and processor, by rules that were found by measurements. Nothing is
 * measured in a run. */
#include "conv2d.h"
#include "depthwise.h"
#include "first_conv.h"
#include "../dnnl/linear.h"
#include "../simd/depthwise.h"
#include "../simd/first_conv.h"
#include "../view.h"
#include "winograd.h"

typedef struct ConvShape {
    /* x is (N,C,H,W), y is (N,O,P,Q) */
    int64_t n, c, h, w, o, p, q;
    /* number of groups of channels */
    int64_t g;
} ConvShape;

static ConvShape conv_shape(const OpSpec *s)
{
    const int64_t *x = s->x[0].shape.dim, *y = s->y.shape.dim;
    return (ConvShape){.n = x[0],
                       .c = x[1],
                       .h = x[2],
                       .w = x[3],
                       .o = y[1],
                       .p = y[2],
                       .q = y[3],
                       .g = s->groups > 1 ? s->groups : 1};
}

/* the layouts and the algorithms for a shape */
typedef struct ConvChoice {
    /* Desc.block of x and of y */
    int x_block, y_block;
    /* true: all directions use weft's Winograd kernels */
    bool winograd;
    /* true: the direction uses one of weft's own direct kernels */
    bool direct[LINEAR_DIRECTIONS];
} ConvChoice;

/* The formats of one conv2d, named as in LinearSpec; owned. */
typedef struct ConvFormats {
    Format *x, *y;
    /* bias; NULL: none */
    Format *b;
    /* weight and its gradient in orders that oneDNN chooses */
    Format *w_any, *dw_any;
    /* weight in plain order */
    Format *w_plain;
} ConvFormats;

/* Makes the formats. x, y and w_any have the element type `type`; the others are fp32. */
static ConvFormats formats_new(const OpSpec *s, DType type, const ConvChoice *choice)
{
    const ConvShape v = conv_shape(s);
    const int64_t grouped[] = {v.g, v.o / v.g, v.c / v.g, s->kernel[0], s->kernel[1]};
    const int64_t *dim = v.g > 1 ? grouped : grouped + 1;
    int ndim = v.g > 1 ? 5 : 4;
    return (ConvFormats){
        .x = format_image(s->x[0].shape, choice->x_block, false, type),
        .y = format_image(s->y.shape, choice->y_block, false, type),
        .b = s->w_count > 1 ? format_plain(1, &v.o, DTYPE_F32) : NULL,
        .w_any = format_any(ndim, dim, type),
        .dw_any = format_any(ndim, dim, DTYPE_F32),
        .w_plain = format_plain(ndim, dim, DTYPE_F32),
    };
}

static void formats_free(ConvFormats *f)
{
    Format **const all[] = {&f->x, &f->y, &f->b, &f->w_any, &f->dw_any, &f->w_plain};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; ++i) format_free(all[i]);
}

/* Sets the blocks of x and y to those that oneDNN chooses, or to 8 where Desc cannot express
 * oneDNN's choice. Used on processors that the rules do not cover. */
static Status query_blocks(Dnnl *dnnl, const OpSpec *s, ConvChoice *choice)
{
    Kernel *k = NULL;
    ConvFormats f = formats_new(s, DTYPE_F32, &(ConvChoice){.x_block = 1, .y_block = 1});
    Format *x = format_any(4, s->x[0].shape.dim, DTYPE_F32);
    Format *y = format_any(4, s->y.shape.dim, DTYPE_F32);
    KernelSpec spec = {.kind = KERNEL_CONV_FORWARD,
                       .role = {x, f.w_any, f.b, y},
                       .stride = {s->stride[0], s->stride[1]},
                       .pad = {s->pad[0], s->pad[1]}};
    Status status = kernel_plan(&k, dnnl, &spec);
    if (status == OK) {
        choice->x_block = format_block(kernel_format(k, ROLE_X), s->x[0].shape);
        choice->y_block = format_block(kernel_format(k, ROLE_Y), s->y.shape);
        if (choice->x_block == 0) choice->x_block = 8;
        if (choice->y_block == 0) choice->y_block = 8;
    }
    kernel_free(&k);
    format_free(&x);
    format_free(&y);
    formats_free(&f);
    return status;
}

/* Returns whether the image is so small that some row or column of the kernel never lies on a
 * pixel, but always on padding. */
static bool dead_taps(const OpSpec *s)
{
    const int64_t *x = s->x[0].shape.dim, *y = s->y.shape.dim;
    for (int d = 0; d < 2; ++d)
        for (int tap = 0; tap < s->kernel[d]; ++tap) {
            bool alive = false;
            for (int64_t at = 0; at < y[2 + d] && !alive; ++at) {
                int64_t from = at * s->stride[d] - s->pad[d] + tap;
                alive = from >= 0 && from < x[2 + d];
            }
            if (!alive) return true;
        }
    return false;
}

/* Returns the number of 4x4 tiles of y if Winograd's F(4x4, 3x3) can compute this convolution with
 * channel blocks that are full; else 0. */
static int64_t winograd_tiles(const OpSpec *s, const ConvShape *v, int lanes)
{
    enum { TILE = 4 };
    if (v->g != 1 || s->kernel[0] != 3 || s->kernel[1] != 3 || s->stride[0] != 1 ||
        s->stride[1] != 1)
        return 0;
    if (s->pad[0] > 1 || s->pad[1] > 1 || v->c % lanes != 0 || v->o % lanes != 0) return 0;
    return v->n * ((v->p + TILE - 1) / TILE) * ((v->q + TILE - 1) / TILE);
}

/* Returns whether Winograd's algorithm is used. It takes 0.25 to 0.8 of the direct algorithm's time
 * in all three directions if there are at least as many tiles as floats in a vector, and the output
 * fills at least half of the tiles' pixels. It is not used if a row or column of the kernel always
 * lies on padding, because the gradient of those weights would not be exactly 0. */
static bool winograd_is_faster(const OpSpec *s, const ConvShape *v, int lanes)
{
    enum { TILE_PIXELS = 16, FILL_MIN = 2 };
    const int64_t tiles = winograd_tiles(s, v, lanes);
    return tiles >= lanes && FILL_MIN * v->n * v->p * v->q >= TILE_PIXELS * tiles && !dead_taps(s);
}

/* Chooses weft's direct kernels for a model's first convolution, which has at most three input
 * channels and one group, and whose dx is not needed. They are used on AVX2, if the number of
 * output channels is a multiple of a vector's floats, a row of y has at least FIRST_PIXELS pixels,
 * and an output channel has at least 9 weights. With one or two channels, oneDNN has only matrix
 * products, which copy the image once for each position in the kernel; weft's kernels take 0.25 to
 * 0.9 of their time. With three channels, oneDNN's `jit:avx2` is as fast in forward and mostly as
 * fast for dw, so weft's kernels are used only with CPU_PORTABLE. */
static void first_choose(const OpSpec *s, const ConvShape *v, int lanes, ConvChoice *choice)
{
    enum { TAPS_MIN = 9, LANES_AVX2 = 8 };
    const int channels_max = cpu_portable() ? 3 : 2;
    choice->direct[LINEAR_FORWARD] = choice->direct[LINEAR_WEIGHT] =
        lanes == LANES_AVX2 && v->c <= channels_max && v->o % lanes == 0 && v->q >= FIRST_PIXELS &&
        v->c * s->kernel[0] * s->kernel[1] >= TAPS_MIN;
}

/* Chooses weft's direct kernels for a depthwise convolution. The time of oneDNN's kernels divided
 * by the time of weft's is 1.1 to 2.2 in forward (about 1 with stride 2 on AVX2) and 1.02 to 6 for
 * dx. For dw it is 0.5 to 1.8 while x and dy are in caches, else 1.4 to 2. */
static void depthwise_choose(const OpSpec *s, const ConvShape *v, int lanes, ConvChoice *choice)
{
    enum { CACHED_BYTES = 48 << 20, LANES_512 = 16 };
    const bool portable = cpu_portable();
    /* With CPU_PORTABLE, a convolution with groups has plain images, unless weft has a depthwise
     * kernel for the shape. */
    if (portable) choice->x_block = choice->y_block = 1;
    if (v->g != v->c || v->g != v->o || v->c % lanes != 0) return;
    if (s->kernel[0] != DEPTHWISE_KERNEL || s->kernel[1] != DEPTHWISE_KERNEL) return;
    if (s->pad[0] != 1 || s->pad[1] != 1 || s->stride[0] != s->stride[1] || s->stride[0] > 2)
        return;
    const int64_t elements = v->n * v->c * (v->h * v->w + v->p * v->q);
    choice->x_block = choice->y_block = lanes;
    choice->direct[LINEAR_FORWARD] = s->stride[0] == 1 || lanes == LANES_512 || portable;
    choice->direct[LINEAR_DATA] = true;
    choice->direct[LINEAR_WEIGHT] = portable || elements * (int64_t)sizeof(float) >= CACHED_BYTES;
}

/* Chooses channel blocks of a vector's width, and then the algorithms. Every convolution of lenet,
 * resnet18, resnet50 and mobilenet_v2 was measured on one and two threads (bench/ops_bench.c):
 * direct kernels on such blocks reach 90 % of the machine's rate, and channels-last is nowhere
 * clearly faster. Input data of few channels stays plain, because it would not fill a block, unless
 * the weight is shared: the stored order of a shared weight must not depend on need_dx. */
static Status conv_choose(const Op *op, const OpSpec *s, ConvChoice *choice)
{
    enum { FEW_CHANNELS = 3 };
    const ConvShape v = conv_shape(s);
    int lanes = cpu_portable() ? own_block_channels() : dnnl_vector_floats();
    if (lanes == 0) return query_blocks(cpu_dnnl(op->backend), s, choice);
    choice->x_block = choice->y_block = lanes;
    const bool is_first = v.c <= FEW_CHANNELS && v.g == 1 && !s->need_dx[0] && !s->shared_weight;
    if (is_first) choice->x_block = 1;
    if (in_precision(op, s->x[0]).dtype != DTYPE_F32 || own_block_channels() == 0) return OK;
    if (is_first) first_choose(s, &v, lanes, choice);
    if (v.g > 1) depthwise_choose(s, &v, lanes, choice);
    choice->winograd = winograd_is_faster(s, &v, lanes);
    /* oneDNN's kernels divide the sums of dw among threads, so that their bits depend on the number
     * of threads. If starts of a run may differ in this number (same_threads is false), weft's
     * kernel is used. */
    const bool undivided_sums = cpu_portable() || !op->backend->options.same_threads;
    if (v.g == 1 && choice->x_block == lanes && undivided_sums)
        choice->direct[LINEAR_WEIGHT] = true;
    return OK;
}

static Status plan_chosen(Op *op, const OpSpec *s, const ConvChoice *choice)
{
    ConvFormats f = formats_new(s, in_precision(op, s->x[0]).dtype, choice);
    Status status = linear_plan(
        op, &(LinearSpec){.forward = KERNEL_CONV_FORWARD,
                          .x = f.x,
                          .y = f.y,
                          .b = f.b,
                          .w_any = f.w_any,
                          .dw_any = f.dw_any,
                          .w_plain = f.w_plain,
                          .stride = {s->stride[0], s->stride[1]},
                          .pad = {s->pad[0], s->pad[1]},
                          .need_data = s->need_dx[0],
                          .dead_taps = dead_taps(s),
                          .winograd = choice->winograd,
                          .direct = {choice->direct[LINEAR_FORWARD], choice->direct[LINEAR_DATA],
                                     choice->direct[LINEAR_WEIGHT]}});
    formats_free(&f);
    return status;
}

/* Plans with the chosen blocks first. oneDNN may have only its reference kernel for them, because
 * its AVX2 kernels need images at least as large as the kernel. The plan is then made again with
 * plain images, for which oneDNN uses matrix products. */
Status conv_plan_linear(Op *op, const OpSpec *s, ConvBlocks *blocks)
{
    ConvChoice choice = {0};
    TRY(conv_choose(op, s, &choice));
    TRY(plan_chosen(op, s, &choice));
    if (linear_is_reference(op)) {
        linear_free(op);
        choice = (ConvChoice){.x_block = 1, .y_block = 1};
        TRY(plan_chosen(op, s, &choice));
    }
    *blocks = (ConvBlocks){choice.x_block, choice.y_block};
    return OK;
}

static Status conv_plan(Op *op, Desc preferred[SPEC_INPUTS])
{
    OpSpec *s = &op->spec;
    ConvBlocks blocks;
    TRY(conv_plan_linear(op, s, &blocks));
    preferred[0] = in_precision(op, s->x[0]);
    preferred[0].block = blocks.x;
    s->y.dtype = preferred[0].dtype;
    s->y.block = blocks.y;
    op->flops_forward = 2.0 * (double)shape_count(s->y.shape) * (double)s->w[0].dim[1] *
                        s->kernel[0] * s->kernel[1];
    op->flops_backward = op->flops_forward * (s->need_dx[0] + !s->frozen);
    return OK;
}

const OpTable cpu_conv2d = {
    .name = "conv2d",
    .plan = conv_plan,
    .refresh = linear_refresh,
    .forward = linear_forward,
    .backward_begin = linear_backward_begin,
    .backward_data = linear_backward_data,
    .backward_weight = linear_backward_weight,
    .pack = linear_pack,
    .unpack = linear_unpack,
    .stored_plain = linear_stored_plain,
    .free = linear_free,
};
