/* Properties that the general checks of test_gradients do not cover: batch_norm far from zero and
 * on odd counts, running statistics, ties, NaN, dropout's statistics and its independence of layout
 * and micro-batch, embedding, preferred layouts, and the same bits with one thread and two. */
#include "kernel_rig.h"
#include "tensor/cpu/simd/simd.h"

static void set(Desc d, const void *to, uint64_t what, double scale, double shift)
{
    double *v = malloc((size_t)shape_count(d.shape) * sizeof *v);
    for (int64_t i = 0; i < shape_count(d.shape); ++i) v[i] = shift + scale * rig_random(what, i);
    rig_put(d, v, (float *)to);
    free(v);
}

static OpSpec batch_norm_spec(Desc x)
{
    OpSpec s = {.kind = OP_BATCH_NORM, .eps = 1e-5f, .x_count = 1, .w_count = 4, .x = {x}, .y = x};
    for (int i = 0; i < 4; ++i) s.w[i] = shape_of(1, x.shape.dim[1], 1, 1, 1);
    return s;
}

static void test_large_mean(void)
{
    const int blocks[] = {1, 8, 16, 0};
    for (int b = 0; b < 4; ++b) {
        Desc x = rig_desc(shape_of(4, 8, 20, 17, 19), blocks[b]);
        Rig r = rig_of(batch_norm_spec(x), 2);
        set(x, r.run.x[0], 1, 1.0, 1e4);
        double *in = malloc((size_t)shape_count(x.shape) * sizeof *in),
               *out = malloc((size_t)shape_count(x.shape) * sizeof *out);
        rig_get(x, r.run.x[0], in);
        op_forward(r.op, &r.run);
        rig_get(x, r.run.y, out);
        set(x, r.run.dy, 3, 1, 0);
        rig_backward(&r);
        int64_t hw = 17 * 19, count = 8 * hw;
        double worst = 0;
        for (int64_t c = 0; c < 20; ++c) {
            double mean = 0, variance = 0;
            for (int64_t i = 0; i < count; ++i)
                mean += in[(i / hw * 20 + c) * hw + i % hw] / (double)count;
            for (int64_t i = 0; i < count; ++i)
                variance += pow(in[(i / hw * 20 + c) * hw + i % hw] - mean, 2) / (double)count;
            for (int64_t i = 0; i < count; ++i) {
                int64_t at = (i / hw * 20 + c) * hw + i % hw;
                double off = fabs(out[at] - 1 - (in[at] - mean) / sqrt(variance + 1e-5));
                if (!(off <= worst)) worst = isnan(off) ? INFINITY : off;
            }
            CU_ASSERT_DOUBLE_EQUAL(r.run.dw[2][c], mean, 1e-3);
            double unbiased = variance * (double)count / (double)(count - 1);
            CU_ASSERT_DOUBLE_EQUAL(r.run.dw[3][c] / unbiased, 1, 1e-5);
        }
        if (!(worst < 2e-5)) printf("  block %d: off by %g\n", blocks[b], worst);
        /* with float means the error would be 5e-4 */
        CU_ASSERT(worst < 2e-5);
        free(in);
        free(out);
        rig_close(&r);
    }
}

static void test_bn_few(void)
{
    for (int rows = 0; rows <= 1; ++rows) {
        Desc x = plain(2, 3, 21, 1, 1);
        Rig r = rig_of(batch_norm_spec(x), 1);
        memset((void *)r.run.x[0], 0, desc_bytes(x));
        for (int64_t i = 0; i < 21 * rows; ++i) ((float *)r.run.x[0])[i] = 2.5f;
        r.run.sample_count = rows;
        op_forward(r.op, &r.run);
        for (int64_t i = 0; i < 63; ++i)
            CU_ASSERT_EQUAL(((float *)r.run.y)[i], i < 21 * rows ? 1.0f : 0.0f);
        set(x, r.run.dy, 3, 1, 0);
        rig_backward(&r);
        /* one value has no variance and must give no NaN: running statistics get zeros */
        CU_ASSERT_EQUAL(r.run.dw[2][20], 0.0f);
        CU_ASSERT_EQUAL(r.run.dw[3][20], 0.0f);
        for (int64_t i = 0; i < 63; ++i) CU_ASSERT(fabsf(((float *)r.run.dx[0])[i]) < 1e-3f);
        for (int64_t i = 21 * rows; i < 63; ++i) CU_ASSERT_EQUAL(((float *)r.run.dx[0])[i], 0.0f);
        rig_close(&r);
    }
}

static void test_bn_inference(void)
{
    Desc x = rig_desc(shape_of(4, 2, 19, 3, 3), 16);
    OpSpec s = batch_norm_spec(x);
    s.act = ACT_RELU;
    Rig r = rig_of(s, 1);
    set(x, r.run.x[0], 1, 3, 0);
    for (int c = 0; c < 19; ++c) {
        ((float *)r.run.w[2])[c] = 0.1f * (float)c;
        ((float *)r.run.w[3])[c] = 0.5f + (float)c;
        ((float *)r.run.w[1])[c] = -0.2f;
        r.run.dw[2][c] = -7;
    }
    r.run.training = false;
    op_forward(r.op, &r.run);
    double in[2 * 19 * 9], out[2 * 19 * 9];
    rig_get(x, r.run.x[0], in);
    for (int64_t i = 0; i < 2 * 19 * 9; ++i) out[i] = ((float *)r.run.y)[rig_place(x, i)];
    for (int64_t i = 0; i < 2 * 19 * 9; ++i) {
        int c = (int)(i / 9 % 19);
        double v = (in[i] - (double)(0.1f * (float)c)) / sqrt(0.5 + c + 1e-5) - (double)0.2f;
        CU_ASSERT_DOUBLE_EQUAL(out[i], v > 0 ? v : 0, 1e-5);
    }
    /* statistics are not written */
    CU_ASSERT_EQUAL(r.run.dw[2][3], -7.0f);
    rig_close(&r);
}

static void test_pool_ties(void)
{
    Desc x = rig_desc(shape_of(4, 1, 16, 4, 4), 16);
    OpSpec s = {.kind = OP_POOL,
                .pool = POOL_MAX,
                .kernel = {2, 2},
                .stride = {2, 2},
                .x_count = 1,
                .x = {x},
                .y = plain(4, 1, 16, 2, 2)};
    Rig r = rig_of(s, 1);
    for (int i = 0; i < 256; ++i) ((float *)r.run.x[0])[i] = 5.0f;
    ((float *)r.run.x[0])[15 * 16 + 3] = NAN;
    op_forward(r.op, &r.run);
    /* NaN is kept */
    CU_ASSERT(isnan(((float *)r.run.y)[3 * 16 + 3]));
    for (int i = 0; i < 64; ++i) ((float *)r.run.dy)[i] = 1.0f;
    rig_backward(&r);
    const float *dx = r.run.dx[0];
    /* the first of equal values wins */
    CU_ASSERT_EQUAL(dx[0], 1.0f);
    CU_ASSERT_EQUAL(dx[16], 0.0f);
    CU_ASSERT_EQUAL(dx[4 * 16], 0.0f);
    CU_ASSERT_EQUAL(dx[2 * 16], 1.0f);
    rig_close(&r);
}

/* Windows of 3 x 3 with stride 2 on a plain plane, which vectors compute: small integers, zeros of
 * both signs and one NaN. */
static void test_pool_plain_ties(void)
{
    enum { SIZE = 75, OUT = 38 };
    Rig r = rig_of((OpSpec){.kind = OP_POOL,
                            .pool = POOL_MAX,
                            .kernel = {3, 3},
                            .stride = {2, 2},
                            .pad = {1, 1},
                            .x_count = 1,
                            .x = {plain(4, 1, 1, SIZE, SIZE)},
                            .y = plain(4, 1, 1, OUT, OUT)},
                   1);
    float *x = (float *)r.run.x[0];
    for (int i = 0; i < SIZE * SIZE; ++i)
        x[i] = (float)(i * i % 7 % 3) * (i % 5 < 2 ? -1.0f : 1.0f);
    x[20 * SIZE + 41] = NAN;
    op_forward(r.op, &r.run);
    for (int o = 0; o < OUT * OUT; ++o) {
        int best = -1, row = o / OUT * 2 - 1, col = o % OUT * 2 - 1;
        for (int k = 0; k < 9; ++k) {
            int i = row + k / 3, j = col + k % 3, at = i * SIZE + j;
            bool in = i >= 0 && j >= 0 && i < SIZE && j < SIZE;
            if (in && (best < 0 || x[at] > x[best] || isnan(x[at]))) best = at;
        }
        int place = (best / SIZE - row) * 3 + best % SIZE - col;
        CU_ASSERT_EQUAL(memcmp((float *)r.run.y + o, x + best, sizeof *x), 0);
        CU_ASSERT_EQUAL(((uint8_t *)r.run.saved)[o], place);
    }
    rig_close(&r);
}

static const int64_t ids[] = {12, 7, 1000000007, 12, 3};
static OpSpec drop_spec(Desc x, float p)
{
    return (OpSpec){.kind = OP_DROPOUT, .drop = p, .seed_name = 5, .x_count = 1, .x = {x}, .y = x};
}

static void test_dropout(void)
{
    Desc x = plain(2, 5, 40000, 1, 1);
    Rig r = rig_of(drop_spec(x, 0.3f), 2);
    for (int64_t i = 0; i < 200000; ++i) ((float *)r.run.x[0])[i] = 1.0f;
    r.run.sample = ids;
    op_forward(r.op, &r.run);
    const float *y = r.run.y;
    int64_t kept = 0, same = 0;
    for (int64_t i = 0; i < 200000; ++i) {
        CU_ASSERT_FATAL(y[i] == 0.0f || fabsf(y[i] - 1 / 0.7f) < 1e-6f);
        kept += y[i] != 0.0f;
        same += i < 40000 && (y[i] != 0.0f) == (y[40000 + i] != 0.0f);
    }
    /* five standard deviations */
    CU_ASSERT(llabs(kept - 140000) < 5 * 205);
    /* samples are independent */
    CU_ASSERT(llabs(same - (int64_t)(0.58 * 40000)) < 500);
    /* except for equal ids */
    CU_ASSERT_EQUAL(memcmp(y, y + 3 * 40000, 40000 * sizeof *y), 0);
    r.run.training = false;
    op_forward(r.op, &r.run);
    CU_ASSERT_EQUAL(((float *)r.run.y)[777], 1.0f);
    rig_close(&r);
}

/* The mask of a sample must not depend on its layout, its place in the micro-batch, or a flatten
 * before it. */
static void test_dropout_layouts(void)
{
    enum { PER = 21 * 5 * 7 };
    double want[2 * PER], got[2 * PER];
    for (int form = 0; form < 5; ++form) {
        const int blocks[] = {1, 8, 16, 0, 16};
        Desc x = rig_desc(shape_of(4, 2, 21, 5, 7), blocks[form]);
        if (form == 4) {
            x.image = x.shape;
            x.flat = true;
            x.shape = shape_of(2, 2, PER, 1, 1);
        }
        Rig r = rig_of(drop_spec(x, 0.5f), 1);
        double ones[2 * PER];
        for (int i = 0; i < 2 * PER; ++i) ones[i] = 1;
        rig_put(form == 4 ? rig_desc(x.image, 16) : x, ones, (float *)r.run.x[0]);
        const int64_t swapped[] = {9, 4};
        r.run.sample = form ? swapped : (const int64_t[]){4, 9};
        op_forward(r.op, &r.run);
        rig_get(x, r.run.y, form ? got : want);
        if (form) {
            CU_ASSERT_EQUAL(memcmp(got, want + PER, PER * sizeof *got), 0);
            CU_ASSERT_EQUAL(memcmp(got + PER, want, PER * sizeof *got), 0);
        }
        rig_close(&r);
    }
}

static void test_embedding(void)
{
    enum { V = 11, C = 37, T = 6 };
    for (int threads = 1; threads <= 2; ++threads) {
        OpSpec s = {.kind = OP_EMBEDDING, .x_count = 1, .w_count = 1, .y = plain(3, 3, T, C, 1)};
        s.x[0] = desc_plain(shape_of(2, 3, T, 1, 1), DTYPE_I32);
        s.w[0] = shape_of(2, V, C, 1, 1);
        Rig r = rig_of(s, threads);
        int32_t *token = (int32_t *)r.run.x[0];
        for (int i = 0; i < 3 * T; ++i) token[i] = i * 7 % 5 + (i == 4) * 5;
        float *w = (float *)r.run.w[0];
        for (int i = 0; i < V * C; ++i) w[i] = (float)i;
        set(r.op->spec.y, r.run.dy, 2, 1, 0);
        r.run.sample_count = 2;
        op_forward(r.op, &r.run);
        rig_backward(&r);
        double want[V * C] = {0};
        for (int i = 0; i < 3 * T; ++i)
            for (int c = 0; c < C; ++c) {
                CU_ASSERT_EQUAL(((float *)r.run.y)[i * C + c],
                                i < 2 * T ? w[token[i] * C + c] : 0.0f);
                if (i < 2 * T) want[token[i] * C + c] += ((float *)r.run.dy)[i * C + c];
            }
        for (int i = 0; i < V * C; ++i) CU_ASSERT_DOUBLE_EQUAL(r.run.dw[0][i], want[i], 1e-6);
        rig_close(&r);
    }
}

/* Mixed layouts: add and batch_norm prefer the blocked one, concat the plain one; flatten of a
 * blocked image is a view. */
static void test_preferred_layouts(void)
{
    Desc blocked = rig_desc(shape_of(4, 2, 19, 3, 3), 16), flat = plain(4, 2, 19, 3, 3);
    OpSpec s = {.kind = OP_ADD, .x_count = 2, .x = {flat, blocked}, .y = flat};
    Rig r = rig_of(s, 1);
    CU_ASSERT_EQUAL(r.preferred[0].block, 16);
    CU_ASSERT_EQUAL(r.op->spec.y.block, 16);
    rig_close(&r);
    s = (OpSpec){
        .kind = OP_CONCAT, .x_count = 2, .x = {blocked, blocked}, .y = plain(4, 2, 38, 3, 3)};
    r = rig_of(s, 1);
    CU_ASSERT_EQUAL(r.preferred[1].block, 1);
    CU_ASSERT_EQUAL(r.op->spec.y.block, 1);
    rig_close(&r);
    s = (OpSpec){.kind = OP_FLATTEN, .x_count = 1, .x = {blocked}, .y = plain(2, 2, 171, 1, 1)};
    r = rig_of(s, 1);
    CU_ASSERT(r.op->y_is_x && r.op->dx_is_dy[0] && r.op->spec.y.flat);
    CU_ASSERT(shape_equal(r.op->spec.y.image, blocked.shape));
    Desc view = r.op->spec.y;
    rig_close(&r);
    s = (OpSpec){
        .kind = OP_SOFTMAX_LOSS, .x_count = 1, .x = {view}, .y = plain(2, 2, LOSS_COLUMNS, 1, 1)};
    r = rig_of(s, 1);
    CU_ASSERT(!r.preferred[0].flat && r.preferred[0].block == 1);
    rig_close(&r);
}

static void test_bad_specs(void)
{
    Backend *backend;
    Op *op;
    Desc preferred[SPEC_INPUTS], x = plain(4, 1, 16, 32, 32);
    CHECK_OK(backend_open(&backend, &backend_cpu, (BackendOptions){.threads = 1}));
    OpSpec s = {.kind = OP_POOL,
                .kernel = {16, 16},
                .stride = {1, 1},
                .x_count = 1,
                .x = {x},
                .y = plain(4, 1, 16, 17, 17)};
    CHECK_FAILS(op_new(&op, backend, &s, preferred), ERR_CONFIG, "at most 254 pixels");
    s.kernel[0] = s.kernel[1] = 2;
    s.pad[0] = 2;
    CHECK_FAILS(op_new(&op, backend, &s, preferred), ERR_CONFIG, "pad at most half");
    s = drop_spec(x, 1.0f);
    CHECK_FAILS(op_new(&op, backend, &s, preferred), ERR_CONFIG, "dropout: p is 1");
    backend_close(&backend);
}

/* Compares all outputs of one forward and one backward run with 1 and with 2 threads. */
static void same_bits(OpSpec s)
{
    static const int32_t label[64] = {1, 2};
    Rig r[2];
    for (int t = 0; t < 2; ++t) {
        r[t] = rig_of(s, 1 + t);
        for (int k = 0; k < s.x_count; ++k) set(s.x[k], r[t].run.x[k], 10 + (uint64_t)k, 3, 0.5);
        r[t].run.labels = label;
        r[t].run.sample_count -= 1;
        op_forward(r[t].op, &r[t].run);
        set(r[t].op->spec.y, r[t].run.dy, 30, 1, 0);
        rig_backward(&r[t]);
    }
    CU_ASSERT_EQUAL(memcmp(r[0].run.y, r[1].run.y, desc_bytes(r[0].op->spec.y)), 0);
    for (int k = 0; k < s.x_count; ++k)
        CU_ASSERT_EQUAL(memcmp(r[0].run.dx[k], r[1].run.dx[k], desc_bytes(s.x[k])), 0);
    for (int k = 0; k < s.w_count; ++k)
        CU_ASSERT_EQUAL(
            memcmp(r[0].run.dw[k], r[1].run.dw[k], (size_t)r[0].op->w_elements[k] * sizeof(float)),
            0);
    for (int t = 0; t < 2; ++t) rig_close(&r[t]);
}

static void test_threads(void)
{
    const int blocks[] = {1, 8, 16, 0};
    for (int b = 0; b < 4; ++b) {
        Desc x =
            rig_desc(shape_of(4, 6, 48, 15, 13), blocks[b]); /* 3 groups of 16: parts are split */
        OpSpec s = batch_norm_spec(x);
        same_bits(s);
        s.act = ACT_RELU;
        s.residual = true;
        s.x[1] = x;
        s.x_count = 2;
        same_bits(s);
        s = (OpSpec){.kind = OP_POOL,
                     .kernel = {3, 3},
                     .stride = {2, 2},
                     .pad = {1, 1},
                     .x_count = 1,
                     .x = {x},
                     .y = plain(4, 6, 48, 8, 7)};
        same_bits(s);
        same_bits((OpSpec){.kind = OP_ACTIVATION, .act = ACT_GELU, .x_count = 1, .x = {x}, .y = x});
    }
    OpSpec ln = {.kind = OP_LAYER_NORM, .eps = 1e-5f, .x_count = 1, .w_count = 2};
    ln.x[0] = ln.y = plain(3, 6, 23, 333, 1);
    ln.w[0] = ln.w[1] = shape_of(1, 333, 1, 1, 1);
    same_bits(ln);
    OpSpec rms = ln;
    rms.kind = OP_RMS_NORM;
    rms.w_count = 1;
    same_bits(rms);
    OpSpec gated = {.kind = OP_SWIGLU, .x_count = 1};
    gated.x[0] = plain(3, 6, 23, 666, 1);
    gated.y = plain(3, 6, 23, 333, 1);
    same_bits(gated);
    for (int samples = 3; samples <= 6; samples += 3) {
        OpSpec gn = {.kind = OP_GROUP_NORM, .groups = 6, .eps = 1e-5f, .x_count = 1, .w_count = 2};
        gn.x[0] = gn.y = rig_desc(shape_of(4, samples, 48, 37, 29), 16);
        gn.act = ACT_RELU;
        gn.w[0] = gn.w[1] = shape_of(1, 48, 1, 1, 1);
        same_bits(gn);
    }
    OpSpec places = {.kind = OP_POSITIONS, .x_count = 1, .w_count = 1};
    places.x[0] = places.y = plain(3, 5, 37, 333, 1);
    places.w[0] = shape_of(2, 50, 333, 1, 1);
    same_bits(places);
    same_bits((OpSpec){.kind = OP_SOFTMAX_LOSS,
                       .x_count = 1,
                       .x = {plain(2, 33, 1000, 1, 1)},
                       .y = plain(2, 33, LOSS_COLUMNS, 1, 1)});
}

TEST_MAIN("kernels", {"batch_norm far from zero", test_large_mean},
          {"batch_norm of few", test_bn_few}, {"batch_norm at inference", test_bn_inference},
          {"pool ties and NaN", test_pool_ties}, {"pool ties and NaN, plain", test_pool_plain_ties},
          {"dropout statistics", test_dropout}, {"dropout layouts", test_dropout_layouts},
          {"embedding", test_embedding}, {"preferred layouts", test_preferred_layouts},
          {"bad specs", test_bad_specs}, {"one thread and two", test_threads})
