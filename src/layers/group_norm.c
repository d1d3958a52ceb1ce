/* group_norm (Wu & He 2018): each sample's channels in `groups` equal groups of neighbours, with
 * PyTorch's names. */
#include "kinds.h"

static const char *const attrs[] = {"groups", "eps", NULL};

static void defaults(OpSpec *spec, LayerSize *size)
{
    (void)size;
    /* the paper's */
    spec->groups = 32;
    spec->eps = 1e-5f;
}

static Status infer(OpSpec *spec, const LayerSize *size, LayerParam param[SPEC_PARAMS])
{
    (void)size;
    TRY(need_floats(spec, "group_norm", 4, 4, "images (N,C,H,W)"));
    Shape x = spec->x[0].shape;
    if (x.dim[1] % spec->groups != 0)
        return fail(ERR_CONFIG,
                    "group_norm: groups (%d) must divide the channels (%lld): set groups",
                    spec->groups, (long long)x.dim[1]);
    spec->y = desc_plain(x, DTYPE_F32);
    spec->w_count = 2;
    for (int i = 0; i < 2; ++i) spec->w[i] = shape_of(1, x.dim[1], 1, 1, 1);
    param[0] = (LayerParam){.name = "weight", .init = INIT_ONE};
    param[1] = (LayerParam){.name = "bias", .init = INIT_ZERO};
    return OK;
}

const LayerKind kind_group_norm = {
    .name = "group_norm",
    .op = OP_GROUP_NORM,
    .attrs = attrs,
    .inputs = 1,
    .channels = CHANNELS_KEEP,
    .help = "normalises groups of a sample's channels",
    .defaults = defaults,
    .infer = infer,
};
