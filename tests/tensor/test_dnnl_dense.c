/* dense and reorder against naive loops on the poison backend: vectors, sequences, flat views of
 * blocked images, packing to out x in, reorders between all layouts and back. */
#include "reference.h"

#include "harness.h"
#include "tensor/cpu/simd/simd.h"

static const double tolerance = 2e-5;

static float *floats(int64_t n)
{
    return mem_new((size_t)n * sizeof(float));
}

static Backend *open_backend(const BackendTable *table)
{
    Backend *b = NULL;
    CHECK_OK(backend_open(&b, table, (BackendOptions){.threads = 2}));
    return b;
}

/* A dense layer is a 1x1 convolution of a 1x1 image, so one naive reference serves both. */
typedef struct Dense {
    Desc x;
    int64_t rows, in, out;
    bool bias, relu, need_dx;
} Dense;

static OpSpec dense_spec(const Dense *d)
{
    OpSpec s = {.kind = OP_DENSE,
                .x_count = 1,
                .w_count = 1 + d->bias,
                .act = d->relu ? ACT_RELU : ACT_NONE};
    s.need_dx[0] = d->need_dx;
    s.x[0] = d->x;
    s.w[0] = shape_of(2, d->out, d->in, 1, 1);
    s.w[1] = shape_of(1, d->out, 1, 1, 1);
    s.y = desc_plain(d->x.shape, DTYPE_F32);
    s.y.shape.dim[s.y.shape.ndim - 1] = d->out;
    return s;
}

static void must_be_near(const char *what, const Dense *d, const float *a, const float *b,
                         int64_t n)
{
    double e = ref_error(a, b, n);
    CU_ASSERT(e <= tolerance);
    if (!(e <= tolerance))
        printf("  %s off by %.1e: rows %d in %d out %d flat %d\n", what, e, (int)d->rows,
               (int)d->in, (int)d->out, d->x.flat);
}

static void check_dense(Backend *backend, const Dense *d)
{
    const RefConv v = {d->rows, d->in, 1, 1, d->out, 1, 1, 1, 1, 0, 0, 1};
    const int64_t x_n = d->rows * d->in, w_n = d->in * d->out, y_n = d->rows * d->out;
    float *x = floats(x_n), *w[SPEC_PARAMS] = {floats(w_n), floats(d->out)}, *y = floats(y_n);
    float *dx = floats(x_n), *dw[SPEC_PARAMS] = {floats(w_n), floats(d->out)}, *dy = floats(y_n);
    float *ref = floats(x_n + w_n + y_n + d->out), *ref_w = ref + x_n, *ref_y = ref_w + w_n,
          *ref_b = ref_y + y_n;
    ref_random(x, x_n, 1);
    ref_random(w[0], w_n, 2);
    ref_random(w[1], d->out, 3);
    ref_random(dy, y_n, 4);
    RefOp r;
    OpSpec spec = dense_spec(d);
    CHECK_OK(ref_op_new(&r, backend, &spec));
    if (r.op) {
        for (int round = 0; round < 2; ++round) {
            ref_op_forward(&r, x, w, y);
            ref_op_backward(&r, dy, d->need_dx ? dx : NULL, dw);
            if (d->need_dx) CU_ASSERT_EQUAL(ref_padding_dirt(spec.x[0], r.run.dx[0]), 0);
        }
        ref_conv_run(&v, ref_visit_y, x, w[0], ref_y, y_n);
        ref_bias(ref_y, d->bias ? w[1] : NULL, d->rows, d->out, 1, d->relu);
        must_be_near("y", d, y, ref_y, y_n);
        for (int64_t i = 0; i < y_n; ++i)
            if (d->relu && y[i] <= 0) dy[i] = 0;
        ref_conv_run(&v, ref_visit_dx, dy, w[0], ref, x_n);
        ref_conv_run(&v, ref_visit_dw, dy, x, ref_w, w_n);
        ref_bias_gradient(dy, ref_b, d->rows, d->out, 1);
        if (d->need_dx) must_be_near("dx", d, dx, ref, x_n);
        must_be_near("dw", d, dw[0], ref_w, w_n);
        if (d->bias) must_be_near("db", d, dw[1], ref_b, d->out);
    }
    ref_op_free(&r);
    float **const all[] = {&x, &w[0], &w[1], &y, &dx, &dw[0], &dw[1], &dy, &ref};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; ++i) mem_free(all[i]);
}

static void vectors(void)
{
    Backend *b = open_backend(&backend_poison);
    const int64_t some[] = {1, 3, 10, 16, 33, 65};
    for (int i = 0; i < 6; ++i)
        for (int j = 0; j < 6; ++j)
            for (int64_t n = 1; n <= 32; n = n * 5 + 1)
                check_dense(b, &(Dense){desc_plain(shape_of(2, n, some[i], 1, 1), DTYPE_F32), n,
                                        some[i], some[j], (i + j) & 1, j & 1, n > 1});
    check_dense(b, &(Dense){desc_plain(shape_of(2, 64, 784, 1, 1), DTYPE_F32), 64, 784, 128, true,
                            true, false});
    check_dense(b, &(Dense){desc_plain(shape_of(2, 32, 512, 1, 1), DTYPE_F32), 32, 512, 512, true,
                            true, true});
    backend_close(&b);
}

/* Each number of rows has its own code, and each width of vectors leaves other columns over. */
static void few_rows(void)
{
    const InstructionSet used = cpu_used();
    const char *const set[] = {"base", "avx2", "avx512"};
    const int64_t some[] = {1, 8, 15, 47, 50, 100};
    int sets = 0;
    for (int k = 0; k < 3; ++k) {
        if ((cpu_portable() && k != 1) || !simd_use(set[k])) continue;
        ++sets;
        Backend *b = open_backend(&backend_poison);
        for (int i = 0; i < 6; ++i)
            for (int j = 0; j < 6; ++j)
                for (int64_t n = 1; n <= DENSE_FEW + 1; ++n)
                    check_dense(b, &(Dense){desc_plain(shape_of(2, n, some[i], 1, 1), DTYPE_F32), n,
                                            some[i], some[j], (i + j) & 1, j & 1, true});
        backend_close(&b);
    }
    CU_ASSERT(sets > 0);
    simd_use(cpu_name(used));
}

static void sequences(void)
{
    Backend *b = open_backend(&backend_poison);
    check_dense(b, &(Dense){desc_plain(shape_of(3, 2, 7, 33, 1), DTYPE_F32), 14, 33, 48, true,
                            false, true});
    check_dense(b, &(Dense){desc_plain(shape_of(3, 4, 16, 64, 1), DTYPE_F32), 64, 64, 17, false,
                            true, true});
    backend_close(&b);
}

static void flat_images(void)
{
    Backend *b = open_backend(&backend_poison);
    const int64_t channels[] = {1, 5, 16, 33, 64};
    for (int i = 0; i < 5; ++i)
        for (int block = 1; block <= 16; block = block == 1 ? 8 : 2 * block) {
            int64_t c = channels[i], in = c * 7 * 7;
            Desc x = {shape_of(2, 4, in, 1, 1), DTYPE_F32, block, true, shape_of(4, 4, c, 7, 7)};
            check_dense(b, &(Dense){x, 4, in, 10, true, block == 1, true});
            check_dense(b, &(Dense){x, 4, in, 32, false, false, i & 1});
        }
    Desc last = {shape_of(2, 4, 24 * 9, 1, 1), DTYPE_F32, 24, true, shape_of(4, 4, 24, 3, 3)};
    check_dense(b, &(Dense){last, 4, 24 * 9, 10, true, false, true});
    backend_close(&b);
}

static void pack_round_trip(void)
{
    Backend *b = open_backend(&backend_poison);
    Desc x = {shape_of(2, 4, 33 * 49, 1, 1), DTYPE_F32, 16, true, shape_of(4, 4, 33, 7, 7)};
    OpSpec spec = dense_spec(&(Dense){x, 4, 33 * 49, 20, true, false, true});
    int64_t n = shape_count(spec.w[0]);
    float *w = floats(n), *back = floats(n);
    RefOp r;
    CHECK_OK(ref_op_new(&r, b, &spec));
    ref_random(w, n, 9);
    op_pack(r.op, 0, w, r.w[0]);
    op_unpack(r.op, 0, r.w[0], back);
    CU_ASSERT_EQUAL(memcmp(w, back, (size_t)n * sizeof(float)), 0);
    ref_op_free(&r);
    mem_free(&w);
    mem_free(&back);
    backend_close(&b);
}

static void refused(void)
{
    Backend *b = open_backend(&backend_cpu);
    Desc preferred[SPEC_INPUTS];
    Op *op = NULL;
    OpSpec spec = dense_spec(
        &(Dense){desc_plain(shape_of(2, 4, 30, 1, 1), DTYPE_F32), 4, 31, 8, true, false, true});
    CHECK_FAILS(op_new(&op, b, &spec, preferred), ERR_CONFIG, "8x31");
    CU_ASSERT_PTR_NULL(op);
    backend_close(&b);
}

static void reorders(void)
{
    Backend *b = open_backend(&backend_poison);
    const int64_t channels[] = {1, 3, 16, 33};
    for (int i = 0; i < 4; ++i) {
        Shape s = shape_of(4, 2, channels[i], 5, 6);
        const int block[] = {1, 8, 16, (int)channels[i]};
        for (int from = 0; from < 4; ++from)
            for (int to = 0; to < 4; ++to) {
                OpSpec spec = {.kind = OP_REORDER, .x_count = 1, .need_dx = {true}};
                spec.x[0] = (Desc){.shape = s, .block = block[from]};
                spec.y = (Desc){.shape = s, .block = block[to]};
                int64_t n = shape_count(s);
                float *x = floats(n), *y = floats(n), *dx = floats(n), *none[SPEC_PARAMS] = {0};
                RefOp r;
                ref_random(x, n, 11);
                CHECK_OK(ref_op_new(&r, b, &spec));
                ref_op_forward(&r, x, none, y);
                CU_ASSERT_EQUAL(memcmp(x, y, (size_t)n * sizeof(float)), 0);
                CU_ASSERT_EQUAL(ref_padding_dirt(spec.y, r.run.y), 0);
                ref_op_backward(&r, y, dx, none);
                CU_ASSERT_EQUAL(memcmp(x, dx, (size_t)n * sizeof(float)), 0);
                CU_ASSERT_EQUAL(ref_padding_dirt(spec.x[0], r.run.dx[0]), 0);
                ref_op_free(&r);
                mem_free(&x);
                mem_free(&y);
                mem_free(&dx);
            }
    }
    backend_close(&b);
}

TEST_MAIN("dnnl_dense", {"vectors", vectors}, {"few rows", few_rows}, {"sequences", sequences},
          {"flat images", flat_images}, {"pack round trip", pack_round_trip}, {"refused", refused},
          {"reorders", reorders})
