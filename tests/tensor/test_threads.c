/* The bits of every operation do not depend on the number of threads: forward and backward, in fp32
 * and bf16, with 1 to 8 threads; dense and conv2d at shapes of the model zoo. */
#include "op_cases.h"
#include "tensor/cpu/dnnl/linear.h"

static const int up_to_8[] = {2, 3, 4, 5, 6, 7, 8, 0}, some[] = {2, 3, 4, 8, 0};

/* A number in [-1, 1) that takes less time than Philox. */
static double quick_number(uint64_t what, int64_t i)
{
    uint64_t u = ((uint64_t)i + 1) * 0x9e3779b97f4a7c15u + what * 0xbf58476d1ce4e5b9u;
    u = (u ^ u >> 32) * 0x94d049bb133111ebu;
    return (double)(u >> 40) / (1 << 23) - 1;
}

/* ---- comparison ---- */

static uint64_t hash_chain(uint64_t hash, const void *p, size_t bytes)
{
    return hash_seeded(p, bytes, hash);
}

/* Hashes of an operation's results, weights in plain order. */
typedef struct Result {
    uint64_t y, dx, dw;
    char kernels[256];
} Result;

static Result result_of(const Rig *r)
{
    const OpSpec *s = &r->op->spec;
    Result a = {.y = hash_chain(0, r->run.y, desc_bytes(s->y))};
    for (int k = 0; k < s->x_count; ++k)
        if (s->x[k].dtype != DTYPE_I32 && s->need_dx[k])
            a.dx = hash_chain(a.dx, r->run.dx[k], desc_bytes(s->x[k]));
    for (int k = 0; k < s->w_count; ++k) {
        const size_t bytes = (size_t)shape_count(s->w[k]) * sizeof(float);
        float *plain_w = mem_new(bytes);
        op_unpack(r->op, k, r->run.dw[k], plain_w);
        a.dw = hash_chain(a.dw, plain_w, bytes);
        mem_free(&plain_w);
    }
    if (s->kind == OP_DENSE || s->kind == OP_CONV2D || s->kind == OP_CONV_TRANSPOSE2D)
        linear_text(r->op, a.kernels);
    return a;
}

static Result result_with(OpSpec s, DType precision, int threads)
{
    Rig r;
    run(&r, s, precision, threads);
    const Result a = result_of(&r);
    rig_close(&r);
    return a;
}

/* Compares the results with those of each number of threads in `more`, which ends with 0. */
static void check(const char *name, OpSpec s, DType precision, const int *more)
{
    case_number = quick_number;
    s = preferring(s, precision);
    const Result one_thread = result_with(s, precision, 1);
    for (; *more; ++more) {
        const int threads = *more;
        const Result a = result_with(s, precision, threads);
        const bool y = a.y == one_thread.y, dx = a.dx == one_thread.dx, dw = a.dw == one_thread.dw;
        if (!y || !dx || !dw)
            printf("  %s, %s, %d threads: other bits of%s%s%s (%s)\n", name, dtype_name(precision),
                   threads, y ? "" : " y", dx ? "" : " dx", dw ? "" : " dw", a.kernels);
        CU_ASSERT(y && dx && dw);
    }
}

/* ---- every operation ---- */

/* Returns s with as many samples as parallel loops need to use all threads. */
static OpSpec enlarged(OpSpec s)
{
    enum { ELEMENTS = 25000 };
    int64_t each = shape_count(s.x[0].shape) / s.x[0].shape.dim[0];
    const int64_t each_y = shape_count(s.y.shape) / s.y.shape.dim[0];
    if (each_y > each) each = each_y;
    int64_t n = ELEMENTS / each + 1;
    if (s.kind == OP_DENSE || s.kind == OP_CONV2D || s.kind == OP_CONV_TRANSPOSE2D ||
        n < s.x[0].shape.dim[0])
        n = s.x[0].shape.dim[0];
    for (int k = 0; k < s.x_count; ++k) {
        s.x[k].shape.dim[0] = n;
        if (s.x[k].flat) s.x[k].image.dim[0] = n;
    }
    s.y.shape.dim[0] = n;
    return s;
}

static OpSpec exchange(void)
{
    OpSpec s = one(OP_EXCHANGE, plain(3, 3, 6, 37, 1), plain(3, 3, 6, 37, 1));
    s.exchange = EXCHANGE_LEAVE;
    s.slice.ranks = 1;
    s.w_count = 1;
    s.w[0] = shape_of(1, 37, 1, 1, 1);
    return s;
}

/* Gradients of keys that several query heads share are sums over slices of the query heads. */
static void test_shared_keys(void)
{
    static const int kv_heads[] = {1, 2};
    for (int i = 0; i < 2; ++i)
        for (int slices = 2; slices <= 4; slices *= 2) {
            OpSpec s = shared_keys(150, 16, kv_heads[i], true);
            s.slices = (SumSlices){.total = slices,
                                   .count = slices,
                                   .units = s.heads,
                                   .first_unit_ratio = 1,
                                   .parts = 1};
            check("attention, slices of query heads", s, DTYPE_F32, up_to_8);
        }
}

static void check_all(DType precision)
{
    int count;
    bool seen[OP_KINDS] = {0};
    const Case *c = cases(&count);
    const Case others[] = {
        {"exchange", exchange()},
        {"conv_transpose to few channels", conv_transpose(16, 3, 1, 4)},
        {"reorder", one(OP_REORDER, plain(4, 2, 20, 9, 7), image(2, 20, 9, 7))},
        {"flatten", one(OP_FLATTEN, image(2, 20, 9, 7), plain(2, 2, 20 * 9 * 7, 1, 1))},
        {"pixel_tokens", one(OP_PIXEL_TOKENS, image(2, 20, 9, 7), plain(3, 2, 9 * 7, 20, 1))},
    };
    enum { OTHERS = sizeof others / sizeof *others };
    /* its gradients, by rows of a table, are compared in tests/layers/test_bag.c */
    seen[OP_BAG] = true;
    for (int i = 0; i < count + OTHERS; ++i) {
        const Case *k = i < count ? &c[i] : &others[i - count];
        check(k->name, enlarged(k->spec), precision, up_to_8);
        seen[k->spec.kind] = true;
    }
    for (int kind = OP_NONE + 1; kind < OP_KINDS; ++kind) {
        if (!seen[kind]) printf("  no case of %s\n", op_info(kind)->name);
        CU_ASSERT(seen[kind]);
    }
}

/* ---- products and convolutions at shapes of the model zoo ---- */

typedef struct ConvCase {
    int n, side, c, o, groups, kernel, stride;
} ConvCase;
/* Shapes of lenet, resnet18, resnet50 and mobilenet_v2, mostly with fewer pixels; others. */
static const ConvCase convs[] = {
    {8, 28, 1, 32, 1, 3, 1},      {8, 14, 32, 64, 1, 3, 1},   {2, 28, 1, 64, 1, 3, 1},
    {8, 56, 64, 64, 1, 1, 1},     {4, 14, 64, 128, 1, 3, 2},  {4, 14, 64, 128, 1, 1, 2},
    {4, 14, 128, 256, 1, 3, 2},   {4, 7, 256, 512, 1, 1, 2},  {4, 4, 256, 256, 1, 3, 1},
    {2, 64, 3, 64, 1, 7, 2},      {2, 14, 64, 256, 1, 1, 1},  {2, 14, 256, 64, 1, 1, 1},
    {2, 14, 512, 128, 1, 1, 1},   {3, 7, 256, 1024, 1, 1, 1}, {1, 7, 512, 512, 1, 1, 1},
    {2, 56, 3, 32, 1, 3, 2},      {2, 28, 32, 16, 1, 1, 1},   {3, 14, 24, 144, 1, 1, 1},
    {2, 28, 144, 144, 144, 3, 2}, {5, 7, 160, 480, 1, 1, 1},  {2, 15, 17, 33, 1, 3, 2},
};
typedef struct DenseCase {
    int rows, in, out;
    bool plain_weight;
} DenseCase;
static const DenseCase products[] = {
    {64, 784, 512, false},  {64, 512, 10, false},   {32, 3136, 128, false},  {20, 512, 100, false},
    {8, 2048, 100, false},  {1, 2048, 100, false},  {512, 384, 1152, false}, {512, 128, 256, true},
    {300, 512, 96, false},  {256, 256, 768, false}, {1024, 13, 64, false},   {2048, 64, 1, false},
    {1000, 100, 36, false}, {3, 3000, 3, false},    {16, 5000, 8, false},    {4000, 8, 16, false},
    {2, 40, 10, false},     {3, 40, 40, false},     {20, 40, 3000, false},   {300, 1, 40, false},
};

static void check_conv(const ConvCase *c, DType precision)
{
    char name[96];
    snprintf(name, sizeof name, "conv %dx%d, %dx%d/%d of %d, %d to %d in %d", c->side, c->side,
             c->kernel, c->kernel, c->stride, c->n, c->c, c->o, c->groups);
    check(name, conv_of(c->n, c->side, c->c, c->o, c->groups, c->kernel, c->stride), precision,
          some);
}

static void check_zoo(DType precision)
{
    char name[96];
    for (size_t i = 0; i < sizeof convs / sizeof *convs; ++i) check_conv(&convs[i], precision);
    for (size_t i = 0; i < sizeof products / sizeof *products; ++i) {
        const DenseCase *c = &products[i];
        snprintf(name, sizeof name, "dense %d rows, %d to %d", c->rows, c->in, c->out);
        check(name, dense(c->rows, c->in, c->out, c->plain_weight, ACT_NONE), precision, some);
    }
}

static void test_fp32(void)
{
    check_all(DTYPE_F32);
}

static void test_bf16(void)
{
    if (have_bf16()) check_all(DTYPE_BF16);
}

static void test_zoo_fp32(void)
{
    check_zoo(DTYPE_F32);
}

static void test_zoo_bf16(void)
{
    if (have_bf16()) check_zoo(DTYPE_BF16);
}

/* Writes the kernels of a convolution's three directions. */
static void kernels_text(bool same_threads, char out[256])
{
    Backend *backend;
    Op *op = NULL;
    Desc preferred[SPEC_INPUTS];
    CHECK_OK(backend_open(&backend, &backend_cpu,
                          (BackendOptions){.threads = 2, .same_threads = same_threads}));
    const OpSpec s = preferring(conv_of(8, 14, 64, 64, 1, 1, 1), DTYPE_F32);
    CHECK_OK(op_new(&op, backend, &s, preferred));
    linear_text(op, out);
    op_free(&op);
    backend_close(&backend);
}

/* If bits may depend on the number of threads, oneDNN computes the weight's gradient and divides
 * its sums, except with train.cpu: portable. */
static void test_same_threads(void)
{
    char any[256], same[256];
    kernels_text(false, any);
    kernels_text(true, same);
    CU_ASSERT_EQUAL(strcmp(any, same) != 0, own_block_channels() > 0 && !cpu_portable());
}

TEST_MAIN("threads", {"same threads", test_same_threads}, {"shared keys", test_shared_keys},
          {"fp32", test_fp32}, {"bf16", test_bf16}, {"zoo, fp32", test_zoo_fp32},
          {"zoo, bf16", test_zoo_bf16})
