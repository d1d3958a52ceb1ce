/* Tests tables with ids: one per field, and bags of any length; ids 0, 2^63 and 2^64 - 1; several
 * files; other types and storage; ids out of range and broken indices are named by file, sample and
 * field. */
#include "fixture.h"

enum { N = 57, F = 3, ROWS = 1000 };

static uint64_t id_of(int64_t sample, int field, int i)
{
    static const uint64_t edge[] = {0, UINT64_C(1) << 63, UINT64_MAX, UINT64_C(1) << 31};
    uint64_t at = (uint64_t)(sample * F + field) + (uint64_t)i * 7;
    return at % 5 < 4 ? edge[at % 5] : at;
}

/* Number of ids in a field of a sample in flat sets: none to four. */
static int bag_of(int64_t sample, int field)
{
    return (int)((sample * 5 + field * 3 + sample / 7) % 5);
}

static hid_t table_new(const char *path, int n, int first)
{
    hid_t file = h5_new(path);
    float x[N][2];
    int32_t y[N];
    for (int i = 0; i < n; ++i) x[i][0] = (float)(first + i), x[i][1] = 1, y[i] = (first + i) % 2;
    h5_put_word(file, "format", "weft-data");
    h5_put_int(file, "version", 1);
    h5_put_word(file, "kind", "table");
    h5_put_int(file, "classes", 2);
    hsize_t rows = (hsize_t)n;
    h5_put(file, (H5Array){"dense", H5T_IEEE_F32LE, H5T_NATIVE_FLOAT, 2, {rows, 2}, {0}, 0, x});
    h5_put(file, (H5Array){"y", H5T_STD_I32LE, H5T_NATIVE_INT32, 1, {rows}, {0}, 0, y});
    return file;
}

static const char *square(const char *name, int n, int first, bool packed)
{
    const char *path = in_scratch(name);
    hid_t file = table_new(path, n, first);
    uint64_t ids[N][F];
    for (int i = 0; i < n; ++i)
        for (int f = 0; f < F; ++f) ids[i][f] = id_of(first + i, f, 0);
    H5Array a = {"sparse", H5T_STD_U64LE, H5T_NATIVE_UINT64, 2, {(hsize_t)n, F}, {0}, 0, ids};
    if (packed) a.stored = H5T_STD_U64BE, a.chunk[0] = 5, a.chunk[1] = F, a.deflate = 4;
    h5_put(file, a);
    H5Fclose(file);
    return path;
}

/* Writes bags of different lengths. bad: index in the data set of offsets whose entry is made too
 * large; negative: none. most: value of the attribute id_most; 0: the attribute is left out. */
static const char *flat(const char *name, int n, int first, int bad, int most)
{
    const char *path = in_scratch(name);
    hid_t file = table_new(path, n, first);
    uint64_t ids[N * F * 4], offset[N * F + 1] = {0}, count = 0;
    for (int i = 0; i < n; ++i)
        for (int f = 0; f < F; ++f) {
            for (int k = 0; k < bag_of(first + i, f); ++k) ids[count++] = id_of(first + i, f, k);
            offset[i * F + f + 1] = count;
        }
    if (bad >= 0) offset[bad] = count + 1;
    if (most) h5_put_int(file, "id_most", most);
    hsize_t places = (hsize_t)(n * F + 1);
    h5_put(file, (H5Array){"sparse", H5T_STD_U64LE, H5T_NATIVE_UINT64, 1, {count}, {0}, 0, ids});
    h5_put(
        file,
        (H5Array){"sparse_offset", H5T_STD_U64LE, H5T_NATIVE_UINT64, 1, {places}, {0}, 0, offset});
    H5Fclose(file);
    return path;
}

/* Does row r of the batch equal its sample? */
static bool row_good(const MicroBatch *b, int64_t r, bool bags)
{
    for (int f = 0; f < F; ++f) {
        int begin = b->id_first[r * F + f], end = b->id_first[r * F + f + 1];
        if (end - begin != (bags ? bag_of(b->sample[r], f) : 1)) return false;
        for (int i = 0; i < end - begin; ++i)
            if (b->ids[begin + i] != id_of(b->sample[r], f, i)) return false;
    }
    return b->x[2 * r] == (float)b->sample[r];
}

/* Reads two epochs of training, and an evaluation. */
static void loads(const char *path, int64_t samples, bool bags)
{
    enum { MICRO = 10 };
    DataSet set;
    Config c = config_plain();
    CHECK_OK(data_set_open(&set, &c, path));
    CU_ASSERT(set.samples == samples && set.fields == F && set.id_limit == 0);
    CHECK_OK(data_set_check(&set, 0));
    for (int training = 0; training < 2; ++training) {
        Loader *l = NULL;
        LoaderPlan plan = {.batch = MICRO, .micro_batch = MICRO, .micro_count = 1, .slots = 2};
        plan.training = training;
        plan.workers = 1 + 2 * training;
        CHECK_OK(loader_new(&l, &set, &c, plan));
        int64_t seen = 0, steps = (1 + training) * ((samples + MICRO - 1) / MICRO), bad = 0;
        for (int64_t step = 0; l && step < steps; ++step) {
            const MicroBatch *b;
            CHECK_OK(loader_next(l, &b, NULL));
            for (int64_t r = 0; r < b->rows; ++r) bad += !row_good(b, r, bags);
            bad += b->id_first[0] != 0;
            for (int64_t i = b->rows * F; i < MICRO * F; ++i)
                bad += b->id_first[i + 1] != b->id_first[i];
            seen += b->rows;
            loader_release(l);
        }
        loader_free(&l);
        CU_ASSERT_EQUAL(bad, 0);
        CU_ASSERT_EQUAL(seen, (1 + training) * samples);
    }
}

static void one_a_field(void)
{
    loads(square("one.h5", N, 0, false), N, false);
    loads(square("one-packed.h5", N, 0, true), N, false);
}

static void bags(void)
{
    DataSet set;
    loads(flat("flat.h5", N, 0, -1, 0), N, true);
    loads(flat("flat-most.h5", N, 0, -1, 12), N, true);
    CHECK_OK(data_set_open(&set, NULL, flat("flat-own.h5", N, 0, -1, 0)));
    int most = 0;
    for (int i = 0; i < N; ++i) {
        int all = bag_of(i, 0) + bag_of(i, 1) + bag_of(i, 2);
        if (all > most) most = all;
    }
    CU_ASSERT_EQUAL(set.ids_per_sample_max, most);
}

static void several_files(void)
{
    char *both = mem_format("%s\n%s", square("a.h5", 20, 0, false), square("b.h5", 9, 20, false));
    loads(both, 29, false);
    mem_free(&both);
    both = mem_format("%s\n%s", flat("fa.h5", 20, 0, -1, 0), flat("fb.h5", 9, 20, -1, 0));
    loads(both, 29, true);
    mem_free(&both);
    DataSet set;
    both = mem_format("%s\n%s", square("c.h5", 5, 0, false), flat("d.h5", 5, 5, -1, 0));
    CHECK_FAILS(data_set_open(&set, NULL, both), ERR_DATA, "they cannot be one set");
    mem_free(&both);
}

/* Writes int32 ids (N,1), of which the largest is ROWS and, if `negative` is set, one is -1. rows:
 * value of the attribute id_rows; 0: the attribute is left out. */
static const char *small(const char *name, int rows, bool negative)
{
    const char *path = in_scratch(name);
    hid_t file = table_new(path, N, 0);
    int32_t ids[N];
    for (int i = 0; i < N; ++i) ids[i] = i == 41 ? ROWS : i;
    if (negative) ids[5] = -1;
    if (rows) h5_put_int(file, "id_rows", rows);
    h5_put(file, (H5Array){"sparse", H5T_STD_I32LE, H5T_NATIVE_INT32, 2, {N, 1}, {0}, 0, ids});
    H5Fclose(file);
    return path;
}

static void out_of_range(void)
{
    DataSet set;
    Reader *reader = NULL;
    uint64_t id;
    int32_t first[2];
    CHECK_OK(data_set_open(&set, NULL, small("good.h5", ROWS + 1, false)));
    CHECK_OK(data_set_check(&set, 0));
    CHECK_OK(data_set_open(&set, NULL, small("rows.h5", ROWS, false)));
    CHECK_FAILS(data_set_check(&set, 0), ERR_DATA, "rows.h5: sample 41, field 0: its id is 1000");
    CHECK_OK(data_set_open(&set, NULL, small("any.h5", 0, true)));
    CHECK_OK(reader_new(&reader, &set));
    CHECK_OK(reader_get_ids(reader, 5, &id, first));
    CU_ASSERT(id == UINT64_MAX && first[0] == 0 && first[1] == 1);
    reader_free(&reader);
}

static void broken(void)
{
    DataSet set;
    const char *what = "sample 6, field 2: /sparse_offset does not rise";
    CHECK_FAILS(data_set_open(&set, NULL, flat("falls.h5", N, 0, 20, 0)), ERR_DATA, what);
    CHECK_OK(data_set_open(&set, NULL, flat("falls-later.h5", N, 0, 20, 12)));
    CHECK_FAILS(data_set_check(&set, 0), ERR_DATA, what);
    const char *last = "sample 56, field 2: /sparse_offset";
    CHECK_FAILS(data_set_open(&set, NULL, flat("last.h5", N, 0, N * F, 0)), ERR_DATA, last);
    CHECK_OK(data_set_open(&set, NULL, flat("last-later.h5", N, 0, N * F, 12)));
    CHECK_FAILS(data_set_check(&set, 0), ERR_DATA, last);
    CHECK_OK(data_set_open(&set, NULL, flat("most.h5", N, 0, -1, 2)));
    CHECK_FAILS(data_set_check(&set, 0), ERR_DATA, "more than id_most (2)");
    CHECK_FAILS(data_set_open(&set, NULL, flat("huge.h5", N, 0, -1, 1 << 30)), ERR_DATA,
                "up to 1073741824 ids");
    const char *path = in_scratch("rows-differ.h5");
    hid_t file = table_new(path, N, 0);
    uint64_t ids[2][F] = {{0}};
    h5_put(file, (H5Array){"sparse", H5T_STD_U64LE, H5T_NATIVE_UINT64, 2, {2, F}, {0}, 0, ids});
    H5Fclose(file);
    CHECK_FAILS(data_set_open(&set, NULL, path), ERR_DATA, "/sparse is 2x3 of uint64");
}

/* Single bags may be empty, but not all of them. */
static void no_ids(void)
{
    DataSet set;
    const char *path = in_scratch("no-ids.h5");
    hid_t file = table_new(path, N, 0);
    uint64_t offset[N * F + 1] = {0};
    h5_put(file, (H5Array){"sparse", H5T_STD_U64LE, H5T_NATIVE_UINT64, 1, {0}, {0}, 0, NULL});
    h5_put(file,
           (H5Array){
               "sparse_offset", H5T_STD_U64LE, H5T_NATIVE_UINT64, 1, {N * F + 1}, {0}, 0, offset});
    H5Fclose(file);
    CHECK_FAILS(data_set_open(&set, NULL, path), ERR_DATA, "no-ids.h5: /sparse holds no ids");
}

static void fingerprint(void)
{
    DataSet one, two;
    char a[DATA_FINGERPRINT], b[DATA_FINGERPRINT];
    CHECK_OK(data_set_open(&one, NULL, square("fp.h5", N, 0, false)));
    CHECK_OK(data_set_open(&two, NULL, square("fp-packed.h5", N, 0, true)));
    CHECK_OK(data_set_fingerprint(&one, a));
    CHECK_OK(data_set_fingerprint(&two, b));
    CU_ASSERT_STRING_EQUAL(a, b);
    CU_ASSERT_PTR_NOT_NULL(strstr(a, "ids 57x3 uint64"));
    CHECK_OK(data_set_open(&two, NULL, flat("fp-flat.h5", N, 0, -1, 0)));
    CHECK_OK(data_set_fingerprint(&two, b));
    CU_ASSERT_STRING_NOT_EQUAL(a, b);
    CU_ASSERT(data_fingerprint_known(b));
}

static void printed(void)
{
    DataSet set;
    char *text = NULL;
    size_t bytes;
    CHECK_OK(data_set_open(&set, NULL, flat("print.h5", N, 0, -1, 12)));
    FILE *out = open_memstream(&text, &bytes);
    CHECK_OK(data_set_print(&set, out, false));
    fclose(out);
    CU_ASSERT_PTR_NOT_NULL(strstr(text, "fields    3\n            at most 12 a sample, any of 64"));
    free(text);
}

TEST_MAIN("ids", {"one a field", one_a_field}, {"bags", bags}, {"several files", several_files},
          {"out of range", out_of_range}, {"broken", broken}, {"no ids", no_ids},
          {"fingerprint", fingerprint}, {"printed", printed})
