/* The list of all kinds of layer, checks of their tables, and helpers that their shape rules share.
 * A new kind is a file with its table, kind_NAME, and one line in the list. */
#include "kinds.h"

#include <string.h>

/* clang-format off: one kind on each line; a new one goes above the last line */
#define LAYERS(_)                                                                                  \
    _(dense)                                                                                       \
    _(conv2d)                                                                                      \
    _(batch_norm)                                                                                  \
    _(layer_norm)                                                                                  \
    _(relu)                                                                                        \
    _(relu6)                                                                                       \
    _(gelu)                                                                                        \
    _(silu)                                                                                        \
    _(tanh)                                                                                        \
    _(sigmoid)                                                                                     \
    _(elu)                                                                                         \
    _(leaky_relu)                                                                                  \
    _(softplus)                                                                                    \
    _(mish)                                                                                        \
    _(hardswish)                                                                                   \
    _(max_pool)                                                                                    \
    _(avg_pool)                                                                                    \
    _(global_pool)                                                                                 \
    _(upsample)                                                                                    \
    _(concat)                                                                                      \
    _(film)                                                                                        \
    _(flatten)                                                                                     \
    _(dropout)                                                                                     \
    _(dropout2d)                                                                                   \
    _(embedding)                                                                                   \
    _(positions)                                                                                   \
    _(attention)                                                                                   \
    _(group_norm)                                                                                  \
    _(instance_norm)                                                                               \
    _(rms_norm)                                                                                    \
    _(swiglu)                                                                                      \
    _(bag)                                                                                         \
    _(interaction)                                                                                 \
    _(fm)                                                                                          \
    _(numeric_embedding)                                                                           \
    _(detect)                                                                                      \
    _(conv_transpose2d)                                                                            \
    _(pixel_shuffle)                                                                               \
    _(pixels_to_tokens)                                                                            \
    _(tokens_to_pixels)                                                                            \
    _(pad)                                                                                         \
    _(crop)                                                                                        \
    _(softmax_loss)                                                                                \
    _(mse_loss)                                                                                    \
    _(l1_loss)                                                                                     \
    _(huber_loss)                                                                                  \
    _(charbonnier_loss)                                                                            \
    _(sigmoid_loss)                                                                                \
    _(focal_loss)                                                                                  \
    _(dice_loss)                                                                                   \
    _(iou_loss)                                                                                    \
    _(yolo_loss)
/* clang-format on */

#define DECLARE(name) extern const LayerKind kind_##name;
#define ENTRY(name)   &kind_##name,
LAYERS(DECLARE)
static const LayerKind *const kinds[] = {LAYERS(ENTRY)};
enum { KINDS = sizeof kinds / sizeof *kinds };

/* ---- operations that are layers without a file here (OpInfo.layer_inputs) ---- */

static Status op_layer_infer(OpSpec *spec, const LayerSize *size, LayerParam param[SPEC_PARAMS])
{
    char a[64], b[64];
    const char *name = op_info(spec->kind)->name;
    (void)size;
    (void)param;
    TRY(check_floats(spec, name, 2, 4, "(N,C), (N,T,C) or (N,C,H,W)"));
    for (int i = 1; i < spec->x_count; ++i)
        if (!shape_equal(spec->x[i].shape, spec->x[0].shape))
            return fail(ERR_CONFIG, "%s got %s and %s, needs two equal shapes", name,
                        shape_text(spec->x[0].shape, a), shape_text(spec->x[i].shape, b));
    spec->y = desc_plain(spec->x[0].shape, DTYPE_F32);
    return OK;
}

static OnnxValue op_layer_onnx(const OnnxLayer *l)
{
    return onnx_add_node(l, op_info(l->spec->kind)->layer_onnx, NULL, l->x, l->spec->x_count);
}

/* Returns the kind of an operation with OpInfo.layer_inputs. It is in static memory. */
static const LayerKind *op_layer_kind(OpKind op)
{
    /* each call for an operation writes the same values */
    static LayerKind kind_of_op[OP_KINDS];
    const OpInfo *info = op_info(op);
    kind_of_op[op] =
        (LayerKind){.name = info->name,
                    .op = op,
                    .inputs = info->layer_inputs,
                    .channels = info->layer_inputs > 1 ? CHANNELS_UNITE : CHANNELS_KEEP,
                    .help = info->layer_help,
                    .infer = op_layer_infer,
                    .onnx = info->layer_onnx ? op_layer_onnx : NULL};
    return &kind_of_op[op];
}

const LayerKind *layer_kind_at(int i)
{
    if (i < KINDS) return kinds[i];
    i -= KINDS;
    for (OpKind op = OP_NONE + 1; op < OP_KINDS; ++op)
        if (op_info(op)->layer_inputs > 0 && i-- == 0) return op_layer_kind(op);
    return NULL;
}

const LayerKind *layer_kind(const char *name)
{
    const LayerKind *kind;
    for (int i = 0; (kind = layer_kind_at(i)); ++i)
        if (strcmp(kind->name, name) == 0) return kind;
    return NULL;
}

Status layer_kind_check(const LayerKind *kind)
{
    const OpInfo *info = op_info(kind->op);
    const LossInfo *loss = kind->loss;
    const char *fault = !info               ? ".op is no operation"
                        : kind->inputs == 0 ? ".inputs is 0"
                        : kind->inputs < INPUTS_ONE_OR_MORE || kind->inputs > SPEC_INPUTS
                            ? ".inputs is out of range"
                        : kind->channels == CHANNELS_UNSET   ? ".channels is not given"
                        : !kind->help                        ? ".help is not given"
                        : !kind->infer                       ? ".infer is not given"
                        : op_is_loss(info) != (loss != NULL) ? ".loss is for losses"
                        : !loss                              ? NULL
                        : !loss->word.word                   ? ".loss: .word is not given"
                        : !loss->results                     ? ".loss: .results is not given"
                        : !loss->outputs                     ? ".loss: .outputs is not given"
                        : !loss->reads                       ? ".loss: .reads is not given"
                        : (loss->reads == LOSS_READS_TARGETS) != (info->reads == READS_TARGETS) ||
                                (loss->reads == LOSS_READS_BOXES) != (info->reads == READS_BOXES)
                            ? ".loss: .reads is not what its operation reads"
                            : NULL;
    return row_check("layer kind", kind->name, kind->name ? fault : ".name is not given");
}

Status layers_check(void)
{
    const LayerKind *kind;
    for (int i = 0; (kind = layer_kind_at(i)); ++i) {
        TRY(layer_kind_check(kind));
        for (const char *const *attr = kind->attrs; attr && *attr; ++attr) {
            const char *fault = layer_attr_fault(kind->op, *attr);
            if (fault)
                return fail(ERR_BUG, "layer kind %s: attribute %s: %s", kind->name, *attr, fault);
        }
    }
    return OK;
}

Status layer_begin(const LayerKind *kind, OpSpec *spec, LayerSize *size)
{
    TRY(layer_kind_check(kind));
    spec->kind = kind->op;
    if (kind->defaults) kind->defaults(spec, size);
    return OK;
}

Status layer_infer_shapes(const LayerKind *kind, OpSpec *spec, const LayerSize *size,
                          LayerParam param[SPEC_PARAMS])
{
    spec->y = (Desc){0};
    spec->w_count = 0;
    memset(spec->w, 0, sizeof spec->w);
    memset(param, 0, SPEC_PARAMS * sizeof *param);
    TRY(kind->infer(spec, size, param));
    if (spec->y.shape.ndim == 0) return fail(ERR_BUG, "layer kind %s: y has no shape", kind->name);
    for (int i = 0; i < SPEC_PARAMS; ++i) {
        bool has_shape = spec->w[i].ndim > 0, counted = i < spec->w_count;
        LayerParam *p = &param[i];
        p->is_statistic = p->use == USE_STATISTIC;
        p->decay = p->use == USE_DECAYED;
        p->channel_scale = p->use == USE_CHANNEL_SCALE;
        if (counted && p->name && !(p->init && p->use))
            return fail(ERR_BUG, "layer kind %s: parameter %s has no .%s", kind->name, p->name,
                        p->init ? "use" : "init");
        if (counted && !(has_shape && param[i].name))
            return fail(ERR_BUG, "layer kind %s: parameter %d has no %s", kind->name, i + 1,
                        has_shape ? "name" : "shape");
        if (!counted && (has_shape || param[i].name))
            return fail(ERR_BUG, "layer kind %s: w_count is %d, but there is a parameter %d",
                        kind->name, spec->w_count, i + 1);
    }
    const OpInfo *info = op_info(kind->op);
    const bool has = info->params != PARAMS_NONE && info->params != PARAMS_SPARSE_ROWS;
    if (spec->w_count > 0 ? !has : has && !info->runs_without_params)
        return fail(ERR_BUG,
                    "layer kind %s: w_count is %d, which contradicts .params of its operation",
                    kind->name, spec->w_count);
    return OK;
}

Status check_class_weights(const OpSpec *spec, const char *kind)
{
    char text[64];
    const Shape x = spec->x[0].shape;
    const int count = spec->class_weights.count;
    if (count == 0 || (x.ndim == 4 && x.dim[1] == count)) return OK;
    if (x.ndim < 4)
        return fail(ERR_CONFIG,
                    "%s got %s: class_weights are for a label for each pixel, (N,C,H,W); a "
                    "sample's mean over its only label does not depend on them",
                    kind, shape_text(x, text));
    return fail(ERR_CONFIG, "%s got %s and %d class_weights: each channel needs one", kind,
                shape_text(x, text), count);
}

Status check_floats(const OpSpec *spec, const char *kind, int lowest, int highest,
                    const char *needs)
{
    char text[64];
    for (int i = 0; i < spec->x_count; ++i) {
        Shape x = spec->x[i].shape;
        if (spec->x[i].dtype != DTYPE_F32)
            return fail(ERR_CONFIG,
                        "%s got integer tokens %s, needs numbers: put embedding before it", kind,
                        shape_text(x, text));
        if (x.ndim < lowest || x.ndim > highest)
            return fail(ERR_CONFIG, "%s got %s, needs %s%s", kind, shape_text(x, text), needs,
                        highest < 4 && x.ndim == 4 ? ": put flatten before it" : "");
    }
    return OK;
}

Status check_conv(const OpSpec *spec, const LayerSize *size, const char *kind)
{
    TRY(check_floats(spec, kind, 4, 4, "images (N,C,H,W)"));
    const int64_t groups = spec->groups, in = spec->x[0].shape.dim[1], out = size->width;
    if (out < 1)
        return fail(ERR_CONFIG, "%s needs channels, the number of its output channels", kind);
    if (in % groups == 0 && out % groups == 0) return OK;
    return fail(ERR_CONFIG, "%s: groups %lld must divide the channels in (%lld) and out (%lld)",
                kind, (long long)groups, (long long)in, (long long)out);
}

Status window_infer(OpSpec *spec, const char *kind, int64_t out[2])
{
    static const char *const side[2] = {"height", "width"};
    for (int d = 0; d < 2; ++d) {
        int k = spec->kernel[d];
        int64_t size = spec->x[0].shape.dim[2 + d];
        if (k < 1) return fail(ERR_CONFIG, "%s needs kernel, for example kernel: 3", kind);
        if (spec->pad[d] == PADDING_SAME) {
            if (k % 2 == 0)
                return fail(ERR_CONFIG, "%s: pad: same needs an odd kernel, got %d", kind, k);
            spec->pad[d] = (k - 1) / 2;
        }
        if (size + 2 * spec->pad[d] < k)
            return fail(
                ERR_CONFIG,
                "%s: a kernel of %d does not fit an input %s of %lld with pad %d: the images are "
                "too small for this place in the model",
                kind, k, side[d], (long long)size, spec->pad[d]);
        out[d] = (size + 2 * spec->pad[d] - k) / spec->stride[d] + 1;
    }
    return OK;
}

Status vectors_infer(OpSpec *spec, const LayerSize *size, const char *kind, int least)
{
    char text[64];
    TRY(check_floats(spec, kind, 2, 2, "vectors side by side (N,n*width)"));
    if (size->width < 1) return fail(ERR_CONFIG, "%s needs width, the length of a vector", kind);
    const Shape x = spec->x[0].shape;
    if (x.dim[1] % size->width != 0 || x.dim[1] < least * size->width)
        return fail(ERR_CONFIG, "%s got %s, which is not %d or more vectors of %lld side by side",
                    kind, shape_text(x, text), least, (long long)size->width);
    spec->row_width = (int)size->width;
    return OK;
}

void window_onnx(const OnnxLayer *l)
{
    const OpSpec *s = l->spec;
    onnx_attr_ints(l, "kernel_shape", 2, (const int64_t[]){s->kernel[0], s->kernel[1]});
    onnx_attr_ints(l, "pads", 4, (const int64_t[]){s->pad[0], s->pad[1], s->pad[0], s->pad[1]});
    onnx_attr_ints(l, "strides", 2, (const int64_t[]){s->stride[0], s->stride[1]});
}

void set_norm_params(OpSpec *spec, LayerParam param[SPEC_PARAMS], int64_t n, bool shift)
{
    spec->w_count = shift ? 2 : 1;
    for (int i = 0; i < spec->w_count; ++i) spec->w[i] = shape_of(1, n, 1, 1, 1);
    param[0] = (LayerParam){.name = "weight", .init = INIT_ONE, .use = USE_UNDECAYED};
    if (shift) param[1] = (LayerParam){.name = "bias", .init = INIT_ZERO, .use = USE_UNDECAYED};
}

void set_weight_and_bias(OpSpec *spec, const LayerSize *size, LayerParam param[SPEC_PARAMS],
                         Shape weight, int64_t n)
{
    const bool uniform = size->init == INIT_UNIFORM || size->init == INIT_UNIFORM_FP16;
    int64_t fan_in = shape_count(weight) / weight.dim[0];
    spec->w[0] = weight;
    spec->w_count = 1;
    param[0] = (LayerParam){
        .name = "weight", .init = size->init, .scale = size->init_std, .use = USE_DECAYED};
    if (uniform) param[0].scale = 0;
    if (!size->bias) return;
    spec->w[1] = shape_of(1, n, 1, 1, 1);
    spec->w_count = 2;
    param[1] = (LayerParam){.name = "bias", .init = INIT_ZERO, .use = USE_UNDECAYED};
    if (uniform) {
        param[1].init = size->init;
        param[1].scale = (float)fan_in;
    }
}
