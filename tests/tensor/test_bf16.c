/* bf16 on the CPU: every operation in bf16 on the poison backend compared with the same operation
 * in fp32 on the same rounded inputs; the same bits with one thread and two; refusals. Rounding is
 * tested in test_bf16_rounding.c. */
#include "kernel_rig.h"
#include "tensor/cpu/dnnl.h"
#include "tensor/cpu/simd/simd.h"

static const char *const sets[] = {"base", "avx2", "avx512"};
enum { SETS = sizeof sets / sizeof *sets };

/* ---- comparison with fp32 ---- */

/* Largest difference allowed, relative to the largest value. An output is rounded once: half a unit
 * in bf16's last place, at most 2^-8 of the value (0.0039), plus a little for another order of
 * sums. In backward some operations read a rounded output (attention) or add rounded dx. Attention
 * also rounds the factors of its inner products: rotated queries and keys, probabilities. */
static const double y_off = 0.004, attention_off = 0.012, dx_off = 0.006, dw_off = 0.004;

static bool have_bf16(void)
{
    if (dnnl_bf16_check() == OK) return true;
    printf("  skipped: %s\n", fail_message());
    return false;
}

static Desc image(int64_t n, int64_t c, int64_t h, int64_t w)
{
    return rig_desc(shape_of(4, n, c, h, w), 16);
}

/* The same numbers, which bf16 represents exactly, in the type and layout of d. */
static void fill(Desc d, const void *to, uint64_t what, double scale)
{
    memset((void *)(uintptr_t)to, 0, desc_bytes(d));
    for (int64_t i = 0; i < shape_count(d.shape); ++i) {
        Bf16 value = bf16_of((float)(scale * rig_random(what, i)));
        int64_t at = rig_place(d, i);
        if (d.dtype == DTYPE_BF16)
            ((Bf16 *)(uintptr_t)to)[at] = value;
        else if (d.dtype == DTYPE_F32)
            ((float *)(uintptr_t)to)[at] = bf16_value(value);
        else
            ((int32_t *)(uintptr_t)to)[at] = (int32_t)(i * 7 % 10);
    }
}

static double number(Desc d, const void *from, int64_t i)
{
    int64_t at = rig_place(d, i);
    return (double)(d.dtype == DTYPE_BF16 ? bf16_value(((const Bf16 *)from)[at])
                                          : ((const float *)from)[at]);
}

/* Opens spec in a precision, fills its inputs, and runs it forward and backward. */
static void run(Rig *r, OpSpec s, DType precision, int threads)
{
    static const int32_t label[64] = {1, 2}, two[64] = {1, 0, 0, 1};
    static const int64_t ids[64] = {5, 3, 9};
    static float targets[4096];
    for (int k = 0; k < s.x_count; ++k)
        if (s.x[k].dtype != DTYPE_I32) s.x[k].dtype = precision;
    *r = (Rig){.precision = precision};
    rig_open(r, &s, &backend_poison, threads);
    const Op *op = r->op;
    for (int k = 0; k < s.x_count; ++k) {
        CU_ASSERT(desc_equal(r->preferred[k], s.x[k]));
        fill(op->spec.x[k], r->run.x[k], 10 + (uint64_t)k, 3);
    }
    for (int k = 0; k < s.w_count; ++k) {
        Desc d = desc_plain(s.w[k], DTYPE_F32);
        float *w = malloc(desc_bytes(d));
        fill(d, w, 20 + (uint64_t)k, 1);
        /* a variance is positive */
        for (int64_t i = 0; k == 3 && i < shape_count(s.w[k]); ++i) w[i] = 1;
        op_pack(r->op, k, w, (float *)(uintptr_t)r->run.w[k]);
        free(w);
    }
    r->run.cache = rig_memory(r, op->cache_bytes);
    r->run.labels = s.kind == OP_SIGMOID_LOSS ? two : label;
    r->run.sample = ids;
    r->run.targets = targets;
    r->run.rows -= r->run.rows > 1 && s.kind != OP_DENSE && s.kind != OP_CONV2D;
    op_refresh(r->op, &r->run);
    op_forward(r->op, &r->run);
    fill(op->spec.y, r->run.dy, 30, 1);
    rig_backward(r);
}

static void compare(const char *what, const char *name, Desc a, const void *x, Desc b,
                    const void *y, double allowed)
{
    double top = 0, worst = 0;
    for (int64_t i = 0; i < shape_count(a.shape); ++i) {
        double want = number(a, x, i), off = fabs(number(b, y, i) - want);
        if (fabs(want) > top) top = fabs(want);
        if (!(off <= worst)) worst = isnan(off) ? INFINITY : off;
    }
    if (!(worst <= allowed * top)) printf("  %s, %s: off by %g of %g\n", name, what, worst, top);
    CU_ASSERT(worst <= allowed * top);
}

static void compare_weights(const char *name, const Rig *f, const Rig *h, int k)
{
    Desc d = desc_plain(f->op->spec.w[k], DTYPE_F32);
    float *want = malloc(desc_bytes(d)), *got = malloc(desc_bytes(d));
    op_unpack(f->op, k, f->run.dw[k], want);
    op_unpack(h->op, k, h->run.dw[k], got);
    compare("dw", name, d, want, d, got, dw_off);
    free(want);
    free(got);
}

/* Skips operations with more than one right answer: the arg max of a pool is compared only where
 * inputs have no ties. */
static void compare_with_fp32(const char *name, OpSpec s)
{
    Rig f, h;
    run(&f, s, DTYPE_F32, 1);
    run(&h, s, DTYPE_BF16, 2);
    bool loss = op_is_loss(op_info(s.kind));
    CU_ASSERT_EQUAL(h.op->spec.y.dtype, loss ? DTYPE_F32 : DTYPE_BF16);
    compare("y", name, f.op->spec.y, f.run.y, h.op->spec.y, h.run.y,
            s.kind == OP_ATTENTION ? attention_off : y_off);
    for (int k = 0; k < s.x_count; ++k)
        if (s.x[k].dtype != DTYPE_I32 && s.need_dx[k])
            compare("dx", name, f.op->spec.x[k], f.run.dx[k], h.op->spec.x[k], h.run.dx[k], dx_off);
    for (int k = 0; k < s.w_count; ++k) compare_weights(name, &f, &h, k);
    rig_close(&f);
    rig_close(&h);
}

/* All outputs of an operation have the same bits with one thread and two. */
static void same_bits(const char *name, OpSpec s)
{
    Rig r[2];
    for (int t = 0; t < 2; ++t) run(&r[t], s, DTYPE_BF16, 1 + t);
    bool same = memcmp(r[0].run.y, r[1].run.y, desc_bytes(r[0].op->spec.y)) == 0;
    for (int k = 0; k < s.x_count; ++k)
        same = same && (s.x[k].dtype == DTYPE_I32 || memcmp(r[0].run.dx[k], r[1].run.dx[k],
                                                            desc_bytes(r[0].op->spec.x[k])) == 0);
    for (int k = 0; k < s.w_count; ++k)
        same = same && memcmp(r[0].run.dw[k], r[1].run.dw[k],
                              (size_t)r[0].op->w_elements[k] * sizeof(float)) == 0;
    if (!same) printf("  %s: other bits with two threads\n", name);
    CU_ASSERT(same);
    for (int t = 0; t < 2; ++t) rig_close(&r[t]);
}

typedef struct Case {
    const char *name;
    OpSpec spec;
} Case;

static OpSpec one(OpKind kind, Desc x, Desc y)
{
    OpSpec s = {.kind = kind, .x_count = 1, .x = {x}, .y = y, .need_dx = {true}};
    s.eps = 1e-5f;
    s.groups = 1;
    return s;
}

static OpSpec dense(int64_t n, int64_t in, int64_t out, bool plain_weight, Act act)
{
    OpSpec s = one(OP_DENSE, plain(2, n, in, 1, 1), plain(2, n, out, 1, 1));
    s.w_count = 2;
    s.w[0] = shape_of(2, out, in, 1, 1);
    s.w[1] = shape_of(1, out, 1, 1, 1);
    s.plain_weight = plain_weight;
    s.act = act;
    return s;
}

static OpSpec conv(int64_t c, int64_t o, int groups, int kernel, int stride)
{
    int pad = kernel / 2;
    int64_t out = (14 + 2 * pad - kernel) / stride + 1;
    OpSpec s = one(OP_CONV2D, image(2, c, 14, 14), image(2, o, out, out));
    s.x[0].block = c <= 3 ? 1 : 16;
    s.need_dx[0] = c > 3;
    s.groups = groups;
    for (int d = 0; d < 2; ++d) {
        s.kernel[d] = kernel;
        s.stride[d] = stride;
        s.pad[d] = pad;
    }
    s.w_count = 1;
    s.w[0] = shape_of(4, o, c / groups, kernel, kernel);
    return s;
}

/* A 3x3 kernel of which only the middle tap does not lie on padding. */
static OpSpec conv_of_a_pixel(void)
{
    OpSpec s = conv(32, 48, 1, 3, 2);
    s.x[0] = image(2, 32, 1, 1);
    s.y = image(2, 48, 1, 1);
    return s;
}

static OpSpec batch_norm(Desc x, Act act, bool residual)
{
    OpSpec s = one(OP_BATCH_NORM, x, x);
    s.act = act;
    s.residual = residual;
    s.x_count = 1 + residual;
    s.x[1] = x;
    s.w_count = 4;
    for (int i = 0; i < 4; ++i) s.w[i] = shape_of(1, x.shape.dim[1], 1, 1, 1);
    return s;
}

static OpSpec layer_norm(Desc x)
{
    OpSpec s = one(OP_LAYER_NORM, x, x);
    s.w_count = 2;
    s.w[0] = s.w[1] = shape_of(1, x.shape.dim[x.shape.ndim - 1], 1, 1, 1);
    return s;
}

static OpSpec rms_norm(Desc x)
{
    OpSpec s = layer_norm(x);
    s.kind = OP_RMS_NORM;
    s.w_count = 1;
    return s;
}

static OpSpec group_norm(Desc x, int groups, Act act)
{
    OpSpec s = one(OP_GROUP_NORM, x, x);
    s.groups = groups;
    s.act = act;
    s.w_count = 2;
    s.w[0] = s.w[1] = shape_of(1, x.shape.dim[1], 1, 1, 1);
    return s;
}

static OpSpec activation(Act act)
{
    OpSpec s = one(OP_ACTIVATION, plain(2, 3, 1777, 1, 1), plain(2, 3, 1777, 1, 1));
    s.act = act;
    return s;
}

static OpSpec pool(PoolMode mode, int block)
{
    bool global = mode == POOL_GLOBAL_AVG;
    Desc x = rig_desc(shape_of(4, 2, 20, 15, 13), block);
    OpSpec s = one(OP_POOL, x, plain(4, 2, 20, global ? 1 : 8, global ? 1 : 7));
    s.pool = mode;
    for (int d = 0; d < 2; ++d) {
        s.kernel[d] = 3;
        s.stride[d] = 2;
        s.pad[d] = 1;
    }
    return s;
}

static OpSpec join(OpKind kind, Desc x, Desc y, Act act)
{
    OpSpec s = one(kind, x, y);
    s.x_count = 3;
    s.x[1] = s.x[2] = x;
    s.act = act;
    return s;
}

static OpSpec dropout(Desc x)
{
    OpSpec s = one(OP_DROPOUT, x, x);
    s.drop = 0.3f;
    return s;
}

static OpSpec embedding(void)
{
    OpSpec s =
        one(OP_EMBEDDING, desc_plain(shape_of(2, 3, 6, 1, 1), DTYPE_I32), plain(3, 3, 6, 37, 1));
    s.w_count = 1;
    s.w[0] = shape_of(2, 11, 37, 1, 1);
    return s;
}

static OpSpec positions(void)
{
    OpSpec s = one(OP_POSITIONS, plain(3, 3, 6, 37, 1), plain(3, 3, 6, 37, 1));
    s.w_count = 1;
    s.w[0] = shape_of(2, 9, 37, 1, 1);
    return s;
}

static OpSpec attention(int64_t length, int width, bool rotary)
{
    enum { HEADS = 3 };
    OpSpec s = one(OP_ATTENTION, plain(3, 2, length, 3 * HEADS * width, 1),
                   plain(3, 2, length, HEADS * width, 1));
    s.heads = HEADS;
    s.rotary = rotary;
    return s;
}

static OpSpec shared_keys(int64_t length, int width, int kv_heads, bool rotary)
{
    OpSpec s = attention(length, width, rotary);
    s.heads = 4;
    s.kv_heads = kv_heads;
    s.x[0] = plain(3, 2, length, (4 + 2 * kv_heads) * width, 1);
    s.y = plain(3, 2, length, 4 * width, 1);
    return s;
}

static OpSpec windowed(int64_t length, int width, int window)
{
    OpSpec s = attention(length, width, true);
    s.window = window;
    return s;
}

static OpSpec loss(OpKind kind, int64_t width)
{
    return one(kind, plain(2, 5, width, 1, 1), plain(2, 5, LOSS_COLUMNS, 1, 1));
}

static OpSpec vectors(OpKind kind, int width, int64_t n, int64_t out)
{
    OpSpec s = one(kind, plain(2, 40, n * width, 1, 1), plain(2, 40, out, 1, 1));
    s.row_width = width;
    return s;
}

static OpSpec numeric_embedding(int64_t n, int64_t width)
{
    OpSpec s = one(OP_NUMERIC_EMBEDDING, plain(2, 40, n, 1, 1), plain(2, 40, n * width, 1, 1));
    s.w_count = 1;
    s.w[0] = shape_of(2, n, width, 1, 1);
    return s;
}

static const Case *cases(int *count)
{
    static Case list[64];
    int n = 0;
#define CASE(text, ...) list[n++] = (Case){text, __VA_ARGS__}
    CASE("dense", dense(96, 80, 112, false, ACT_NONE));
    CASE("dense, relu", dense(33, 45, 67, false, ACT_RELU));
    CASE("dense, plain weight", dense(64, 48, 1003, true, ACT_NONE));
    CASE("conv 3x3", conv(32, 48, 1, 3, 1));
    CASE("conv 3x3, stride 2", conv(32, 48, 1, 3, 2));
    CASE("conv 3x3 of a pixel", conv_of_a_pixel());
    CASE("conv 1x1", conv(32, 64, 1, 1, 1));
    CASE("conv 7x7 of raw data", conv(3, 32, 1, 7, 2));
    CASE("conv by channel", conv(32, 32, 32, 3, 1));
    CASE("batch_norm", batch_norm(image(4, 20, 7, 9), ACT_NONE, false));
    CASE("batch_norm, relu", batch_norm(image(4, 20, 7, 9), ACT_RELU, false));
    CASE("batch_norm, residual", batch_norm(image(4, 32, 7, 9), ACT_RELU, true));
    CASE("batch_norm, plain", batch_norm(plain(2, 16, 37, 1, 1), ACT_RELU6, false));
    CASE("layer_norm", layer_norm(plain(3, 3, 7, 333, 1)));
    CASE("rms_norm", rms_norm(plain(3, 3, 7, 333, 1)));
    CASE("group_norm", group_norm(image(4, 20, 7, 9), 5, ACT_NONE));
    CASE("group_norm, relu", group_norm(image(3, 48, 7, 9), 2, ACT_RELU));
    CASE("group_norm, plain", group_norm(plain(4, 2, 6, 5, 7), 3, ACT_NONE));
    CASE("swiglu", one(OP_SWIGLU, plain(3, 3, 7, 666, 1), plain(3, 3, 7, 333, 1)));
    CASE("relu", activation(ACT_RELU));
    CASE("relu6", activation(ACT_RELU6));
    CASE("gelu", activation(ACT_GELU));
    CASE("silu", activation(ACT_SILU));
    CASE("pool max", pool(POOL_MAX, 16));
    CASE("pool max, plain", pool(POOL_MAX, 1));
    CASE("pool avg", pool(POOL_AVG, 16));
    CASE("pool avg, channels last", pool(POOL_AVG, 0));
    CASE("pool global", pool(POOL_GLOBAL_AVG, 16));
    CASE("add", join(OP_ADD, image(2, 20, 9, 7), image(2, 20, 9, 7), ACT_RELU));
    CASE("concat", join(OP_CONCAT, image(2, 16, 5, 5), image(2, 48, 5, 5), ACT_NONE));
    CASE("dropout", dropout(plain(2, 3, 1777, 1, 1)));
    CASE("dropout, blocks", dropout(image(2, 20, 9, 7)));
    CASE("embedding", embedding());
    CASE("positions", positions());
    CASE("attention", attention(150, 32, false));
    CASE("attention, odd", attention(70, 20, true));
    CASE("attention, shared keys", shared_keys(150, 32, 2, false));
    CASE("attention, one head of keys", shared_keys(70, 20, 1, true));
    CASE("attention, window", windowed(150, 32, 20));
    CASE("attention, window of tiles", windowed(200, 20, 65));
    CASE("softmax_loss", loss(OP_SOFTMAX_LOSS, 3001));
    CASE("mse_loss", loss(OP_MSE_LOSS, 40));
    CASE("sigmoid_loss", loss(OP_SIGMOID_LOSS, 1));
    CASE("interaction", vectors(OP_INTERACTION, 21, 7, 21));
    CASE("fm", vectors(OP_FM, 150, 4, 1));
    CASE("numeric_embedding", numeric_embedding(30, 20));
#undef CASE
    *count = n;
    return list;
}

static void test_compare_with_fp32(void)
{
    int count;
    const Case *c = cases(&count);
    for (int i = 0; have_bf16() && i < count; ++i) compare_with_fp32(c[i].name, c[i].spec);
}

/* Attention's products have their own instruction with AVX512_BF16. */
static void test_attention_sets(void)
{
    const char *best = simd_table(DTYPE_F32)->name;
    for (int set = 0; have_bf16() && set < SETS; ++set) {
        if (!simd_use(sets[set])) continue;
        compare_with_fp32(sets[set], attention(150, 32, false));
        compare_with_fp32(sets[set], attention(70, 21, false));
    }
    CU_ASSERT(simd_use(best));
}

static void test_threads(void)
{
    int count;
    const Case *c = cases(&count);
    for (int i = 0; have_bf16() && i < count; ++i)
        if (c[i].spec.kind != OP_DENSE &&
            c[i].spec.kind != OP_CONV2D) /* oneDNN cuts sums by them */
            same_bits(c[i].name, c[i].spec);
}

/* An op prefers fp32 data as bf16; a reorder converts it and its gradient, with or without a change
 * of layout. */
static void test_reorder(void)
{
    if (!have_bf16()) return;
    Desc from = plain(4, 2, 20, 5, 7), to = image(2, 20, 5, 7), same = from;
    to.dtype = same.dtype = DTYPE_BF16;
    for (int layout = 0; layout < 2; ++layout) {
        OpSpec s = one(OP_REORDER, from, layout ? to : same);
        Rig r = {.precision = DTYPE_BF16};
        rig_open(&r, &s, &backend_poison, 2);
        fill(from, r.run.x[0], 1, 3);
        op_forward(r.op, &r.run);
        for (int64_t i = 0; i < shape_count(from.shape); ++i)
            CU_ASSERT_EQUAL(number(s.y, r.run.y, i), number(from, r.run.x[0], i));
        fill(s.y, r.run.dy, 2, 3);
        rig_backward(&r);
        for (int64_t i = 0; i < shape_count(from.shape); ++i)
            CU_ASSERT_EQUAL(number(s.y, r.run.dy, i), number(from, r.run.dx[0], i));
        rig_close(&r);
    }
    OpSpec s = dense(16, 20, 30, false, ACT_NONE);
    Rig r = {.precision = DTYPE_BF16};
    rig_open(&r, &s, &backend_cpu, 1);
    CU_ASSERT_EQUAL(r.preferred[0].dtype, DTYPE_BF16);
    rig_close(&r);
}

static void test_refused(void)
{
    Backend *backend;
    BackendOptions options = {.threads = 1, .precision = DTYPE_BF16};
    BackendTable without = backend_cpu;
    without.has_bf16 = false;
    without.name = "other";
    CHECK_FAILS(backend_open(&backend, &without, options), ERR_CONFIG,
                "the other backend has no bf16");
    if (dnnl_bf16_check() != OK)
        CHECK_FAILS(backend_open(&backend, &backend_cpu, options), ERR_CONFIG, "AVX512_BF16");
}

TEST_MAIN("bf16", {"compared with fp32", test_compare_with_fp32},
          {"attention on every instruction set", test_attention_sets},
          {"one thread and two", test_threads}, {"reorder", test_reorder},
          {"refused", test_refused})
