/* Tests lists of files as one set: every sample of all files, by label and value; differences are
 * named; tokens are refused; the order of chunked files. */
#include "encoded.h"

static char *list_of(int count, const char *const *path)
{
    char *all = mem_text(path[0]);
    for (int i = 1; i < count; ++i) {
        char *longer = mem_format("%s\n%s", all, path[i]);
        mem_free(&all);
        all = longer;
    }
    return all;
}

static void test_images(void)
{
    const char *path[] = {images_small("a.h5", 7, 3, false), images_small("b.h5", 4, 3, true),
                          images_small("c.h5", 12, 3, false)};
    const int first[] = {0, 7, 11}, of[] = {7, 4, 12};
    char *all = list_of(3, path);
    DataSet set;
    Reader *reader;
    CHECK_OK(data_set_open(&set, NULL, all));
    CU_ASSERT_EQUAL(set.samples, 23);
    CU_ASSERT_EQUAL(set.file_count, 3);
    CHECK_OK(data_set_check(&set, 0));
    CHECK_OK(reader_new(&reader, &set));
    for (int f = 0; f < 3; ++f)
        for (int i = 0; i < of[f]; ++i) {
            uint8_t x[4];
            int32_t label;
            CHECK_OK(reader_get(reader, first[f] + i, x, &label, NULL));
            CU_ASSERT(x[0] == i && x[3] == i + 3 && label == i % 3);
        }
    reader_free(&reader);
    /* An evaluation reads across the boundary of two files. */
    Config c = config_plain();
    Loader *l = NULL;
    const MicroBatch *b;
    LoaderPlan plan = {.batch = 23, .micro_batch = 23, .micro_count = 1, .slots = 2};
    CHECK_OK(loader_new(&l, &set, &c, plan));
    CHECK_OK(loader_next(l, &b, NULL));
    for (int i = 0; i < 23; ++i) {
        int k = i < 7 ? i : i < 11 ? i - 7 : i - 11;
        CU_ASSERT(b->labels[i] == k % 3 && b->x[4 * i] == (float)k * (1.0f / 255.0f));
    }
    loader_free(&l);
    char one[DATA_FINGERPRINT], two[DATA_FINGERPRINT];
    CHECK_OK(data_set_fingerprint(&set, one));
    mem_free(&all);
    all = list_of(3, (const char *const[]){path[1], path[0], path[2]});
    CHECK_OK(data_set_open(&set, NULL, all));
    CHECK_OK(data_set_fingerprint(&set, two));
    CU_ASSERT_STRING_NOT_EQUAL(one, two);
    mem_free(&all);
}

static void test_encoded_files(void)
{
    const char *path[] = {encoded_set("e1.h5", 5, 0, false, -1),
                          encoded_set("e2.h5", 9, 5, false, -1)};
    char *all = list_of(2, path);
    DataSet set, whole;
    Reader *two, *one;
    uint8_t *a = NULL, *b = NULL;
    size_t room_a = 0, room_b = 0, n, m;
    int turned;
    CHECK_OK(data_set_open(&set, NULL, all));
    CHECK_OK(data_set_open(&whole, NULL, encoded_set("e3.h5", 14, 0, false, -1)));
    CHECK_OK(reader_new(&two, &set));
    CHECK_OK(reader_new(&one, &whole));
    CU_ASSERT_EQUAL(set.samples, 14);
    for (int i = 0; i < 14; ++i) {
        CHECK_OK(reader_get_encoded(two, i, &a, &room_a, &n, &turned));
        CHECK_OK(reader_get_encoded(one, i, &b, &room_b, &m, &turned));
        CU_ASSERT(n == m && memcmp(a, b, n) == 0);
    }
    reader_free(&two);
    reader_free(&one);
    mem_free(&a);
    mem_free(&b);
    mem_free(&all);
}

static void test_differ(void)
{
    DataSet set;
    uint8_t x[3 * 9] = {0};
    int32_t y[3] = {0, 1, 2}, row[40] = {0};
    const char *good = images_small("good.h5", 7, 3, false), *other = in_scratch("other.h5");
    hid_t file = h5_new(other);
    h5_put(file, (H5Array){"x", H5T_STD_U8LE, H5T_NATIVE_UINT8, 4, {3, 1, 3, 3}, {0}, 0, x});
    h5_put(file, (H5Array){"y", H5T_STD_I32LE, H5T_NATIVE_INT32, 1, {3}, {0}, 0, y});
    H5Fclose(file);
    char *all = list_of(2, (const char *const[]){good, other});
    CHECK_FAILS(data_set_open(&set, NULL, all), ERR_DATA, "other.h5: its samples are 3x1x3x3");
    mem_free(&all);
    all = list_of(2, (const char *const[]){good, images_small("five.h5", 9, 5, false)});
    CHECK_FAILS(data_set_open(&set, NULL, all), ERR_DATA, "five.h5: has 5 classes");
    Config c = config_plain();
    c.model.classes = 8;
    CHECK_OK(data_set_open(&set, &c, all));
    mem_free(&all);
    all = list_of(2, (const char *const[]){good, in_scratch("missing.h5")});
    CHECK_FAILS(data_set_open(&set, NULL, all), ERR_NOINPUT, "missing.h5");
    mem_free(&all);
    const char *tokens = in_scratch("tokens.h5");
    file = h5_new(tokens);
    h5_put(file, (H5Array){"x", H5T_STD_I32LE, H5T_NATIVE_INT32, 1, {40}, {0}, 0, row});
    H5Fclose(file);
    c.model.context = 4;
    all = list_of(2, (const char *const[]){tokens, tokens});
    CHECK_FAILS(data_set_open(&set, &c, all), ERR_DATA, "tokens.h5: holds tokens");
    mem_free(&all);
}

/* Small chunked files are fully shuffled like contiguous ones, unless data.shuffle is chunks. */
static void test_shuffle(void)
{
    DataSet set;
    Config c = config_plain();
    CHECK_OK(data_set_open(&set, NULL, images_small("chunked.h5", 50, 3, true)));
    CU_ASSERT_EQUAL(set.x.chunk_rows, 3);
    CU_ASSERT_EQUAL(data_shuffle_plan(&set, &c).chunk, 0);
    c.data.shuffle = SHUFFLE_CHUNKS;
    CU_ASSERT_EQUAL(data_shuffle_plan(&set, &c).chunk, 3);
    c.data.shuffle = SHUFFLE_AUTO;
    set.x.dim[0] = (int64_t)1 << 30;
    CU_ASSERT_EQUAL(data_shuffle_plan(&set, &c).chunk, 3);
    CU_ASSERT_EQUAL(data_shuffle_plan(&set, &c).window % 3, 0);
    c.data.shuffle = SHUFFLE_FULL;
    CU_ASSERT_EQUAL(data_shuffle_plan(&set, &c).chunk, 0);
}

TEST_MAIN("files", {"every sample of all files", test_images},
          {"encoded files", test_encoded_files}, {"what differs is named", test_differ},
          {"which sets are shuffled in chunks", test_shuffle})
