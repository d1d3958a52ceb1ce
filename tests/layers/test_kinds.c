/* Kinds of layer: the list, attributes as text, shape rules and their messages, initial values of
 * parameters. */
#include "layers.h"
#include "tensor/op_list.h"

#include "harness.h"

#include <math.h>

typedef struct Layer {
    const LayerKind *kind;
    OpSpec spec;
    LayerSize size;
    LayerParam param[SPEC_PARAMS];
} Layer;

static Layer layer_of(const char *name, Shape x)
{
    Layer l = {.kind = layer_kind(name)};
    l.spec.x_count = l.kind->inputs > 0 ? l.kind->inputs : 2;
    for (int i = 0; i < l.spec.x_count; ++i) l.spec.x[i] = desc_plain(x, DTYPE_F32);
    CHECK_OK(layer_begin(l.kind, &l.spec, &l.size));
    return l;
}

static Status set(Layer *l, const char *key, const char *value)
{
    return layer_set_attr(l->kind, &l->spec, &l->size, key, value);
}

static Status infer(Layer *l)
{
    return layer_infer_shapes(l->kind, &l->spec, &l->size, l->param);
}

static void check_shape(Shape got, Shape want)
{
    char a[64], b[64];
    CU_ASSERT(shape_equal(got, want));
    if (!shape_equal(got, want))
        printf("  got %s, want %s\n", shape_text(got, a), shape_text(want, b));
}

static void list(void)
{
    static const char *const names[] = {
        "dense",        "conv2d",   "batch_norm", "layer_norm", "relu",        "relu6",
        "gelu",         "silu",     "max_pool",   "avg_pool",   "global_pool", "add",
        "concat",       "flatten",  "dropout",    "embedding",  "positions",   "attention",
        "softmax_loss", "mse_loss", "group_norm", "rms_norm",   "swiglu"};
    int count = 0;
    for (const LayerKind *k; (k = layer_kind_at(count)); ++count) {
        CU_ASSERT_PTR_EQUAL(layer_kind(k->name), k);
        CU_ASSERT(k->help != NULL);
        layer_of(k->name, shape_of(2, 2, 8, 1, 1));
    }
    int known = (int)(sizeof names / sizeof names[0]);
    CU_ASSERT(count >= known);
    for (int i = 0; i < known; ++i) CU_ASSERT_PTR_NOT_NULL(layer_kind(names[i]));
    CU_ASSERT_PTR_NULL(layer_kind("conv3d"));
}

/* A norm with parameters has one that starts at 1. */
static void norms(void)
{
    const LayerKind *kind;
    int count = 0;
    for (int i = 0; (kind = layer_kind_at(i)); ++i) {
        bool scales = false;
        Layer l = layer_of(kind->name, shape_of(4, 2, 64, 8, 8));
        Layer flat = layer_of(kind->name, shape_of(2, 2, 64, 1, 1));
        l.size.width = flat.size.width = 8;
        Layer *one = infer(&l) == OK ? &l : infer(&flat) == OK ? &flat : NULL;
        for (int k = 0; one && k < one->spec.w_count; ++k)
            scales = scales || (one->param[k].init == INIT_ONE && !one->param[k].is_statistic);
        bool norm = op_info(kind->op)->params == PARAMS_NORM && one && one->spec.w_count > 0;
        CU_ASSERT(scales || !norm);
        if (norm && !scales) printf("  %s\n", kind->name);
        count += norm;
    }
    CU_ASSERT(count > 0);
}

/* layer_set_attr knows every attribute that a kind names: it never reports that one is not in the
 * table. */
static void attrs_known(void)
{
    const LayerKind *kind;
    for (int i = 0; (kind = layer_kind_at(i)); ++i)
        for (const char *const *a = kind->attrs; a && *a; ++a) {
            Layer l = layer_of(kind->name, shape_of(4, 2, 4, 8, 8));
            CU_ASSERT_NOT_EQUAL(set(&l, *a, "?"), ERR_BUG);
        }
}

static void attrs(void)
{
    Layer l = layer_of("conv2d", shape_of(4, 2, 8, 16, 12));
    CHECK_OK(set(&l, "channels", "32"));
    CHECK_OK(set(&l, "kernel", "3,5"));
    CHECK_OK(set(&l, "stride", "2"));
    CHECK_OK(set(&l, "pad", "same"));
    CHECK_OK(set(&l, "groups", "4"));
    CHECK_OK(set(&l, "bias", "false"));
    CHECK_OK(infer(&l));
    CU_ASSERT_EQUAL(l.spec.pad[0], 1);
    CU_ASSERT_EQUAL(l.spec.pad[1], 2);
    check_shape(l.spec.y.shape, shape_of(4, 2, 32, 8, 6));
    check_shape(l.spec.w[0], shape_of(4, 32, 2, 3, 5));
    CU_ASSERT_EQUAL(l.spec.w_count, 1);
}

static void bad_attrs(void)
{
    Layer l = layer_of("conv2d", shape_of(4, 2, 8, 16, 12));
    CHECK_FAILS(set(&l, "kernal", "3"), ERR_CONFIG, "did you mean 'kernel'");
    CHECK_FAILS(set(&l, "zzzzzzzzz", "3"), ERR_CONFIG, "it takes channels, kernel");
    CHECK_FAILS(set(&l, "kernel", "3x"), ERR_CONFIG, "neither a whole number nor a pair");
    CHECK_FAILS(set(&l, "kernel", "3,4,5"), ERR_CONFIG, "pair");
    CHECK_FAILS(set(&l, "kernel", ""), ERR_CONFIG, "pair");
    CHECK_FAILS(set(&l, "kernel", "0"), ERR_CONFIG, "out of range");
    CHECK_FAILS(set(&l, "kernel", "99999999999999999999"), ERR_CONFIG, "kernel");
    CHECK_FAILS(set(&l, "channels", "1e3"), ERR_CONFIG, "not a whole number");
    CHECK_FAILS(set(&l, "channels", "-4"), ERR_CONFIG, "out of range");
    CHECK_FAILS(set(&l, "groups", "2,2"), ERR_CONFIG, "not a whole number");
    CHECK_FAILS(set(&l, "pad", "valid"), ERR_CONFIG, "pad");
    CHECK_FAILS(set(&l, "bias", "yes"), ERR_CONFIG, "neither true nor false");
    CHECK_FAILS(set(&l, "init", "xavier"), ERR_CONFIG, "none of");
    l = layer_of("dropout", shape_of(2, 2, 8, 1, 1));
    CHECK_FAILS(set(&l, "p", "1"), ERR_CONFIG, "out of range");
    CHECK_FAILS(set(&l, "p", "nan"), ERR_CONFIG, "not a number");
    CHECK_FAILS(set(&l, "p", "0.5s"), ERR_CONFIG, "not a number");
    CHECK_OK(set(&l, "p", "0.25"));
    CU_ASSERT_EQUAL(l.spec.drop, 0.25f);
    l = layer_of("relu", shape_of(2, 2, 8, 1, 1));
    CHECK_FAILS(set(&l, "p", "1"), ERR_CONFIG, "relu takes no attribute");
}

static void shapes(void)
{
    Layer l = layer_of("dense", shape_of(3, 2, 5, 7, 1));
    CHECK_OK(set(&l, "width", "11"));
    CHECK_OK(infer(&l));
    check_shape(l.spec.y.shape, shape_of(3, 2, 5, 11, 1));
    check_shape(l.spec.w[0], shape_of(2, 11, 7, 1, 1));
    check_shape(l.spec.w[1], shape_of(1, 11, 1, 1, 1));
    CU_ASSERT(l.param[0].decay && !l.param[1].decay);
    l = layer_of("max_pool", shape_of(4, 2, 3, 7, 9));
    CHECK_OK(set(&l, "kernel", "3"));
    CHECK_OK(infer(&l));
    check_shape(l.spec.y.shape, shape_of(4, 2, 3, 2, 3));
    l = layer_of("max_pool", shape_of(4, 2, 3, 112, 112));
    CHECK_OK(set(&l, "kernel", "3"));
    CHECK_OK(set(&l, "stride", "2"));
    CHECK_OK(set(&l, "pad", "1"));
    CHECK_OK(infer(&l));
    check_shape(l.spec.y.shape, shape_of(4, 2, 3, 56, 56));
    l = layer_of("global_pool", shape_of(4, 2, 3, 7, 9));
    CHECK_OK(infer(&l));
    check_shape(l.spec.y.shape, shape_of(4, 2, 3, 1, 1));
    l = layer_of("upsample", shape_of(4, 2, 3, 7, 9));
    CHECK_OK(infer(&l));
    check_shape(l.spec.y.shape, shape_of(4, 2, 3, 14, 18));
    CHECK_OK(set(&l, "scale", "3"));
    CHECK_OK(infer(&l));
    check_shape(l.spec.y.shape, shape_of(4, 2, 3, 21, 27));
    CHECK_FAILS(set(&l, "scale", "0"), ERR_CONFIG, "out of range");
    l = layer_of("upsample", shape_of(3, 2, 5, 8, 1));
    CHECK_FAILS(infer(&l), ERR_CONFIG, "upsample got 2x5x8, needs images");
    l = layer_of("flatten", shape_of(4, 2, 3, 7, 9));
    CHECK_OK(infer(&l));
    check_shape(l.spec.y.shape, shape_of(2, 2, 189, 1, 1));
    l = layer_of("concat", shape_of(4, 2, 3, 7, 9));
    l.spec.x[1].shape.dim[1] = 5;
    CHECK_OK(infer(&l));
    check_shape(l.spec.y.shape, shape_of(4, 2, 8, 7, 9));
    l = layer_of("batch_norm", shape_of(4, 2, 3, 7, 9));
    CHECK_OK(infer(&l));
    CU_ASSERT_EQUAL(l.spec.w_count, 4);
    CU_ASSERT(!l.param[1].is_statistic && l.param[2].is_statistic && l.param[3].is_statistic &&
              !l.param[0].decay);
    l = layer_of("layer_norm", shape_of(3, 2, 3, 7, 1));
    CHECK_OK(infer(&l));
    check_shape(l.spec.w[0], shape_of(1, 7, 1, 1, 1));
    l = layer_of("softmax_loss", shape_of(3, 2, 5, 7, 1));
    CHECK_OK(infer(&l));
    check_shape(l.spec.y.shape, shape_of(2, 10, LOSS_COLUMNS, 1, 1));
    l = layer_of("embedding", shape_of(2, 2, 5, 1, 1));
    l.spec.x[0].dtype = DTYPE_I32;
    CHECK_OK(set(&l, "vocab", "100"));
    CHECK_OK(set(&l, "width", "8"));
    CHECK_OK(infer(&l));
    check_shape(l.spec.y.shape, shape_of(3, 2, 5, 8, 1));
    check_shape(l.spec.w[0], shape_of(2, 100, 8, 1, 1));
    l = layer_of("positions", shape_of(3, 2, 5, 8, 1));
    CHECK_OK(set(&l, "context", "16"));
    CHECK_OK(infer(&l));
    check_shape(l.spec.y.shape, shape_of(3, 2, 5, 8, 1));
    check_shape(l.spec.w[0], shape_of(2, 16, 8, 1, 1));
    CU_ASSERT(l.param[0].decay && l.param[0].init == INIT_NORMAL && l.param[0].scale == 0.02f);
    l = layer_of("attention", shape_of(3, 2, 5, 24, 1));
    CHECK_OK(set(&l, "heads", "4"));
    CHECK_OK(set(&l, "rotary", "true"));
    CHECK_OK(infer(&l));
    check_shape(l.spec.y.shape, shape_of(3, 2, 5, 8, 1));
    CU_ASSERT(l.spec.rotary && l.spec.heads == 4 && l.spec.w_count == 0);
    l = layer_of("attention", shape_of(3, 2, 5, 64, 1));
    CHECK_OK(set(&l, "heads", "6"));
    CHECK_OK(set(&l, "kv_heads", "1"));
    CHECK_OK(infer(&l));
    check_shape(l.spec.y.shape, shape_of(3, 2, 5, 48, 1));
    l = layer_of("swiglu", shape_of(3, 2, 5, 10, 1));
    CHECK_OK(infer(&l));
    check_shape(l.spec.y.shape, shape_of(3, 2, 5, 5, 1));
    l = layer_of("rms_norm", shape_of(3, 2, 3, 7, 1));
    CHECK_OK(infer(&l));
    check_shape(l.spec.w[0], shape_of(1, 7, 1, 1, 1));
    CU_ASSERT(l.spec.w_count == 1 && l.param[0].init == INIT_ONE && !l.param[0].decay);
    l = layer_of("group_norm", shape_of(4, 2, 64, 7, 9));
    CHECK_OK(infer(&l));
    check_shape(l.spec.w[1], shape_of(1, 64, 1, 1, 1));
    CU_ASSERT(l.spec.w_count == 2 && l.spec.groups == 32 && l.param[1].init == INIT_ZERO);
    l = layer_of("instance_norm", shape_of(4, 2, 5, 7, 9));
    CHECK_OK(infer(&l));
    CU_ASSERT(l.spec.w_count == 0 && l.spec.groups == 5);
    CHECK_OK(set(&l, "affine", "true"));
    CHECK_OK(infer(&l));
    CU_ASSERT(l.spec.w_count == 2 && l.param[0].init == INIT_ONE);
}

static void bad_shapes(void)
{
    Layer l = layer_of("dense", shape_of(4, 2, 5, 7, 7));
    CHECK_OK(set(&l, "width", "11"));
    CHECK_FAILS(infer(&l), ERR_CONFIG, "put flatten before it");
    l = layer_of("dense", shape_of(2, 2, 5, 1, 1));
    CHECK_FAILS(infer(&l), ERR_CONFIG, "needs width");
    l = layer_of("instance_norm", shape_of(4, 2, 5, 1, 1));
    CHECK_FAILS(infer(&l), ERR_CONFIG, "instance_norm got 2x5x1x1: each channel is one number");
    l = layer_of("film", shape_of(4, 2, 5, 4, 4));
    CHECK_FAILS(infer(&l), ERR_CONFIG, "film got 2x5x4x4 and 2x5x4x4, needs images");
    l.spec.x[1].shape = shape_of(2, 2, 10, 1, 1);
    CHECK_OK(infer(&l));
    l = layer_of("dropout2d", shape_of(2, 2, 5, 1, 1));
    CHECK_FAILS(infer(&l), ERR_CONFIG, "dropout2d got 2x5, needs images");
    l = layer_of("conv2d", shape_of(2, 2, 5, 1, 1));
    CHECK_FAILS(infer(&l), ERR_CONFIG, "conv2d got 2x5, needs images");
    l = layer_of("conv2d", shape_of(4, 2, 5, 4, 4));
    CHECK_FAILS(infer(&l), ERR_CONFIG, "needs channels");
    CHECK_OK(set(&l, "channels", "8"));
    CHECK_FAILS(infer(&l), ERR_CONFIG, "needs kernel");
    CHECK_OK(set(&l, "kernel", "4"));
    CHECK_OK(set(&l, "pad", "same"));
    CHECK_FAILS(infer(&l), ERR_CONFIG, "odd kernel");
    CHECK_OK(set(&l, "pad", "0"));
    CHECK_OK(set(&l, "kernel", "5"));
    CHECK_FAILS(infer(&l), ERR_CONFIG, "too small");
    CHECK_OK(set(&l, "kernel", "1"));
    CHECK_OK(set(&l, "groups", "2"));
    CHECK_FAILS(infer(&l), ERR_CONFIG, "must divide the channels in (5)");
    l = layer_of("avg_pool", shape_of(4, 2, 5, 4, 4));
    CHECK_OK(set(&l, "kernel", "2"));
    CHECK_OK(set(&l, "pad", "2"));
    CHECK_FAILS(infer(&l), ERR_CONFIG, "more than half");
    l = layer_of("add", shape_of(4, 2, 5, 4, 4));
    l.spec.x[1].shape.dim[1] = 6;
    CHECK_FAILS(infer(&l), ERR_CONFIG, "two equal shapes");
    l = layer_of("concat", shape_of(4, 2, 5, 4, 4));
    l.spec.x[1].shape.dim[2] = 6;
    CHECK_FAILS(infer(&l), ERR_CONFIG, "only in channels");
    l = layer_of("embedding", shape_of(2, 2, 5, 1, 1));
    CHECK_FAILS(infer(&l), ERR_CONFIG, "needs integer tokens");
    l = layer_of("positions", shape_of(3, 2, 5, 8, 1));
    CHECK_FAILS(infer(&l), ERR_CONFIG, "needs context");
    CHECK_OK(set(&l, "context", "4"));
    CHECK_FAILS(infer(&l), ERR_CONFIG, "sequences of 5, its context is 4");
    l = layer_of("attention", shape_of(3, 2, 5, 30, 1));
    CHECK_FAILS(infer(&l), ERR_CONFIG, "needs heads");
    CHECK_OK(set(&l, "heads", "4"));
    CHECK_FAILS(infer(&l), ERR_CONFIG, "heads (4) must divide the width (10)");
    CHECK_OK(set(&l, "heads", "2"));
    CHECK_OK(infer(&l));
    CHECK_OK(set(&l, "rotary", "true"));
    CHECK_FAILS(infer(&l), ERR_CONFIG, "width is odd (5)");
    l.spec.x[0] = desc_plain(shape_of(3, 2, 5, 31, 1), DTYPE_F32);
    CHECK_FAILS(infer(&l), ERR_CONFIG, "side by side");
    l.spec.x[0] = desc_plain(shape_of(2, 2, 30, 1, 1), DTYPE_F32);
    CHECK_FAILS(infer(&l), ERR_CONFIG, "attention got 2x30");
    l = layer_of("attention", shape_of(3, 2, 5, 30, 1));
    CHECK_OK(set(&l, "heads", "6"));
    CHECK_OK(set(&l, "rotary_base", "100"));
    CHECK_OK(set(&l, "kv_heads", "4"));
    CHECK_FAILS(infer(&l), ERR_CONFIG, "kv_heads (4) must divide heads (6)");
    CHECK_OK(set(&l, "kv_heads", "3"));
    CHECK_FAILS(infer(&l), ERR_CONFIG, "a dense layer of a multiple of 12");
    CHECK_OK(set(&l, "kv_heads", "2"));
    CHECK_FAILS(infer(&l), ERR_CONFIG, "rotary_base needs rotary");
    l = layer_of("attention", shape_of(3, 2, 5, 48, 1));
    CHECK_OK(set(&l, "heads", "2"));
    CHECK_OK(set(&l, "rotary", "true"));
    CHECK_FAILS(set(&l, "rope_type", "su"), ERR_CONFIG, "'su' is none of default, linear");
    CHECK_FAILS(set(&l, "rope_factor", "0.5"), ERR_CONFIG, "out of range");
    CHECK_OK(set(&l, "rope_type", "llama3"));
    CHECK_FAILS(infer(&l), ERR_CONFIG, "rope_type llama3 needs rope_factor");
    CHECK_OK(set(&l, "rope_factor", "8"));
    CHECK_FAILS(infer(&l), ERR_CONFIG, "needs rope_original_max_position_embeddings");
    CHECK_OK(set(&l, "rope_original_max_position_embeddings", "64"));
    CHECK_OK(set(&l, "rope_low_freq_factor", "4"));
    CHECK_OK(set(&l, "rope_high_freq_factor", "4"));
    CHECK_FAILS(infer(&l), ERR_CONFIG, "must be below");
    CHECK_OK(set(&l, "rope_low_freq_factor", "1"));
    CHECK_OK(infer(&l));
    CHECK_OK(set(&l, "rope_beta_fast", "32"));
    CHECK_FAILS(infer(&l), ERR_CONFIG, "rope_type llama3 does not use rope_beta_fast");
    l = layer_of("swiglu", shape_of(2, 2, 5, 1, 1));
    CHECK_FAILS(infer(&l), ERR_CONFIG, "a dense layer of an even width");
    l = layer_of("swiglu", shape_of(4, 2, 6, 4, 4));
    CHECK_FAILS(infer(&l), ERR_CONFIG, "put flatten before it");
    l = layer_of("group_norm", shape_of(4, 2, 48, 4, 4));
    CHECK_FAILS(infer(&l), ERR_CONFIG, "groups (32) must divide the channels (48)");
    /* a group of one number: as many groups as channels, and one pixel */
    l = layer_of("group_norm", shape_of(4, 2, 48, 1, 1));
    CHECK_OK(set(&l, "groups", "48"));
    CHECK_FAILS(infer(&l), ERR_CONFIG, "each group is one number");
    CHECK_FAILS(infer(&l), ERR_CONFIG, "set fewer groups than the 48 channels");
    CHECK_OK(set(&l, "groups", "24"));
    CHECK_OK(infer(&l));
    l = layer_of("group_norm", shape_of(4, 2, 48, 1, 2));
    CHECK_OK(set(&l, "groups", "48"));
    CHECK_OK(infer(&l));
    l = layer_of("group_norm", shape_of(4, 1, 1, 1, 1));
    CHECK_OK(set(&l, "groups", "1"));
    CHECK_FAILS(infer(&l), ERR_CONFIG, "each group is one number");
    l = layer_of("group_norm", shape_of(3, 2, 5, 48, 1));
    CHECK_FAILS(infer(&l), ERR_CONFIG, "needs images");
    l = layer_of("rms_norm", shape_of(4, 2, 5, 4, 4));
    CHECK_FAILS(infer(&l), ERR_CONFIG, "rms_norm got 2x5x4x4");
    l = layer_of("relu", shape_of(2, 2, 5, 1, 1));
    l.spec.x[0].dtype = DTYPE_I32;
    CHECK_FAILS(infer(&l), ERR_CONFIG, "put embedding before it");
}

/* ---- incomplete rows ---- */

static Status forgets_y(OpSpec *spec, const LayerSize *size, LayerParam param[SPEC_PARAMS])
{
    (void)spec, (void)size, (void)param;
    return OK;
}

/* Declares size->width parameters and sets one. */
static Status forgets_some(OpSpec *spec, const LayerSize *size, LayerParam param[SPEC_PARAMS])
{
    spec->y = spec->x[0];
    spec->w[0] = spec->x[0].shape;
    param[0] = (LayerParam){.name = "weight", .init = INIT_ONE, .use = USE_UNDECAYED};
    if (size->bias) spec->w[1] = spec->x[0].shape;
    spec->w_count = (int)size->width;
    return OK;
}

static void bad_rows(void)
{
    const LayerKind good = {.name = "lacking",
                            .op = OP_LAYER_NORM,
                            .inputs = 1,
                            .channels = CHANNELS_KEEP,
                            .help = "?",
                            .infer = forgets_some};
    Layer l = {.kind = &good};
    l.spec.x[0] = desc_plain(shape_of(2, 2, 8, 1, 1), DTYPE_F32);
    l.spec.x_count = 1;
    l.size.width = 1;
    CHECK_OK(layer_begin(&good, &l.spec, &l.size));
    CHECK_FAILS(set(&l, "p", "1"), ERR_CONFIG, "lacking takes no attribute 'p'");
    CHECK_OK(infer(&l));
    l.size.width = 0;
    CHECK_FAILS(infer(&l), ERR_BUG, "layer kind lacking: w_count is 0, but there is a parameter 1");
    l.size.width = 2;
    CHECK_FAILS(infer(&l), ERR_BUG, "layer kind lacking: parameter 2 has no shape");
    l.size.bias = true;
    CHECK_FAILS(infer(&l), ERR_BUG, "layer kind lacking: parameter 2 has no name");
    LayerKind bad = good;
    l.kind = &bad;
    bad.infer = forgets_y;
    CHECK_FAILS(infer(&l), ERR_BUG, "layer kind lacking: y has no shape");
    bad.infer = NULL;
    CHECK_FAILS(layer_begin(&bad, &l.spec, &l.size), ERR_BUG, ".infer is not given");
    bad.channels = CHANNELS_UNSET;
    CHECK_FAILS(layer_begin(&bad, &l.spec, &l.size), ERR_BUG, ".channels is not given");
    bad.inputs = 0;
    CHECK_FAILS(layer_begin(&bad, &l.spec, &l.size), ERR_BUG, "layer kind lacking: .inputs is 0");
    bad.op = OP_NONE;
    CHECK_FAILS(layer_begin(&bad, &l.spec, &l.size), ERR_BUG, ".op is no operation");
}

/* ---- initial values ---- */

typedef struct Moments {
    double mean, deviation, low, high;
} Moments;

static Moments moments(const float *v, int n)
{
    Moments m = {.low = v[0], .high = v[0]};
    for (int i = 0; i < n; ++i) {
        m.mean += (double)v[i] / n;
        m.low = fmin(m.low, (double)v[i]);
        m.high = fmax(m.high, (double)v[i]);
    }
    for (int i = 0; i < n; ++i)
        m.deviation += ((double)v[i] - m.mean) * ((double)v[i] - m.mean) / n;
    m.deviation = sqrt(m.deviation);
    return m;
}

static void initial_values(void)
{
    enum { N = 64 * 16 * 9 };
    static float v[N], again[N];
    Layer l = layer_of("conv2d", shape_of(4, 2, 16, 8, 8));
    CHECK_OK(set(&l, "channels", "64"));
    CHECK_OK(set(&l, "kernel", "3"));
    CHECK_OK(infer(&l));
    double bound = 1 / sqrt(16.0 * 9);
    layer_param_init(&l.param[0], &l.spec, 0, "conv.weight", 1, v);
    Moments m = moments(v, N);
    CU_ASSERT(m.low >= -bound && m.high <= bound && m.high > 0.99 * bound && m.low < -0.99 * bound);
    CU_ASSERT_DOUBLE_EQUAL(m.deviation, bound / sqrt(3.0), 0.02 * bound);
    layer_param_init(&l.param[1], &l.spec, 1, "conv.bias", 1, v);
    m = moments(v, 64);
    CU_ASSERT(m.low >= -bound && m.high <= bound && m.deviation > 0.3 * bound);

    CHECK_OK(set(&l, "init", "he"));
    CHECK_OK(infer(&l));
    layer_param_init(&l.param[0], &l.spec, 0, "conv.weight", 1, v);
    m = moments(v, N);
    CU_ASSERT_DOUBLE_EQUAL(m.deviation, sqrt(2.0 / (64 * 9)), 0.03 * sqrt(2.0 / (64 * 9)));
    CU_ASSERT_DOUBLE_EQUAL(m.mean, 0, 0.002);
    CU_ASSERT_EQUAL(l.param[1].init, INIT_ZERO);
    layer_param_init(&l.param[0], &l.spec, 0, "conv.weight", 1, again);
    CU_ASSERT_EQUAL(memcmp(v, again, sizeof v), 0);
    layer_param_init(&l.param[0], &l.spec, 0, "conv.weight", 2, again);
    CU_ASSERT_NOT_EQUAL(memcmp(v, again, sizeof v), 0);
    layer_param_init(&l.param[0], &l.spec, 0, "other.weight", 1, again);
    CU_ASSERT_NOT_EQUAL(memcmp(v, again, sizeof v), 0);

    CHECK_OK(set(&l, "init", "normal"));
    CHECK_OK(set(&l, "init_std", "0.01"));
    CHECK_OK(infer(&l));
    layer_param_init(&l.param[0], &l.spec, 0, "conv.weight", 1, v);
    CU_ASSERT_DOUBLE_EQUAL(moments(v, N).deviation, 0.01, 0.0003);
}

/* Each row has its own key, for any width; ids have 64 bits. */
static void rows(void)
{
    enum { ROWS = 2000, WIDTH = 10 };
    static float v[ROWS * WIDTH];
    const uint64_t table = hash_text("wide.3"), high = (uint64_t)1 << 63;
    for (int r = 0; r < ROWS; ++r)
        layer_row_init(INIT_UNIFORM, 0.5f, 7, table, high + (uint64_t)r, WIDTH, v + r * WIDTH);
    Moments m = moments(v, ROWS * WIDTH);
    CU_ASSERT(m.low >= -0.5 && m.high < 0.5 && m.low < -0.499 && m.high > 0.499);
    CU_ASSERT_DOUBLE_EQUAL(m.mean, 0, 0.01);
    CU_ASSERT_DOUBLE_EQUAL(m.deviation, 0.5 / sqrt(3.0), 0.01);
    RngKey key = rng_key(7, RNG_TABLE, table, high + 5);
    for (int c = 0; c < WIDTH; ++c)
        CU_ASSERT_EQUAL(v[5 * WIDTH + c], rng_uniform(key, (uint64_t)c) - 0.5f);
    float row[WIDTH], other[WIDTH];
    layer_row_init(INIT_UNIFORM, 0.5f, 7, table, high + 5, 3, row);
    CU_ASSERT_EQUAL(memcmp(row, v + 5 * WIDTH, 3 * sizeof *row), 0);
    const struct {
        uint64_t seed, table, id;
    } others[] = {{8, table, high + 5}, {7, table + 1, high + 5}, {7, table, 5}};
    for (int i = 0; i < 3; ++i) {
        layer_row_init(INIT_UNIFORM, 0.5f, others[i].seed, others[i].table, others[i].id, WIDTH,
                       other);
        CU_ASSERT_NOT_EQUAL(memcmp(other, v + 5 * WIDTH, sizeof other), 0);
    }
    for (int r = 0; r < ROWS; ++r)
        layer_row_init(INIT_NORMAL, 0.01f, 7, table, (uint64_t)r, WIDTH, v + r * WIDTH);
    CU_ASSERT_DOUBLE_EQUAL(moments(v, ROWS * WIDTH).deviation, 0.01, 0.0003);
    layer_row_init(INIT_ZERO, 1, 7, table, 0, 2, row);
    layer_row_init(INIT_ONE, 1, 7, table, 0, 2, other);
    CU_ASSERT(row[0] == 0 && row[1] == 0 && other[0] == 1 && other[1] == 1);
}

TEST_MAIN("layer kinds", {"list", list}, {"norms", norms}, {"attributes known", attrs_known},
          {"attributes", attrs}, {"bad attributes", bad_attrs}, {"shapes", shapes},
          {"bad shapes", bad_shapes}, {"bad rows", bad_rows}, {"initial values", initial_values},
          {"rows", rows})
