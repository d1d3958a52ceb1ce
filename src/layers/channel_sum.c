/* channel_sum: channels that are sums of channels of the inputs. A rollout inserts it and sets its
 * sums. */
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

const LayerKind layer_channel_sum = {
    .name = "channel_sum",
    .op = OP_CHANNEL_SUM,
    .inputs = INPUTS_ONE_OR_MORE,
    .channels = CHANNELS_FIXED,
    .help = "sums of channels of several layers",
    .infer = infer,
};
