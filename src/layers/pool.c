/* max_pool, avg_pool and global_pool for images. avg_pool leaves padding out of the mean;
 * global_pool computes the mean of each channel. */
#include "kinds.h"

static const char *const attrs[] = {"kernel", "stride", "pad", NULL};

static void max_defaults(OpSpec *spec, LayerSize *size)
{
    (void)size;
    spec->pool = POOL_MAX;
}
static void avg_defaults(OpSpec *spec, LayerSize *size)
{
    (void)size;
    spec->pool = POOL_AVG;
}
static void global_defaults(OpSpec *spec, LayerSize *size)
{
    (void)size;
    spec->pool = POOL_GLOBAL_AVG;
}

static const char *name_of(PoolMode mode)
{
    switch (mode) {
    case POOL_MAX:
        return "max_pool";
    case POOL_AVG:
        return "avg_pool";
    case POOL_GLOBAL_AVG:
        return "global_pool";
    }
    return "";
}

/* The default of the stride is the size of the kernel. Padding may be at most half of the kernel,
 * so that each window contains a pixel of the image. */
static Status infer(OpSpec *spec, const LayerSize *size, LayerParam param[SPEC_PARAMS])
{
    const char *kind = name_of(spec->pool);
    int64_t out[2];
    (void)size;
    (void)param;
    TRY(check_floats(spec, kind, 4, 4, "images (N,C,H,W)"));
    for (int d = 0; d < 2; ++d) {
        if (spec->stride[d] == 0) spec->stride[d] = spec->kernel[d] > 0 ? spec->kernel[d] : 1;
        if (spec->kernel[d] > 0 && spec->pad[d] > spec->kernel[d] / 2)
            return fail(ERR_CONFIG, "%s: pad %d is more than half of the kernel %d", kind,
                        spec->pad[d], spec->kernel[d]);
    }
    TRY(window_infer(spec, kind, out));
    Shape x = spec->x[0].shape;
    spec->y = desc_plain(shape_of(4, x.dim[0], x.dim[1], out[0], out[1]), DTYPE_F32);
    return OK;
}

static Status global_infer(OpSpec *spec, const LayerSize *size, LayerParam param[SPEC_PARAMS])
{
    (void)size;
    (void)param;
    TRY(check_floats(spec, name_of(spec->pool), 4, 4, "images (N,C,H,W)"));
    Shape x = spec->x[0].shape;
    spec->y = desc_plain(shape_of(4, x.dim[0], x.dim[1], 1, 1), DTYPE_F32);
    return OK;
}

static OnnxValue max_onnx(const OnnxLayer *l)
{
    OnnxValue y = onnx_add(l, "MaxPool", NULL, l->x[0]);
    window_onnx(l);
    return y;
}

static OnnxValue avg_onnx(const OnnxLayer *l)
{
    OnnxValue y = onnx_add(l, "AveragePool", NULL, l->x[0]);
    onnx_attr_int(l, "count_include_pad", 0);
    window_onnx(l);
    return y;
}

static OnnxValue global_onnx(const OnnxLayer *l)
{
    return onnx_add(l, "GlobalAveragePool", NULL, l->x[0]);
}

const LayerKind kind_max_pool = {
    .name = "max_pool",
    .op = OP_POOL,
    .attrs = attrs,
    .inputs = 1,
    .channels = CHANNELS_KEEP,
    .help = "the largest value of each window",
    .defaults = max_defaults,
    .infer = infer,
    .onnx = max_onnx,
};
const LayerKind kind_avg_pool = {
    .name = "avg_pool",
    .op = OP_POOL,
    .attrs = attrs,
    .inputs = 1,
    .channels = CHANNELS_KEEP,
    .help = "the mean of each window, without padding",
    .defaults = avg_defaults,
    .infer = infer,
    .onnx = avg_onnx,
};
const LayerKind kind_global_pool = {
    .name = "global_pool",
    .op = OP_POOL,
    .inputs = 1,
    .channels = CHANNELS_KEEP,
    .help = "the mean of each channel: (N,C,H,W) -> (N,C,1,1)",
    .defaults = global_defaults,
    .infer = global_infer,
    .onnx = global_onnx,
};
