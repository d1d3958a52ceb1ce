/* The list of all kinds of layer, and what their shape rules share. */
#include "kinds.h"

#include <string.h>

const LayerKind *const layer_kinds[] = {
    &kind_dense,     &kind_conv2d,       &kind_batch_norm,  &kind_layer_norm,
    &kind_relu,      &kind_relu6,        &kind_gelu,        &kind_silu,
    &kind_max_pool,  &kind_avg_pool,     &kind_global_pool, &kind_add,
    &kind_concat,    &kind_flatten,      &kind_dropout,     &kind_embedding,
    &kind_positions, &kind_attention,    &kind_group_norm,  &kind_rms_norm,
    &kind_swiglu,    &kind_softmax_loss, &kind_mse_loss,    NULL,
};

const LayerKind *layer_kind(const char *name)
{
    for (int i = 0; layer_kinds[i]; ++i)
        if (strcmp(layer_kinds[i]->name, name) == 0) return layer_kinds[i];
    return NULL;
}

Status need_floats(const OpSpec *spec, const char *kind, int lowest, int highest, const char *needs)
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

Status window_infer(OpSpec *spec, const char *kind, int64_t out[2])
{
    static const char *const side[2] = {"height", "width"};
    for (int d = 0; d < 2; ++d) {
        int k = spec->kernel[d];
        int64_t size = spec->x[0].shape.dim[2 + d];
        if (k < 1) return fail(ERR_CONFIG, "%s needs kernel, for example kernel: 3", kind);
        if (spec->pad[d] == PAD_SAME) {
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

void weight_bias(OpSpec *spec, const LayerSize *size, LayerParam param[OP_PARAMS], Shape weight,
                 int64_t n)
{
    int64_t fan_in = shape_count(weight) / weight.dim[0];
    spec->w[0] = weight;
    spec->w_count = 1;
    param[0] =
        (LayerParam){.name = "weight", .init = size->init, .scale = size->init_std, .decay = true};
    if (size->init == INIT_UNIFORM) param[0].scale = 0;
    if (!size->bias) return;
    spec->w[1] = shape_of(1, n, 1, 1, 1);
    spec->w_count = 2;
    param[1] = (LayerParam){.name = "bias", .init = INIT_ZERO};
    if (size->init == INIT_UNIFORM) {
        param[1].init = INIT_UNIFORM;
        param[1].scale = (float)fan_in;
    }
}
