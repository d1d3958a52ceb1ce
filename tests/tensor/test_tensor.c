/* Shapes, layouts, opening backends, and the share of threads from recorded cgroup files. */
#include "reference.h"
#include "tensor/threads.h"

#include "harness.h"

#include <sys/stat.h>

static void shapes(void)
{
    char text[64];
    Shape s = shape_of(4, 8, 64, 28, 28);
    CU_ASSERT_EQUAL(shape_count(s), 8 * 64 * 28 * 28);
    CU_ASSERT_STRING_EQUAL(shape_text(s, text), "8x64x28x28");
    CU_ASSERT_EQUAL(shape_of(2, 3, 4, 9, 9).dim[2], 1);
    CU_ASSERT(shape_equal(shape_of(2, 3, 4, 1, 1), shape_of(2, 3, 4, 7, 7)));
    CU_ASSERT_FALSE(shape_equal(shape_of(2, 3, 4, 1, 1), shape_of(3, 3, 4, 1, 1)));
    shape_text(shape_of(4, INT64_MAX, INT64_MAX, INT64_MAX, INT64_MAX), text);
    CU_ASSERT(strlen(text) < 64);
}

static void layouts(void)
{
    Desc d = desc_plain(shape_of(4, 2, 17, 3, 3), DTYPE_F32);
    CU_ASSERT(desc_is_plain(d));
    CU_ASSERT_EQUAL(desc_elements(d), 2 * 17 * 9);
    Desc blocked = d;
    blocked.block = 16;
    CU_ASSERT_FALSE(desc_is_plain(blocked));
    CU_ASSERT_FALSE(desc_equal(d, blocked));
    CU_ASSERT_EQUAL(desc_elements(blocked), 2 * 32 * 9);
    CU_ASSERT_EQUAL(desc_bytes(blocked), 2 * 32 * 9 * 4);
    Desc flat = {shape_of(2, 2, 17 * 9, 1, 1), DTYPE_F32, 16, true, d.shape};
    CU_ASSERT_EQUAL(desc_elements(flat), desc_elements(blocked));
    CU_ASSERT_FALSE(desc_is_plain(flat));
    flat.block = 1;
    CU_ASSERT(desc_is_plain(flat));
    Desc last = {.shape = d.shape, .block = 17};
    CU_ASSERT_EQUAL(desc_elements(last), desc_elements(d));
}

/* Takes more laps than the stopwatch has room for at first; each lap has the time of that lap's
 * work only. */
static void stopwatches(void)
{
    enum { LAPS = 20 };
    const double nap_s = 1e-3;
    Backend *b = NULL;
    CHECK_OK(backend_open(&b, &backend_cpu, (BackendOptions){.threads = 1}));
    Stopwatch *watch = stopwatch_new(b);
    CU_ASSERT_EQUAL(stopwatch_sum_s(watch), 0);
    double begin = clock_s(), inside = 0, sum = 0;
    for (int i = 0; i < LAPS; ++i) {
        stopwatch_start(watch);
        double start = clock_s();
        while (i % 2 && clock_s() - start < nap_s) continue;
        inside += clock_s() - start;
        stopwatch_stop(watch);
        while (clock_s() - start < nap_s) continue;
    }
    CU_ASSERT_EQUAL(stopwatch_laps(watch), LAPS);
    for (int i = 0; i < LAPS; ++i) {
        CU_ASSERT(stopwatch_lap_s(watch, i) >= (i % 2 ? nap_s : 0));
        sum += stopwatch_lap_s(watch, i);
    }
    CU_ASSERT(sum >= inside && sum <= clock_s() - begin);
    CU_ASSERT_EQUAL(stopwatch_sum_s(watch), sum);
    stopwatch_clear(watch);
    CU_ASSERT_EQUAL(stopwatch_laps(watch), 0);
    CU_ASSERT_EQUAL(stopwatch_sum_s(watch), 0);
    stopwatch_free(&watch);
    CU_ASSERT_PTR_NULL(watch);
    backend_close(&b);
}

static void backends(void)
{
    Backend *b = NULL;
    CHECK_FAILS(backend_open(&b, &backend_cpu, (BackendOptions){.threads = 0}), ERR_CONFIG,
                "train.threads");
    CU_ASSERT_PTR_NULL(b);
    CHECK_OK(backend_open(&b, &backend_cpu, (BackendOptions){.threads = 1}));
    const BackendTable *t = b->table;
    char *p = t->alloc(b, 5000);
    t->flat->fill(t->stream(b), (float *)(void *)p, 1, 1250);
    t->copy(t->stream(b), p, "weft", 5);
    t->sync(t->stream(b));
    CU_ASSERT_STRING_EQUAL(p, "weft");
    Event *e = t->event_new(b);
    t->event_record(e, t->stream(b));
    t->event_wait(e, t->stream(b));
    t->event_free(&e);
    CU_ASSERT_PTR_NULL(e);
    t->release(b, p, 5000);
    backend_close(&b);
    CU_ASSERT_PTR_NULL(b);
}

/* The name of an operation equals that of its file and tables, and its row is at its constant's
 * index. */
static void one_name(void)
{
#define NAME(OP, name, where) [OP_##OP] = #name,
    static const char *const names[OP_KINDS] = {OPERATIONS(NAME)};
#undef NAME
    for (OpKind k = OP_NONE + 1; k < OP_KINDS; ++k) {
        CU_ASSERT_STRING_EQUAL(op_info(k)->name, names[k]);
        CU_ASSERT_STRING_EQUAL(backend_cpu.op[k]->name, names[k]);
        if (backend_cuda.op[k]) CU_ASSERT_STRING_EQUAL(backend_cuda.op[k]->name, names[k]);
        CU_ASSERT(op_info(k)->layer_inputs == 0 || op_info(k)->layer_help);
    }
    CU_ASSERT_PTR_NULL(op_info(OP_KINDS));
    CU_ASSERT_PTR_NULL(op_info(OP_NONE));
    CU_ASSERT_PTR_NULL(op_info(-1));
}

static void missing_operation(void)
{
    BackendTable lacking = backend_cpu;
    lacking.name = "lacking";
    lacking.op[OP_DENSE] = NULL;
    Backend *b = NULL;
    Op *op = NULL;
    Desc preferred[SPEC_INPUTS];
    CHECK_OK(backend_open(&b, &lacking, (BackendOptions){.threads = 1}));
    CHECK_FAILS(op_new(&op, b, &(OpSpec){.kind = OP_DENSE, .x_count = 1}, preferred), ERR_CONFIG,
                "dense");
    OpSpec empty = {.kind = OP_REORDER, .x_count = 1};
    CHECK_FAILS(op_new(&op, b, &empty, preferred), ERR_CONFIG, "reorder");
    OpTable halved = *backend_cpu.op[OP_RMS_NORM];
    halved.forward = NULL;
    lacking.op[OP_RMS_NORM] = &halved;
    CHECK_FAILS(op_new(&op, b, &(OpSpec){.kind = OP_RMS_NORM, .x_count = 1}, preferred), ERR_BUG,
                "operation 'rms_norm' has no forward");
    CU_ASSERT_PTR_NULL(op);
    backend_close(&b);
}

static void threads_are_divided(void)
{
    CU_ASSERT_EQUAL(threads_divide(2, 2, 0, 1), 2);
    CU_ASSERT_EQUAL(threads_divide(2, 2, 0, 2), 1);
    /* at least one */
    CU_ASSERT_EQUAL(threads_divide(2, 2, 0, 4), 1);
    /* ranks bound to one core each */
    CU_ASSERT_EQUAL(threads_divide(1, 64, 0, 64), 1);
    /* ranks bound to one socket each */
    CU_ASSERT_EQUAL(threads_divide(32, 64, 0, 2), 32);
    CU_ASSERT_EQUAL(threads_divide(32, 64, 0, 4), 16);
    /* taskset, then mpirun */
    CU_ASSERT_EQUAL(threads_divide(4, 4, 0, 4), 1);
    /* a container's quota */
    CU_ASSERT_EQUAL(threads_divide(64, 64, 6, 2), 3);
    CU_ASSERT_EQUAL(threads_divide(64, 64, 1, 4), 1);
    CU_ASSERT(threads_share(1) >= 1);
    CU_ASSERT_EQUAL(threads_share(1 << 20), 1);
}

static void put(const char *folder, const char *name, const char *text)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *f = fopen(path, "w");
    CU_ASSERT_PTR_NOT_NULL_FATAL(f);
    fputs(text, f);
    fclose(f);
}

static void folder(const char *root, const char *name)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", root, name);
    CU_ASSERT_EQUAL(mkdir(path, 0700), 0);
}

static void quotas(void)
{
    char root[] = "/tmp/weft-cgroup-XXXXXX", file[256];
    CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(root));
    snprintf(file, sizeof file, "%s/self", root);
    folder(root, "job");
    folder(root, "job/step");
    folder(root, "cpu");
    put(root, "self", "0::/job/step\n");
    CU_ASSERT_EQUAL(threads_quota(file, root), 0);
    put(root, "job/step/cpu.max", "max 100000\n");
    CU_ASSERT_EQUAL(threads_quota(file, root), 0);
    /* the parent group's limit counts */
    put(root, "job/cpu.max", "350000 100000\n");
    CU_ASSERT_EQUAL(threads_quota(file, root), 3);
    put(root, "job/step/cpu.max", "50000 100000\n");
    CU_ASSERT_EQUAL(threads_quota(file, root), 1);
    /* cgroup v1 */
    put(root, "self", "4:cpu,cpuacct:/\n3:memory:/job\n");
    put(root, "cpu/cpu.cfs_quota_us", "-1\n");
    put(root, "cpu/cpu.cfs_period_us", "100000\n");
    CU_ASSERT_EQUAL(threads_quota(file, root), 0);
    put(root, "cpu/cpu.cfs_quota_us", "800000\n");
    CU_ASSERT_EQUAL(threads_quota(file, root), 8);
    CU_ASSERT_EQUAL(threads_quota("/no/such/file", root), 0);
    static const char *const made[] = {"job/step/cpu.max",
                                       "job/cpu.max",
                                       "cpu/cpu.cfs_quota_us",
                                       "cpu/cpu.cfs_period_us",
                                       "self",
                                       "job/step",
                                       "job",
                                       "cpu",
                                       ""};
    for (size_t i = 0; i < sizeof made / sizeof made[0]; ++i) {
        snprintf(file, sizeof file, "%s/%s", root, made[i]);
        CU_ASSERT_EQUAL(remove(file), 0);
    }
}

static void versions(void)
{
    char text[1024] = "";
    FILE *f = fmemopen(text, sizeof text, "w");
    CU_ASSERT_PTR_NOT_NULL_FATAL(f);
    backend_versions(f, true);
    fclose(f);
    CU_ASSERT_PTR_NOT_NULL(strstr(text, "oneDNN"));
    CU_ASSERT_PTR_NOT_NULL(strstr(text, "CUDA"));
}

TEST_MAIN("tensor", {"shapes", shapes}, {"layouts", layouts}, {"backends", backends},
          {"stopwatches", stopwatches}, {"one name", one_name},
          {"missing operation", missing_operation}, {"threads are divided", threads_are_divided},
          {"quotas", quotas}, {"versions", versions})
