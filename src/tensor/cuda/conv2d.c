/* conv2d by cuDNN, channels last, by algorithms that repeat their bits. Weights are stored as [O][R][S][C / groups]. In bf16 their
 * bf16 copy lies in the cache, the bias is added by a kernel of ours, and cuDNN's bf16 gradient of the weights is made fp32. */
#include "cuda.h"

#include <limits.h>

enum { CANDIDATES = 8 };

typedef struct Conv {
    cudnnTensorDescriptor_t x, y; /* owned, as all of these */
    cudnnFilterDescriptor_t w;
    cudnnConvolutionDescriptor_t conv;
    cudnnConvolutionFwdAlgo_t forward;
    cudnnConvolutionBwdDataAlgo_t data;
    cudnnConvolutionBwdFilterAlgo_t weight;
    size_t room; /* of the workspace, for cuDNN; what is ours lies behind it */
    int64_t weights;
} Conv;

typedef struct ConvShape {
    int64_t n, c, h, w, o, p, q; /* N C H W -> N O P Q */
    int64_t g, r, s;
} ConvShape;

static ConvShape conv_shape(const OpSpec *s)
{
    const int64_t *x = s->x[0].shape.dim, *y = s->y.shape.dim;
    return (ConvShape){x[0],         x[1],        x[2], x[3],
                       y[1],         y[2],        y[3], s->groups > 1 ? s->groups : 1,
                       s->kernel[0], s->kernel[1]};
}

/* What cuDNN and the kernels beside it do not take. */
static Status conv_check(const OpSpec *s)
{
    char text[64];
    if (shape_count(s->x[0].shape) > INT_MAX || shape_count(s->y.shape) > INT_MAX)
        return fail(ERR_CONFIG,
                    "cuda: conv2d on %s: cuDNN takes at most %d elements; use a smaller "
                    "train.micro_batch",
                    shape_text(s->x[0].shape, text), INT_MAX);
    if (s->act != ACT_NONE && s->act != ACT_RELU && s->act != ACT_RELU6)
        return fail(ERR_BUG,
                    "cuda: conv2d runs with relu or relu6 fused, with no other activation");
    return OK;
}

static void describe(Conv *v, const OpSpec *s, DType type)
{
    const ConvShape n = conv_shape(s);
    cudnnDataType_t number = type == DTYPE_BF16 ? CUDNN_DATA_BFLOAT16 : CUDNN_DATA_FLOAT;
    CUDNN_CALL(cudnn.tensor_create(&v->x));
    CUDNN_CALL(cudnn.tensor_create(&v->y));
    CUDNN_CALL(cudnn.filter_create(&v->w));
    CUDNN_CALL(cudnn.conv_create(&v->conv));
    CUDNN_CALL(
        cudnn.tensor_set(v->x, CUDNN_TENSOR_NHWC, number, (int)n.n, (int)n.c, (int)n.h, (int)n.w));
    CUDNN_CALL(
        cudnn.tensor_set(v->y, CUDNN_TENSOR_NHWC, number, (int)n.n, (int)n.o, (int)n.p, (int)n.q));
    CUDNN_CALL(cudnn.filter_set(v->w, number, CUDNN_TENSOR_NHWC, (int)n.o, (int)(n.c / n.g),
                                (int)n.r, (int)n.s));
    CUDNN_CALL(cudnn.conv_set(v->conv, s->pad[0], s->pad[1], s->stride[0], s->stride[1], 1, 1,
                              CUDNN_CROSS_CORRELATION, CUDNN_DATA_FLOAT));
    CUDNN_CALL(cudnn.conv_groups(v->conv, (int)n.g));
    CUDNN_CALL(
        cudnn.conv_math(v->conv, type == DTYPE_BF16 ? CUDNN_TENSOR_OP_MATH : CUDNN_FMA_MATH));
}

/* The first of cuDNN's list, fastest first, that works and repeats its bits. */
#define CHOOSE(list, found, algorithm, room)                                                       \
    for (int i_ = 0; i_ < (found); ++i_)                                                           \
        if ((list)[i_].status == CUDNN_STATUS_SUCCESS &&                                           \
            (list)[i_].determinism == CUDNN_DETERMINISTIC) {                                       \
            *(algorithm) = (list)[i_].algo;                                                        \
            if ((list)[i_].memory > *(room)) *(room) = (list)[i_].memory;                          \
            return true;                                                                           \
        }                                                                                          \
    return false

static bool choose_forward(Conv *v, cudnnHandle_t dnn)
{
    cudnnConvolutionFwdAlgoPerf_t list[CANDIDATES];
    int found = 0;
    CUDNN_CALL(cudnn.forward_algorithms(dnn, v->x, v->w, v->conv, v->y, CANDIDATES, &found, list));
    CHOOSE(list, found, &v->forward, &v->room);
}

static bool choose_data(Conv *v, cudnnHandle_t dnn)
{
    cudnnConvolutionBwdDataAlgoPerf_t list[CANDIDATES];
    int found = 0;
    CUDNN_CALL(cudnn.data_algorithms(dnn, v->w, v->y, v->conv, v->x, CANDIDATES, &found, list));
    CHOOSE(list, found, &v->data, &v->room);
}

static bool choose_weight(Conv *v, cudnnHandle_t dnn)
{
    cudnnConvolutionBwdFilterAlgoPerf_t list[CANDIDATES];
    int found = 0;
    CUDNN_CALL(cudnn.filter_algorithms(dnn, v->x, v->y, v->conv, v->w, CANDIDATES, &found, list));
    CHOOSE(list, found, &v->weight, &v->room);
}

static Status choose(Conv *v, const OpSpec *s, cudnnHandle_t dnn)
{
    char text[64];
    const char *lacks = !choose_forward(v, dnn)                 ? "itself"
                        : s->need_dx[0] && !choose_data(v, dnn) ? "its input's gradient"
                        : !choose_weight(v, dnn)                ? "its weights' gradient"
                                                                : NULL;
    if (!lacks) return OK;
    return fail(ERR_CONFIG,
                "cuda: cuDNN has no algorithm that repeats its bits for %s of a conv2d %dx%d on %s",
                lacks, s->kernel[0], s->kernel[1], shape_text(s->x[0].shape, text));
}

static bool in_bf16(const Op *op)
{
    return op->spec.y.dtype == DTYPE_BF16;
}

static Status conv_plan(Op *op, Desc wish[OP_INPUTS])
{
    OpSpec *s = &op->spec;
    TRY(conv_check(s));
    if (!cuda_inputs(op, wish)) return OK;
    s->y = cuda_desc(op, s->y.shape);
    Conv *v = op->impl = mem_new(sizeof *v);
    v->weights = shape_count(s->w[0]);
    if (cuda_is_there(cuda_state(op))) {
        TRY(cudnn_open(cuda_state(op)));
        describe(v, s, s->y.dtype);
        TRY(choose(v, s, cuda_state(op)->dnn));
    }
    const ConvShape n = conv_shape(s);
    v->room = (v->room + 255) / 256 * 256;
    int64_t parts = cuda_sum_parts(s->y.dtype, n.n * n.p * n.q, n.o);
    size_t bias = s->w_count > 1 ? (size_t)(parts * n.o) * sizeof(float) : 0;
    size_t gradient = in_bf16(op) ? (size_t)v->weights * sizeof(Bf16) : 0;
    op->workspace_bytes = v->room + (bias > gradient ? bias : gradient);
    op->cache_bytes = in_bf16(op) ? (size_t)v->weights * sizeof(Bf16) : 0;
    for (int i = 0; i < s->w_count; ++i) op->w_elements[i] = shape_count(s->w[i]);
    op->needs_x[0] = true;
    op->needs_y = s->act != ACT_NONE;
    op->weight_later = true;
    op->flops_forward = 2.0 * (double)(n.n * n.o * n.p * n.q) * (double)(n.c / n.g * n.r * n.s);
    op->flops_backward = op->flops_forward * (s->need_dx[0] ? 2 : 1);
    return OK;
}

/* Element (o, c, r, s) of the plain order lies at ((o R + r) S + s) C + c. */
static void permute(const Op *op, const float *from, float *to, bool to_stored)
{
    const ConvShape n = conv_shape(&op->spec);
    int64_t channels = n.c / n.g, pixels = n.r * n.s;
    for (int64_t o = 0; o < n.o; ++o)
        for (int64_t c = 0; c < channels; ++c)
            for (int64_t p = 0; p < pixels; ++p) {
                int64_t plain = (o * channels + c) * pixels + p,
                        stored = (o * pixels + p) * channels + c;
                if (to_stored)
                    to[stored] = from[plain];
                else
                    to[plain] = from[stored];
            }
}

static void conv_pack(Op *op, int i, const float *plain, float *stored)
{
    if (i == 0)
        permute(op, plain, stored, true);
    else
        memcpy(stored, plain, (size_t)op->w_elements[i] * sizeof *stored);
}

static void conv_unpack(Op *op, int i, const float *stored, float *plain)
{
    if (i == 0)
        permute(op, stored, plain, false);
    else
        memcpy(plain, stored, (size_t)op->w_elements[i] * sizeof *plain);
}

static void conv_refresh(Op *op, const OpRun *run)
{
    const Conv *v = op->impl;
    if (in_bf16(op))
        cuda_check(
            cuda_convert(cuda_stream(op), DTYPE_BF16, run->cache, DTYPE_F32, run->w[0], v->weights),
            "kernel convert");
}

static const void *weights_of(const Op *op, const OpRun *run)
{
    return in_bf16(op) ? run->cache : (const void *)run->w[0];
}

static void conv_forward(Op *op, const OpRun *run)
{
    const float one = 1, zero = 0;
    const Conv *v = op->impl;
    const OpSpec *s = &op->spec;
    const ConvShape n = conv_shape(s);
    CUDNN_CALL(cudnn.forward(cuda_state(op)->dnn, &one, v->x, run->x[0], v->w, weights_of(op, run),
                             v->conv, v->forward, run->workspace, v->room, &zero, v->y, run->y));
    if (s->w_count > 1) {
        int64_t rows = n.n * n.p * n.q;
        AddRowRun bias = {s->y.dtype, s->act, run->y, run->y, run->w[1], rows, rows, n.o};
        cuda_check(cuda_add_row(cuda_stream(op), bias), "kernel add_row");
    } else if (s->act != ACT_NONE) {
        cuda_check(cuda_activation(cuda_stream(op), s->y.dtype, s->act, run->y, run->y,
                                   shape_count(s->y.shape)),
                   "kernel activation");
    }
}

static void conv_backward_begin(Op *op, const OpRun *run)
{
    if (op->spec.act == ACT_NONE) return;
    cuda_check(cuda_activation_backward(cuda_stream(op), op->spec.y.dtype, op->spec.act, run->dy,
                                        run->dy, run->y, shape_count(op->spec.y.shape)),
               "kernel activation_backward");
}

static void conv_backward_data(Op *op, const OpRun *run)
{
    const float one = 1, zero = 0;
    const Conv *v = op->impl;
    if (run->dx[0])
        CUDNN_CALL(cudnn.backward_data(cuda_state(op)->dnn, &one, v->w, weights_of(op, run), v->y,
                                       run->dy, v->conv, v->data, run->workspace, v->room, &zero,
                                       v->x, run->dx[0]));
}

static void conv_backward_weight(Op *op, const OpRun *run)
{
    const float one = 1, zero = 0;
    const Conv *v = op->impl;
    const ConvShape n = conv_shape(&op->spec);
    void *ours = (char *)run->workspace + v->room, *dw = in_bf16(op) ? ours : run->dw[0];
    CUDNN_CALL(cudnn.backward_filter(cuda_state(op)->dnn, &one, v->x, run->x[0], v->y, run->dy,
                                     v->conv, v->weight, run->workspace, v->room, &zero, v->w, dw));
    if (in_bf16(op))
        cuda_check(cuda_convert(cuda_stream(op), DTYPE_F32, run->dw[0], DTYPE_BF16, dw, v->weights),
                   "kernel convert");
    if (op->spec.w_count > 1)
        cuda_check(cuda_column_sum(cuda_stream(op), op->spec.y.dtype, run->dw[1], ours, run->dy,
                                   n.n * n.p * n.q, n.o, n.o),
                   "kernel column_sum");
}

static void conv_free(Op *op)
{
    Conv *v = op->impl;
    if (!v) return;
    if (v->x) CUDNN_CALL(cudnn.tensor_destroy(v->x));
    if (v->y) CUDNN_CALL(cudnn.tensor_destroy(v->y));
    if (v->w) CUDNN_CALL(cudnn.filter_destroy(v->w));
    if (v->conv) CUDNN_CALL(cudnn.conv_destroy(v->conv));
    mem_free(&op->impl);
}

const OpTable cuda_conv2d = {
    .name = "conv2d",
    .plan = conv_plan,
    .refresh = conv_refresh,
    .forward = conv_forward,
    .backward_begin = conv_backward_begin,
    .backward_data = conv_backward_data,
    .backward_weight = conv_backward_weight,
    .pack = conv_pack,
    .unpack = conv_unpack,
    .free = conv_free,
};
