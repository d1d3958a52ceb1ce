/* bag: its output and its rows' gradients against a plain loop over ids, in all modes, on memory
 * filled with NaN, in bf16, with several numbers of threads; refusals of its shape rule. */
#include "harness.h"
#include "op_rig.h"

enum { SAMPLES = 7, FIELDS = 3, WIDTH = 150, ROWS = 5, IDS_MOST = 128 };

/* A micro-batch of `rows` samples. Field f of sample n has (n + 2 f) % 4 ids, whose rows repeat and
 * lie anywhere in memory. */
typedef struct Ids {
    int32_t first[SAMPLES * FIELDS + 1], row[IDS_MOST], at[ROWS];
    int rows;
    float value[2 * ROWS * WIDTH], grad[ROWS * WIDTH];
} Ids;

static void ids_make(Ids *ids, int rows, int fields, uint32_t seed)
{
    int count = 0, number[ROWS];
    memset(ids, 0, sizeof *ids);
    for (int r = 0; r < ROWS; ++r) number[r] = -1;
    for (int i = 0; i < SAMPLES * fields; ++i) {
        ids->first[i] = count;
        int n = i / fields, many = n < rows ? (n + 2 * (i % fields)) % 4 : 0;
        for (int k = 0; k < many; ++k) {
            int id = (int)(rig_number(seed, count, 100, 200)) % ROWS;
            if (number[id] < 0) number[id] = ids->rows++;
            ids->row[count++] = number[id];
        }
    }
    ids->first[SAMPLES * fields] = count;
    for (int r = 0; r < ids->rows; ++r) ids->at[r] = 2 * ((r + 2) % ROWS);
    for (int i = 0; i < 2 * ROWS * WIDTH; ++i) ids->value[i] = rig_number(9, i, 1, 0);
}

static BagInput ids_run(Ids *ids)
{
    return (BagInput){.first = ids->first,
                      .row = ids->row,
                      .rows = ids->rows,
                      .value = ids->value,
                      .at = ids->at,
                      .grad = ids->grad};
}

/* The factor of one id's row, and its place in a sample's y; the same for its gradient. */
typedef struct Part {
    int sample, row, at;
    double share;
} Part;

static int parts_of(const OpSpec *s, const Ids *ids, int rows, Part *part)
{
    int count = 0, fields = s->bag_fields, width = s->row_width;
    for (int n = 0; n < rows; ++n)
        for (int b = 0; b < (s->bag_together ? 1 : fields); ++b) {
            int from = ids->first[n * fields + b];
            int to = ids->first[n * fields + (s->bag_together ? fields : b + 1)];
            for (int id = from; id < to; ++id)
                part[count++] =
                    (Part){.sample = n,
                           .row = ids->row[id],
                           .at = s->bag_mode == BAG_CONCAT ? (b * s->bag_ids + id - from) * width
                                                           : b * width,
                           .share = s->bag_mode == BAG_MEAN ? 1.0 / (to - from) : 1};
        }
    return count;
}

static void rig_bag(Rig *rig, Backend *backend, const char *attrs, int samples, int fields)
{
    CHECK_OK(rig_spec(rig, backend, "bag", attrs));
    rig->size.fields = fields;
    rig->spec.x_count = 1;
    rig->spec.x[0] = desc_plain(shape_of(2, samples, 4, 1, 1), DTYPE_F32);
    CHECK_OK(layer_infer_shapes(layer_kind("bag"), &rig->spec, &rig->size, rig->param));
    CU_ASSERT_EQUAL(rig->spec.w_count, 0);
    CHECK_OK(rig_plan(rig));
    rig_memory(rig);
}

/* Runs forward and backward; the gradient is left in ids. */
static void go(Rig *rig, Ids *ids, int rows, float *y, float *dy)
{
    BagInput bag = ids_run(ids);
    int64_t count = shape_count(rig->spec.y.shape), real = count / SAMPLES * rows;
    rig->run.bag = &bag;
    rig->run.sample_count = rows;
    rig_forward(rig);
    rig_get_y(rig, y);
    for (int64_t i = 0; i < count; ++i) dy[i] = i < real ? rig_number(31, i, 1, 0) : 0;
    rig_backward(rig, dy);
}

static void check(const BackendTable *table, DType type, int threads, const char *attrs, int rows)
{
    Rig rig = {0};
    Backend *backend;
    static Ids ids;
    Part part[IDS_MOST];
    ids_make(&ids, rows, FIELDS, (uint32_t)rows);
    CHECK_OK(
        backend_open(&backend, table, (BackendOptions){.threads = threads, .precision = type}));
    rig_bag(&rig, backend, attrs, SAMPLES, FIELDS);
    const int width = rig.spec.row_width;
    int64_t count = shape_count(rig.spec.y.shape), per = count / SAMPLES;
    float *y = mem_new((size_t)count * sizeof *y), *dy = mem_new((size_t)count * sizeof *dy);
    double *want = mem_new((size_t)count * sizeof *want), grad[ROWS * WIDTH] = {0}, worst = 0;
    go(&rig, &ids, rows, y, dy);
    int parts = parts_of(&rig.spec, &ids, rows, part);
    for (int i = 0; i < parts; ++i)
        for (int c = 0; c < width; ++c) {
            int64_t at = part[i].sample * per + part[i].at + c;
            want[at] += part[i].share * (double)ids.value[ids.at[part[i].row] * width + c];
            grad[part[i].row * width + c] += part[i].share * (double)dy[at];
        }
    for (int64_t i = 0; i < count; ++i) worst = fmax(worst, fabs(y[i] - want[i]));
    for (int i = 0; i < ids.rows * width; ++i) worst = fmax(worst, fabs(ids.grad[i] - grad[i]));
    bool near = worst <= (type == DTYPE_F32 ? 2e-6 : 5e-2);
    if (!near) printf("  %s, %d rows: off by %g\n", attrs, rows, worst);
    CU_ASSERT_TRUE(near);
    rig_close(&rig);
    backend_close(&backend);
    mem_free(&y);
    mem_free(&dy);
    mem_free(&want);
}

static const char *const modes[] = {"width=3",
                                    "width=150",
                                    "width=3 mode=mean",
                                    "width=150 mode=mean",
                                    "width=3 mode=concat ids=3",
                                    "width=3 together=true",
                                    "width=3 together=true mode=mean",
                                    "width=2 together=true mode=concat ids=9"};
enum { MODES = sizeof modes / sizeof modes[0] };

static void test_modes(void)
{
    for (int m = 0; m < MODES; ++m)
        for (int rows = SAMPLES; rows >= 0; rows -= 2) {
            check(&backend_poison, DTYPE_F32, 1, modes[m], rows);
            check(&backend_cpu, DTYPE_F32, 3, modes[m], rows);
        }
}

static void test_bf16(void)
{
    Backend *backend = NULL;
    BackendOptions options = {.threads = 1, .precision = DTYPE_BF16};
    if (backend_open(&backend, &backend_poison, options) != OK) TEST_SKIP(fail_message());
    backend_close(&backend);
    for (int m = 0; m < MODES; ++m) check(&backend_poison, DTYPE_BF16, 1, modes[m], SAMPLES - 2);
}

/* Large enough that several threads get work. */
static void test_threads(void)
{
    enum { MANY = 512, WIDE = 64, DISTINCT = 90, COUNT = MANY * 2 * 3 };
    static int32_t first[MANY * 2 + 1], row[COUNT], at[DISTINCT], number[DISTINCT];
    static float value[DISTINCT * WIDE], grad[4][DISTINCT * WIDE], y[4][MANY * 2 * WIDE],
        dy[MANY * 2 * WIDE];
    BagInput bag = {.first = first, .row = row, .value = value, .at = at};
    for (int i = 0; i < DISTINCT; ++i) number[i] = -1;
    for (int i = 0; i < COUNT; ++i) {
        int id = (int)rig_number(3, i, 1000, 2000) % DISTINCT;
        if (number[id] < 0) number[id] = bag.rows++;
        row[i] = number[id];
    }
    for (int i = 0; i <= MANY * 2; ++i) first[i] = 3 * i;
    for (int i = 0; i < DISTINCT; ++i) at[i] = i;
    for (int i = 0; i < DISTINCT * WIDE; ++i) value[i] = rig_number(4, i, 1, 0);
    for (int i = 0; i < MANY * 2 * WIDE; ++i) dy[i] = rig_number(5, i, 1, 0);
    for (int threads = 1; threads <= 4; ++threads) {
        Backend *backend;
        Rig rig = {0};
        CHECK_OK(backend_open(&backend, &backend_cpu, (BackendOptions){.threads = threads}));
        rig_bag(&rig, backend, "width=64 mode=mean", MANY, 2);
        bag.grad = grad[threads - 1];
        rig.run.bag = &bag;
        rig_forward(&rig);
        rig_get_y(&rig, y[threads - 1]);
        rig_backward(&rig, dy);
        CU_ASSERT_EQUAL(memcmp(y[0], y[threads - 1], sizeof y[0]), 0);
        CU_ASSERT_EQUAL(memcmp(grad[0], grad[threads - 1], sizeof grad[0]), 0);
        rig_close(&rig);
        backend_close(&backend);
    }
}

static void refused(const char *attrs, int fields, uint64_t id_limit, const char *why)
{
    Rig rig = {0};
    CHECK_OK(rig_spec(&rig, NULL, "bag", attrs));
    rig.size.fields = fields;
    rig.size.id_limit = id_limit;
    rig.spec.x_count = 1;
    rig.spec.x[0] = desc_plain(shape_of(2, 4, 4, 1, 1), DTYPE_F32);
    CHECK_FAILS(layer_infer_shapes(layer_kind("bag"), &rig.spec, &rig.size, rig.param), ERR_CONFIG,
                why);
}

static void test_refused(void)
{
    Rig rig = {0};
    refused("width=4", 0, 0, "bag needs data with ids, and the data has none");
    refused("vocab=4", 3, 0, "bag needs width");
    refused("width=4 fields=2 first_field=2", 3, 0,
            "2 fields from field 2 on, but the data has 3 fields");
    refused("width=4 first_field=3", 3, 0, "1 fields from field 3 on");
    refused("width=4 hashed=true", 3, 0, "hashed needs vocab");
    refused("width=4 vocab=10", 3, 11, "ids go up to 10, but vocab is only 10");
    refused("width=4 mode=concat", 3, 0, "mode: concat needs ids");
    refused("width=4 ids=2", 3, 0, "mode: concat needs ids");
    refused("width=4 init=he", 3, 0, "'he' is none of uniform, normal, zero");
    CHECK_OK(rig_spec(&rig, NULL, "bag", "width=4 vocab=10 hashed=true tables=each"));
    CU_ASSERT_EQUAL(rig.size.tables, TABLES_EACH);
    CHECK_FAILS(rig_spec(&rig, NULL, "bag", "mode=max"), ERR_CONFIG,
                "mode: 'max' is none of sum, mean, concat");
    CHECK_FAILS(rig_spec(&rig, NULL, "bag", "tables=all"), ERR_CONFIG,
                "tables: 'all' is none of shared, each");
}

/* Initial values are a function of seed, table, id and column; a row begins with the same values
 * for any width. */
static void test_first_values(void)
{
    const uint64_t table = hash_text("bag1");
    float a[8], b[8], most = 0;
    layer_row_init(INIT_UNIFORM, 0.5f, 1, table, UINT64_MAX, 8, a);
    layer_row_init(INIT_UNIFORM, 0.5f, 1, table, UINT64_MAX, 3, b);
    CU_ASSERT_EQUAL(memcmp(a, b, 3 * sizeof *a), 0);
    for (int i = 0; i < 8; ++i) most = fmaxf(most, fabsf(a[i]));
    CU_ASSERT_TRUE(most > 0.1f && most <= 0.5f);
    layer_row_init(INIT_UNIFORM, 0.5f, 1, table, UINT64_MAX - 1, 8, b);
    CU_ASSERT_NOT_EQUAL(memcmp(a, b, sizeof a), 0);
    layer_row_init(INIT_UNIFORM, 0.5f, 2, table, UINT64_MAX, 8, b);
    CU_ASSERT_NOT_EQUAL(memcmp(a, b, sizeof a), 0);
    layer_row_init(INIT_UNIFORM, 0.5f, 1, hash_text("bag2"), UINT64_MAX, 8, b);
    CU_ASSERT_NOT_EQUAL(memcmp(a, b, sizeof a), 0);
    layer_row_init(INIT_ZERO, 0.5f, 1, table, 0, 8, b);
    for (int i = 0; i < 8; ++i) CU_ASSERT_EQUAL(b[i], 0);
    double sum = 0, squares = 0;
    enum { ROWS_DRAWN = 500 };
    for (uint64_t id = 0; id < ROWS_DRAWN; ++id) {
        layer_row_init(INIT_NORMAL, 0.1f, 1, table, id, 8, a);
        for (int i = 0; i < 8; ++i) sum += a[i], squares += (double)(a[i] * a[i]);
    }
    CU_ASSERT_DOUBLE_EQUAL(sum / (8 * ROWS_DRAWN), 0, 0.01);
    CU_ASSERT_DOUBLE_EQUAL(sqrt(squares / (8 * ROWS_DRAWN)), 0.1, 0.01);
}

TEST_MAIN("bag", {"modes", test_modes}, {"bf16", test_bf16}, {"threads", test_threads},
          {"refused", test_refused}, {"first values", test_first_values})
