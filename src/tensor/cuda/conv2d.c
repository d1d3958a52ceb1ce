/* The operations conv2d and conv_transpose2d by cuDNN's graphs, channels last, with deterministic
 * engines. Weights are stored as [O][R][S][C / groups] (ConvShape). In bf16 and fp16 the cache has
 * a copy of the weights in that type, and the weight gradient is converted to fp32, because cuDNN
 * has no engine that writes it in fp32. In fp32, cuDNN also adds the bias of a conv2d and applies
 * relu if it has a plan for this. In all other cases weft's own kernels add the bias; in fp32,
 * op->kernels then says so. conv_transpose2d runs the same graphs with x and y exchanged: forward
 * of conv_transpose2d is the gradient of a convolution by its input. */
#include "libraries/cudnn_graph.h"
#include "tensor/op_list.h"

/* numbers of the tensors of every graph; the gradient of a tensor has the same number and layout */
enum { X = 1, W, Y, TENSORS };
/* numbers of the additional tensors of the forward graph with bias and relu */
enum { BIAS = TENSORS, PRODUCT, SUM, BIASED_TENSORS };

typedef struct Conv {
    /* plans for y (forward), dx (data) and dw (weight) of the convolution; borrowed; NULL: not
     * needed */
    const DnnPlan *forward, *data, *weight;
    /* plan for a dx that is added to the values in its memory; borrowed; NULL: not needed */
    const DnnPlan *data_added;
    /* true: `forward` also adds the bias and applies relu, if there is one */
    bool fuses_bias;
    /* bytes of cuDNN's part of OpRun.workspace, which comes first; scratch of weft's own kernels
     * follows it */
    size_t cudnn_bytes;
    int64_t weight_count;
} Conv;

typedef struct ConvShape {
    /* x is (n, c, h, w), y is (n, o, p, q); g: groups; r, s: height and width of the kernel */
    int64_t n, c, h, w, o, p, q;
    int64_t g, r, s;
} ConvShape;

static bool is_transposed(const Op *op)
{
    return op->spec.kind == OP_CONV_TRANSPOSE2D;
}

/* Returns the shape of the convolution. For conv_transpose2d it is the convolution from y to x. */
static ConvShape conv_shape(const OpSpec *s)
{
    const bool transposed = s->kind == OP_CONV_TRANSPOSE2D;
    const int64_t *x = (transposed ? s->y : s->x[0]).shape.dim;
    const int64_t *y = (transposed ? s->x[0] : s->y).shape.dim;
    return (ConvShape){x[0],         x[1],        x[2], x[3],
                       y[1],         y[2],        y[3], s->groups > 1 ? s->groups : 1,
                       s->kernel[0], s->kernel[1]};
}

static DnnTensor channels_last(cudnnDataType_t type, int64_t n, int64_t c, int64_t h, int64_t w)
{
    return (DnnTensor){
        .type = type, .place = DNN_MEMORY, .dim = {n, c, h, w}, .stride = {h * w * c, 1, w * c, c}};
}

static bool is_16_bit(const Op *op)
{
    return op->spec.y.dtype != DTYPE_F32;
}

/* Describes the three tensors of a graph. */
static void describe_tensors(DnnTensor tensor[TENSORS], const Op *op)
{
    const OpSpec *s = &op->spec;
    const ConvShape n = conv_shape(s);
    const cudnnDataType_t type = dnn_type(s->y.dtype);
    tensor[X] = channels_last(type, n.n, n.c, n.h, n.w);
    tensor[W] = channels_last(type, n.o, n.c / n.g, n.r, n.s);
    tensor[Y] = channels_last(type, n.n, n.o, n.p, n.q);
}

/* Returns true in fp32 without TF32. Engines with tensor cores are then excluded. */
static bool full_precision(const Op *op)
{
    return !is_16_bit(op) && !cuda_state(op)->tf32;
}

/* Plans a conv2d with its bias, and with relu if it has this activation, in one graph. Returns NULL
 * if cuDNN has no such plan, if there is no bias, if the activation is relu6, and for
 * conv_transpose2d. Also returns NULL in 16-bit types, because cuDNN would then compile a kernel
 * for each shape, which takes a second or more. */
static const DnnPlan *plan_biased(const Op *op)
{
    char why[256];
    const OpSpec *s = &op->spec;
    const bool relu = s->act == ACT_RELU;
    if (is_transposed(op) || is_16_bit(op) || s->w_count < 2 || (s->act != ACT_NONE && !relu))
        return NULL;
    DnnTensor tensor[BIASED_TENSORS];
    describe_tensors(tensor, op);
    const ConvShape n = conv_shape(s);
    tensor[BIAS] = channels_last(CUDNN_DATA_FLOAT, 1, n.o, 1, 1);
    tensor[PRODUCT] = tensor[SUM] = tensor[Y];
    tensor[PRODUCT].place = tensor[SUM].place = DNN_VIRTUAL;
    const DnnNode node[] = {
        {.kind = DNN_CONV,
         .y = PRODUCT,
         .in = {X, W},
         .stride = {s->stride[0], s->stride[1]},
         .pad = {s->pad[0], s->pad[1]}},
        {.kind = DNN_POINTWISE,
         .mode = CUDNN_POINTWISE_ADD,
         .y = relu ? SUM : Y,
         .in = {PRODUCT, BIAS}},
        {.kind = DNN_POINTWISE, .mode = CUDNN_POINTWISE_RELU_FWD, .y = Y, .in = {SUM}},
    };
    const DnnGraph graph = {.tensor = tensor,
                            .tensors = relu ? BIASED_TENSORS : SUM,
                            .node = node,
                            .nodes = relu ? 3 : 2,
                            .full_precision = full_precision(op)};
    return dnn_shared_plan(cuda_state(op), &graph, why);
}

/* Plans one convolution of kind `kind`. add: the result is added to the values in its memory. what:
 * name of the result, for the message. */
static Status plan_graph(const DnnPlan **plan, const Op *op, DnnKind kind, bool add,
                         const char *what)
{
    char text[64], why[256];
    const OpSpec *s = &op->spec;
    DnnTensor tensor[TENSORS];
    describe_tensors(tensor, op);
    /* for each kind of node: number of its output, then of its two inputs */
    static const int tensors[][3] = {
        [DNN_CONV] = {Y, X, W}, [DNN_CONV_DATA] = {X, Y, W}, [DNN_CONV_WEIGHT] = {W, X, Y}};
    const DnnNode node = {.kind = kind,
                          .y = tensors[kind][0],
                          .in = {tensors[kind][1], tensors[kind][2]},
                          .stride = {s->stride[0], s->stride[1]},
                          .pad = {s->pad[0], s->pad[1]},
                          .add = add};
    const DnnGraph graph = {.tensor = tensor,
                            .tensors = TENSORS,
                            .node = &node,
                            .nodes = 1,
                            .full_precision = full_precision(op)};
    *plan = dnn_shared_plan(cuda_state(op), &graph, why);
    if (*plan) return OK;
    return fail(ERR_CONFIG, "cuda: cuDNN has no plan for %s of a %s %dx%d on %s: %s", what,
                op->table->name, s->kernel[0], s->kernel[1], shape_text(s->x[0].shape, text), why);
}

static Status plan_graphs(const Op *op, Conv *v)
{
    const char *data = "its input's gradient";
    const bool transposed = is_transposed(op);
    v->forward = plan_biased(op);
    v->fuses_bias = v->forward != NULL;
    if (!v->fuses_bias && (!transposed || op->spec.need_dx[0]))
        TRY(plan_graph(&v->forward, op, DNN_CONV, false, transposed ? data : "itself"));
    if (transposed || op->spec.need_dx[0])
        TRY(plan_graph(&v->data, op, DNN_CONV_DATA, false, transposed ? "itself" : data));
    if (op->dx_adds) TRY(plan_graph(&v->data_added, op, DNN_CONV_DATA, true, data));
    TRY(plan_graph(&v->weight, op, DNN_CONV_WEIGHT, false, "its weights' gradient"));
    const DnnPlan *plan[] = {v->forward, v->data, v->data_added, v->weight};
    for (size_t i = 0; i < sizeof plan / sizeof *plan; ++i)
        if (plan[i] && plan[i]->workspace_bytes > v->cudnn_bytes)
            v->cudnn_bytes = plan[i]->workspace_bytes;
    v->cudnn_bytes = (v->cudnn_bytes + 255) / 256 * 256;
    return OK;
}

/* Queues a plan. x, w, y: addresses of the tensors X, W and Y; the plan writes one of the three. */
static void run_graph(const Op *op, const DnnPlan *plan, const OpRun *run, const void *x,
                      const void *w, const void *y)
{
    const Conv *v = op->impl;
    static const int64_t uid[] = {X, W, Y, BIAS};
    void *at[] = {(void *)(uintptr_t)x, (void *)(uintptr_t)w, (void *)(uintptr_t)y,
                  (void *)(uintptr_t)run->w[1]};
    bool with_bias = plan == v->forward && v->fuses_bias;
    dnn_run(plan, cuda_state(op)->dnn, with_bias ? 4 : 3, uid, at, run->workspace);
}

static Status conv_plan(Op *op, Desc preferred[SPEC_INPUTS])
{
    OpSpec *s = &op->spec;
    if (s->act != ACT_NONE && s->act != ACT_RELU && s->act != ACT_RELU6)
        return fail(ERR_BUG, "cuda: conv2d can fuse relu or relu6, and no other activation");
    if (!cuda_inputs_fit(op, preferred)) return OK;
    s->y = cuda_desc(op, s->y.shape);
    TRY(cudnn_open(cuda_state(op)));
    Conv *v = op->impl = mem_new(sizeof *v);
    v->weight_count = shape_count(s->w[0]);
    op->dx_adds = s->need_dx[0] && s->x_shared && !is_transposed(op);
    TRY(plan_graphs(op, v));
    const ConvShape n = conv_shape(s);
    const int64_t outputs = s->y.shape.dim[1], rows = shape_count(s->y.shape) / outputs;
    int64_t parts = cuda_sum_parts(s->y.dtype, rows, outputs);
    if (s->w_count > 1 && !v->fuses_bias && !is_16_bit(op))
        op->kernels = "cuDNN, the bias by weft's own kernels";
    size_t bias = s->w_count > 1 ? (size_t)(parts * outputs) * sizeof(float) : 0;
    size_t gradient = is_16_bit(op) ? (size_t)v->weight_count * dtype_bytes(s->y.dtype) : 0;
    op->workspace_bytes = v->cudnn_bytes + (bias > gradient ? bias : gradient);
    op->cache_bytes = is_16_bit(op) ? (size_t)v->weight_count * dtype_bytes(s->y.dtype) : 0;
    op->cache_is_copies = is_16_bit(op);
    if (op->cache_is_copies) op->copy_offset[1] = -1;
    for (int i = 0; i < s->w_count; ++i) op->w_elements[i] = shape_count(s->w[i]);
    op->needs_x[0] = !s->frozen;
    op->needs_y = s->act != ACT_NONE;
    op->weight_may_wait = true;
    op->flops_forward = 2.0 * (double)(n.n * n.o * n.p * n.q) * (double)(n.c / n.g * n.r * n.s);
    op->flops_backward = op->flops_forward * (s->need_dx[0] + !s->frozen);
    return OK;
}

/* Copies parameter i from the order of checkpoints to the stored order (to_stored = true), or back.
 * Weights are stored channels last, as images are. */
static void copy_parameter(const Op *op, int i, float *to, const float *from, bool to_stored)
{
    const ConvShape n = conv_shape(&op->spec);
    if (i == 0)
        cuda_permute(to, from, n.o, n.c / n.g, n.r * n.s, to_stored);
    else
        memcpy(to, from, (size_t)op->w_elements[i] * sizeof *to);
}

static void conv_pack(Op *op, int i, const float *plain, float *stored)
{
    copy_parameter(op, i, stored, plain, true);
}

static void conv_unpack(Op *op, int i, const float *stored, float *plain)
{
    copy_parameter(op, i, plain, stored, false);
}

static void conv_refresh(Op *op, const OpRun *run)
{
    const Conv *v = op->impl;
    if (is_16_bit(op))
        cuda_check(launch_convert(cuda_stream(op), op->spec.y.dtype, run->cache, DTYPE_F32,
                                  run->w[0], v->weight_count),
                   "kernel convert");
}

static const void *product_weights(const Op *op, const OpRun *run)
{
    return is_16_bit(op) ? run->cache : (const void *)run->w[0];
}

static void conv_forward(Op *op, const OpRun *run)
{
    const Conv *v = op->impl;
    const OpSpec *s = &op->spec;
    if (is_transposed(op))
        run_graph(op, v->data, run, run->y, product_weights(op, run), run->x[0]);
    else
        run_graph(op, v->forward, run, run->x[0], product_weights(op, run), run->y);
    if (v->fuses_bias) return;
    if (s->w_count > 1) {
        const int64_t outputs = s->y.shape.dim[1], rows = shape_count(s->y.shape) / outputs;
        AddRowRun bias = {s->y.dtype, s->act, run->y, run->y, run->w[1], rows, rows, outputs};
        cuda_check(launch_add_row(cuda_stream(op), bias), "kernel add_row");
    } else if (s->act != ACT_NONE) {
        cuda_check(launch_activation(cuda_stream(op), s->y.dtype, s->act, 0, run->y, run->y,
                                     shape_count(s->y.shape)),
                   "kernel activation");
    }
}

static void conv_backward_begin(Op *op, const OpRun *run)
{
    if (op->spec.act == ACT_NONE) return;
    cuda_check(launch_activation_backward(cuda_stream(op), op->spec.y.dtype, op->spec.act, 0,
                                          run->dy, run->dy, run->y, shape_count(op->spec.y.shape)),
               "kernel activation_backward");
}

static void conv_backward_data(Op *op, const OpRun *run)
{
    const Conv *v = op->impl;
    const DnnPlan *data = run->dx_add ? v->data_added : v->data;
    if (!run->dx[0]) return;
    if (is_transposed(op))
        run_graph(op, v->forward, run, run->dy, product_weights(op, run), run->dx[0]);
    else
        run_graph(op, data, run, run->dx[0], product_weights(op, run), run->dy);
}

static void conv_backward_weight(Op *op, const OpRun *run)
{
    const Conv *v = op->impl;
    const Shape y = op->spec.y.shape;
    const bool transposed = is_transposed(op);
    void *scratch = (char *)run->workspace + v->cudnn_bytes,
         *dw = is_16_bit(op) ? scratch : run->dw[0];
    run_graph(op, v->weight, run, transposed ? run->dy : run->x[0], dw,
              transposed ? run->x[0] : run->dy);
    if (is_16_bit(op))
        cuda_check(launch_convert(cuda_stream(op), DTYPE_F32, run->dw[0], op->spec.y.dtype, dw,
                                  v->weight_count),
                   "kernel convert");
    if (op->spec.w_count > 1)
        cuda_check(launch_column_sum(cuda_stream(op), op->spec.y.dtype, run->dw[1], scratch,
                                     run->dy, shape_count(y) / y.dim[1], y.dim[1], y.dim[1]),
                   "kernel column_sum");
}

static void conv_free(Op *op)
{
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

const OpTable cuda_conv_transpose2d = {
    .name = "conv_transpose2d",
    .plan = conv_plan,
    .refresh = conv_refresh,
    .forward = conv_forward,
    .backward_data = conv_backward_data,
    .backward_weight = conv_backward_weight,
    .pack = conv_pack,
    .unpack = conv_unpack,
    .free = conv_free,
};
