/* conv2d against the naive convolution: odd channels, strides, paddings, kernels and groups, on the
 * poison backend, so that padding and workspace are NaN first; determinism, packing, refused
 * shapes. */
#include "reference.h"

#include "harness.h"
#include "tensor/cpu/dnnl/linear.h"

/* Winograd's transforms lose some bits; direct sums have about fp32's own rounding error. */
enum { KEEP_DX = 1, WITH_BIAS = 2, WITH_RELU = 4, ALL = 7 };
static const double tolerance = 2e-5;

static OpSpec conv_spec(const RefConv *v, int flags)
{
    OpSpec s = ref_conv_spec(v, flags & KEEP_DX);
    s.w_count = 1 + !!(flags & WITH_BIAS);
    s.act = flags & WITH_RELU ? ACT_RELU : ACT_NONE;
    s.w[1] = shape_of(1, v->o, 1, 1, 1);
    return s;
}

/* plain order */
typedef struct Case {
    int64_t x_n, w_n, y_n;
    float *x, *w[SPEC_PARAMS], *y, *dy, *dx, *dw[SPEC_PARAMS];
    float *ref_y, *ref_dx, *ref_dw, *ref_db;
} Case;

static float *floats(int64_t n)
{
    return mem_new((size_t)n * sizeof(float));
}

static void case_init(Case *c, const RefConv *v)
{
    c->x_n = v->n * v->c * v->h * v->w;
    c->w_n = v->o * (v->c / v->g) * v->r * v->s;
    c->y_n = v->n * v->o * ref_conv_p(v) * ref_conv_q(v);
    float **const xs[] = {&c->x, &c->dx, &c->ref_dx}, **const ys[] = {&c->y, &c->dy, &c->ref_y};
    float **const ws[] = {&c->w[0], &c->dw[0], &c->ref_dw},
                  **const bs[] = {&c->w[1], &c->dw[1], &c->ref_db};
    for (int i = 0; i < 3; ++i) {
        *xs[i] = floats(c->x_n), *ys[i] = floats(c->y_n);
        *ws[i] = floats(c->w_n), *bs[i] = floats(v->o);
    }
    ref_random(c->x, c->x_n, 1);
    ref_random(c->w[0], c->w_n, 2);
    ref_random(c->w[1], v->o, 3);
    ref_random(c->dy, c->y_n, 4);
}

static void case_fini(Case *c)
{
    float **const all[] = {&c->x,    &c->dx,    &c->ref_dx, &c->y,    &c->dy,    &c->ref_y,
                           &c->w[0], &c->dw[0], &c->ref_dw, &c->w[1], &c->dw[1], &c->ref_db};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; ++i) mem_free(all[i]);
}

static void reference(Case *c, const RefConv *v, int flags)
{
    const int64_t inner = ref_conv_p(v) * ref_conv_q(v);
    float *masked = floats(c->y_n);
    ref_conv_run(v, ref_visit_y, c->x, c->w[0], c->ref_y, c->y_n);
    ref_bias(c->ref_y, flags & WITH_BIAS ? c->w[1] : NULL, v->n, v->o, inner, flags & WITH_RELU);
    /* the sign of y near zero may differ, so the mask is the op's own, which its backward uses,
     * too */
    for (int64_t i = 0; i < c->y_n; ++i)
        masked[i] = flags & WITH_RELU && c->y[i] <= 0 ? 0 : c->dy[i];
    ref_conv_run(v, ref_visit_dx, masked, c->w[0], c->ref_dx, c->x_n);
    ref_conv_run(v, ref_visit_dw, masked, c->x, c->ref_dw, c->w_n);
    ref_bias_gradient(masked, c->ref_db, v->n, v->o, inner);
    mem_free(&masked);
}

static void must_be_near(const char *what, const RefConv *v, const float *a, const float *b,
                         int64_t n)
{
    double e = ref_error(a, b, n);
    CU_ASSERT(e <= tolerance);
    if (!(e <= tolerance))
        printf("  %s off by %.1e: n%d c%d %dx%d o%d k%dx%d s%d p%d g%d\n", what, e, (int)v->n,
               (int)v->c, (int)v->h, (int)v->w, (int)v->o, (int)v->r, (int)v->s, (int)v->stride_h,
               (int)v->pad_h, (int)v->g);
}

static void check_conv(Backend *backend, const RefConv *v, int flags)
{
    Case c;
    RefOp r;
    OpSpec spec = conv_spec(v, flags);
    case_init(&c, v);
    CHECK_OK(ref_op_new(&r, backend, &spec));
    if (r.op) {
        /* in the second round the kernels have their pointers already */
        for (int round = 0; round < 2; ++round) {
            ref_op_forward(&r, c.x, c.w, c.y);
            CU_ASSERT_EQUAL(ref_padding_dirt(spec.y, r.run.y), 0);
            ref_op_backward(&r, c.dy, flags & KEEP_DX ? c.dx : NULL, c.dw);
            if (flags & KEEP_DX) CU_ASSERT_EQUAL(ref_padding_dirt(spec.x[0], r.run.dx[0]), 0);
        }
        reference(&c, v, flags);
        must_be_near("y", v, c.y, c.ref_y, c.y_n);
        if (flags & KEEP_DX) must_be_near("dx", v, c.dx, c.ref_dx, c.x_n);
        must_be_near("dw", v, c.dw[0], c.ref_dw, c.w_n);
        if (flags & WITH_BIAS) must_be_near("db", v, c.dw[1], c.ref_db, v->o);
    }
    ref_op_free(&r);
    case_fini(&c);
}

static Backend *open_backend(const BackendTable *table, int threads)
{
    Backend *b = NULL;
    CHECK_OK(backend_open(&b, table, (BackendOptions){.threads = threads}));
    return b;
}

static void channels(void)
{
    Backend *b = open_backend(&backend_poison, 1);
    const int64_t some[] = {1, 3, 5, 16, 17, 33};
    for (int i = 0; i < 6; ++i)
        for (int j = 0; j < 6; ++j)
            check_conv(b, &(RefConv){2, some[i], 7, 6, some[j], 3, 3, 1, 1, 1, 1, 1},
                       (i + j) & 1 ? ALL : KEEP_DX);
    backend_close(&b);
}

static void kernels_strides_pads(void)
{
    Backend *b = open_backend(&backend_poison, 1);
    for (int64_t k = 1; k <= 7; k += 2)
        for (int64_t stride = 1; stride <= 2; ++stride)
            for (int64_t pad = 0; pad <= 3 && pad <= k / 2 + 1; ++pad) {
                check_conv(b, &(RefConv){2, 17, 9, 8, 16, k, k, stride, stride, pad, pad, 1}, ALL);
                check_conv(b, &(RefConv){1, 3, 12, 11, 33, k, k, stride, stride, pad, pad, 1},
                           WITH_BIAS);
            }
    backend_close(&b);
}

static void not_square(void)
{
    Backend *b = open_backend(&backend_poison, 2);
    check_conv(b, &(RefConv){2, 16, 9, 14, 32, 1, 5, 1, 2, 0, 2, 1}, ALL);
    check_conv(b, &(RefConv){3, 8, 13, 5, 5, 5, 3, 2, 1, 2, 0, 1}, ALL);
    check_conv(b, &(RefConv){1, 1, 10, 3, 1, 3, 1, 1, 1, 0, 0, 1}, ALL);
    backend_close(&b);
}

static void groups_and_depthwise(void)
{
    Backend *b = open_backend(&backend_poison, 1);
    const int64_t depth[] = {3, 16, 24, 33};
    for (int i = 0; i < 4; ++i)
        for (int64_t stride = 1; stride <= 2; ++stride) {
            check_conv(
                b, &(RefConv){2, depth[i], 9, 8, depth[i], 3, 3, stride, stride, 1, 1, depth[i]},
                KEEP_DX);
            check_conv(
                b, &(RefConv){1, depth[i], 7, 7, depth[i], 5, 5, stride, stride, 2, 2, depth[i]},
                ALL);
        }
    check_conv(b, &(RefConv){2, 32, 8, 8, 64, 3, 3, 1, 1, 1, 1, 2}, ALL);
    check_conv(b, &(RefConv){2, 12, 8, 8, 20, 3, 3, 1, 1, 1, 1, 4}, ALL);
    check_conv(b, &(RefConv){2, 6, 8, 8, 12, 3, 3, 2, 2, 1, 1, 6}, KEEP_DX);
    backend_close(&b);
}

static void shapes_of_models(void)
{
    Backend *b = open_backend(&backend_poison, 2);
    /* Winograd */
    check_conv(b, &(RefConv){4, 64, 14, 14, 64, 3, 3, 1, 1, 1, 1, 1}, KEEP_DX);
    /* Winograd in dw only */
    check_conv(b, &(RefConv){2, 32, 10, 9, 48, 3, 3, 1, 1, 0, 1, 1}, ALL);
    check_conv(b, &(RefConv){2, 256, 7, 7, 64, 1, 1, 1, 1, 0, 0, 1}, KEEP_DX);
    check_conv(b, &(RefConv){2, 64, 14, 14, 128, 1, 1, 2, 2, 0, 0, 1}, KEEP_DX);
    check_conv(b, &(RefConv){4, 1, 28, 28, 32, 3, 3, 1, 1, 1, 1, 1}, WITH_BIAS | WITH_RELU);
    check_conv(b, &(RefConv){1, 3, 32, 32, 64, 7, 7, 2, 2, 3, 3, 1}, 0);
    check_conv(b, &(RefConv){2, 96, 14, 14, 96, 3, 3, 2, 2, 1, 1, 96}, KEEP_DX);
    backend_close(&b);
}

/* Images no larger than the kernel, as at the end of a deep model on small data: oneDNN uses a fast
 * kernel for them, too, if it generates code. */
static void small_images(void)
{
    Backend *b = open_backend(&backend_poison, 1), *plain = open_backend(&backend_cpu, 1);
    for (int64_t side = 1; side <= 4; ++side)
        for (int64_t stride = 1; stride <= 2; ++stride) {
            const RefConv v = {2, 32, side, side, 16, 3, 3, stride, stride, 1, 1, 1};
            check_conv(b, &v, ALL);
            RefOp r;
            OpSpec spec = conv_spec(&v, KEEP_DX);
            CHECK_OK(ref_op_new(&r, plain, &spec));
            CU_ASSERT(dnnl_vector_floats() == 0 || !linear_is_reference(r.op));
            ref_op_free(&r);
        }
    backend_close(&plain);
    backend_close(&b);
}

static void same_bits_again(void)
{
    Backend *b = open_backend(&backend_cpu, 2);
    const RefConv v = {4, 33, 14, 14, 40, 3, 3, 1, 1, 1, 1, 1};
    OpSpec spec = conv_spec(&v, ALL);
    Case c[2];
    for (int i = 0; i < 2; ++i) {
        RefOp r;
        case_init(&c[i], &v);
        CHECK_OK(ref_op_new(&r, b, &spec));
        ref_op_forward(&r, c[i].x, c[i].w, c[i].y);
        ref_op_backward(&r, c[i].dy, c[i].dx, c[i].dw);
        ref_op_free(&r);
    }
    CU_ASSERT_EQUAL(memcmp(c[0].y, c[1].y, (size_t)c[0].y_n * sizeof(float)), 0);
    CU_ASSERT_EQUAL(memcmp(c[0].dx, c[1].dx, (size_t)c[0].x_n * sizeof(float)), 0);
    CU_ASSERT_EQUAL(memcmp(c[0].dw[0], c[1].dw[0], (size_t)c[0].w_n * sizeof(float)), 0);
    CU_ASSERT_EQUAL(memcmp(c[0].dw[1], c[1].dw[1], (size_t)v.o * sizeof(float)), 0);
    for (int i = 0; i < 2; ++i) case_fini(&c[i]);
    backend_close(&b);
}

static void pack_round_trip(void)
{
    Backend *b = open_backend(&backend_poison, 2);
    const RefConv all[] = {{1, 17, 8, 8, 33, 3, 3, 1, 1, 1, 1, 1},
                           {1, 24, 8, 8, 24, 3, 3, 1, 1, 1, 1, 24}};
    for (int i = 0; i < 2; ++i) {
        RefOp r;
        OpSpec spec = conv_spec(&all[i], ALL);
        int64_t n = shape_count(spec.w[0]);
        float *w = floats(n), *back = floats(n);
        ref_random(w, n, 5);
        CHECK_OK(ref_op_new(&r, b, &spec));
        CU_ASSERT(r.op->w_elements[0] >= n);
        op_pack(r.op, 0, w, r.w[0]);
        /* packing adds zeros only */
        double sum = 0, packed = 0;
        for (int64_t j = 0; j < n; ++j) sum += fabs((double)w[j]);
        for (int64_t j = 0; j < r.op->w_elements[0]; ++j) packed += fabs((double)r.w[0][j]);
        CU_ASSERT_DOUBLE_EQUAL(sum, packed, 1e-6 * sum);
        op_unpack(r.op, 0, r.w[0], back);
        CU_ASSERT_EQUAL(memcmp(w, back, (size_t)n * sizeof(float)), 0);
        mem_free(&w);
        mem_free(&back);
        ref_op_free(&r);
    }
    backend_close(&b);
}

static void refused(void)
{
    Backend *b = open_backend(&backend_cpu, 2);
    const RefConv v = {2, 16, 8, 8, 16, 3, 3, 1, 1, 1, 1, 1};
    Desc preferred[SPEC_INPUTS];
    Op *op = NULL;
    OpSpec spec = conv_spec(&v, 0);
    spec.w[0].dim[1] = 15;
    CHECK_FAILS(op_new(&op, b, &spec, preferred), ERR_CONFIG, "16x15x3x3");
    spec = conv_spec(&v, 0);
    spec.act = ACT_GELU;
    CHECK_FAILS(op_new(&op, b, &spec, preferred), ERR_CONFIG, "relu");
    CU_ASSERT_PTR_NULL(op);
    backend_close(&b);
}

TEST_MAIN("dnnl_conv", {"channels", channels}, {"kernels, strides, pads", kernels_strides_pads},
          {"not square", not_square}, {"groups and depthwise", groups_and_depthwise},
          {"shapes of models", shapes_of_models}, {"small images", small_images},
          {"same bits again", same_bits_again}, {"pack round trip", pack_round_trip},
          {"refused", refused})
