/* channel_sum: each output channel is a sum of channels of the inputs. Rollouts, and models that
 * read only some channels of the data, insert this layer and set its sums. */
#include "kinds.h"

static Status infer(OpSpec *spec, const LayerSize *size, LayerParam param[SPEC_PARAMS])
{
    (void)size;
    (void)param;
    TRY(check_floats(spec, "channel_sum", 4, 4, "fields (N,C,H,W)"));
    Shape y = spec->x[0].shape;
    y.dim[1] = spec->sums;
    spec->y = desc_plain(y, DTYPE_F32);
    return OK;
}

/* Supports only sums of one channel, that is, a selection of channels. Other sums occur only in
 * graphs of rollouts, which are not exported. */
static OnnxValue to_onnx(const OnnxLayer *l)
{
    const OpSpec *s = l->spec;
    int64_t *channel = mem_new((size_t)s->sums * sizeof *channel);
    bool selects = s->x_count == 1;
    for (int i = 0; i < s->sums; ++i) {
        const ChannelSum *sum = &s->channel_sums[i];
        selects = selects && sum->terms == 1 && sum->term[0].factor == 1 && sum->shift == 0;
        channel[i] = sum->term[0].channel;
    }
    if (!selects) die("channel_sum: a sum of several channels has no ONNX form");
    const OnnxValue y = onnx_add(l, "Gather", NULL, l->x[0], onnx_int64s(l, s->sums, channel));
    onnx_attr_int(l, "axis", 1);
    mem_free(&channel);
    return y;
}

const LayerKind layer_channel_sum = {
    .name = "channel_sum",
    .op = OP_CHANNEL_SUM,
    .inputs = INPUTS_ONE_OR_MORE,
    .channels = CHANNELS_FIXED,
    .help = "sums of channels of several layers",
    .infer = infer,
    .onnx = to_onnx,
};
