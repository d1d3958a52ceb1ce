/* Tests tables of click logs and ratings: every value against its line; synthetic data have the
 * stated rate, AUC and drift, the same for any number of threads. */
#include "fixture.h"

#include <math.h>
#include <sys/stat.h>
#include <unistd.h>

static void put(const char *path, const char *text)
{
    write_bytes(path, text, strlen(text));
}

/* all rows of a set */
typedef struct Rows {
    DataSet set;
    float *x;
    uint64_t *ids;
    int32_t *first, *y;
} Rows;

static Rows rows_of(const char *path)
{
    Rows r = {0};
    Reader *reader = NULL;
    CHECK_OK(data_set_open(&r.set, NULL, path));
    CHECK_OK(data_set_check(&r.set, 0));
    CHECK_OK(reader_new(&reader, &r.set));
    size_t n = (size_t)r.set.samples;
    r.x = mem_new(n * (size_t)r.set.channels * sizeof *r.x);
    r.ids = mem_new(n * (size_t)r.set.ids_per_sample_max * sizeof *r.ids);
    r.first = mem_new(n * (size_t)(r.set.fields + 1) * sizeof *r.first);
    r.y = mem_new(n * sizeof *r.y);
    for (int64_t i = 0; reader && i < r.set.samples; ++i) {
        CHECK_OK(reader_get(reader, i, r.x + i * r.set.channels, r.y + i, NULL));
        CHECK_OK(reader_get_ids(reader, i, r.ids + i * r.set.ids_per_sample_max,
                                r.first + i * (r.set.fields + 1)));
    }
    reader_free(&reader);
    return r;
}

static void rows_free(Rows *r)
{
    mem_free(&r->x);
    mem_free(&r->ids);
    mem_free(&r->first);
    mem_free(&r->y);
}

/* Number c of row i of the file below. */
static int number(int i, int c)
{
    return i * 31 % 97 + c * c - 5;
}

static bool empty(int i, int f)
{
    return (i + f) % 4 == 0;
}

static uint32_t value(int i, int f)
{
    return (uint32_t)(i + 1) * 2654435761U + (uint32_t)f * 0x9e3779b9U;
}

static void criteo(void)
{
    enum { N = 50, NUMBERS = 13, FIELDS = 26 };
    const char *path = in_scratch("train.txt"), *out = in_scratch("criteo.h5");
    const char *hashed = in_scratch("hashed.h5"), *test = in_scratch("hashed-test.h5");
    FILE *f = fopen(path, "w");
    for (int i = 0; i < N; ++i) {
        fprintf(f, "%d", i % 3 == 0);
        for (int c = 0; c < NUMBERS; ++c)
            empty(i, c) ? fputc('\t', f) : fprintf(f, "\t%d", number(i, c));
        for (int c = 0; c < FIELDS; ++c)
            empty(i, c) ? fputc('\t', f) : fprintf(f, "\t%08x", value(i, c));
        fputc('\n', f);
    }
    fclose(f);
    CHECK_OK(verb_run("data import criteo", path, "-o", out, NULL));
    Rows r = rows_of(out);
    CU_ASSERT(r.set.samples == N && r.set.channels == NUMBERS && r.set.fields == FIELDS);
    CU_ASSERT_EQUAL(r.set.id_limit, 0);
    int bad = 0;
    for (int i = 0; i < N; ++i) {
        bad += r.y[i] != (i % 3 == 0);
        for (int c = 0; c < NUMBERS; ++c) {
            double x = empty(i, c) || number(i, c) < 0 ? 0 : number(i, c);
            bad += fabs((double)r.x[i * NUMBERS + c] - log1p(x)) > 1e-6;
        }
        for (int c = 0; c < FIELDS; ++c)
            bad += r.ids[i * FIELDS + c] !=
                   ((uint64_t)c << 33) + (empty(i, c) ? UINT64_C(1) << 32 : value(i, c));
    }
    CU_ASSERT_EQUAL(bad, 0);
    rows_free(&r);
    CHECK_OK(
        verb_run("data import criteo", path, "-o", hashed, "--rows", "5000", "--test", test, NULL));
    r = rows_of(test);
    CU_ASSERT(r.set.samples == 7 && r.set.id_limit == 5000);
    /* Empty values of a field have the same id in every row, and another one in each field. */
    CU_ASSERT(r.ids[0] != r.ids[4] && empty(44, 0) && empty(44, 4) && empty(48, 0));
    CU_ASSERT_EQUAL(r.ids[1 * FIELDS], r.ids[5 * FIELDS]);
    rows_free(&r);
    put(path, "1\t2\t3\n");
    CHECK_FAILS(
        verb_run("data import criteo", path, "-o", out, "--force", NULL), ERR_DATA,
        "line 1: its first record has 3 values, but Criteo's training files have 40 values");
    const char *const number[][2] = {{"1.5", "line 2, column 2 (I1): '1.5' is no whole number"},
                                     {"99999999999999999999", "column 2 (I1): '99999999999999999"},
                                     {"1e400", "(I1): '1e400' is out of range"}};
    for (int i = 0; i < 3; ++i) {
        f = fopen(path, "w");
        for (int row = 0; row < 2; ++row) {
            fprintf(f, "1\t%s", row ? number[i][0] : "-2");
            for (int c = 1; c < NUMBERS + FIELDS; ++c) fputc('\t', f);
            fputc('\n', f);
        }
        fclose(f);
        CHECK_FAILS(verb_run("data import criteo", path, "-o", out, "--force", NULL), ERR_DATA,
                    number[i][1]);
    }
}

static void movielens(void)
{
    char *dir = mem_text(in_scratch("ml")), *data = mem_format("%s/u.data", dir);
    char *user = mem_format("%s/u.user", dir), *item = mem_format("%s/u.item", dir);
    const char *out = in_scratch("ml.h5"), *test = in_scratch("ml-test.h5");
    CU_ASSERT_EQUAL(mkdir(dir, 0777), 0);
    /* By time: (3,1) (1,7) (2,1) (1,2), the last of which is the test set. */
    put(data, "1\t7\t4\t20\n2\t1\t5\t30\n1\t2\t3\t40\n3\t1\t1\t10\n");
    CHECK_OK(verb_run("data import movielens", data, "-o", out, NULL));
    Rows r = rows_of(out);
    CU_ASSERT(r.set.samples == 4 && r.set.fields == 2 && r.set.id_limit == 4 + 8);
    CU_ASSERT(r.ids[0] == 3 && r.ids[1] == 4 + 1 && r.y[0] == 0 && r.x[0] == 1.0f);
    CU_ASSERT(r.ids[2] == 1 && r.ids[3] == 4 + 7 && r.y[1] == 1);
    rows_free(&r);
    put(user, "1|20|M|writer|1\n2|50|F|other|2\n9|1|F|none|9\n");
    put(item, "1|A|d||u|0|1|0|0|0|0|0|0|0|0|0|0|0|0|0|0|0|0|1\n"
              "2|B|d||u|0|0|0|0|0|0|0|0|0|0|0|0|0|0|0|0|0|0|0\n");
    CHECK_OK(verb_run("data import movielens", dir, "-o", out, "--test", test, "--test-share",
                      "0.25", "--force", NULL));
    r = rows_of(out);
    /* Rows of the table: user 4, item 8, gender 3, occupation 3, genre 19. User 3 is not in u.user,
     * item 7 not in u.item. */
    CU_ASSERT(r.set.samples == 3 && r.set.fields == 5 && r.set.id_limit == 37);
    CU_ASSERT(r.ids[2] == 12 && r.ids[3] == 15 && r.ids[4] == 18 + 1 && r.ids[5] == 18 + 18);
    CU_ASSERT(r.first[5] == 6 && r.first[6 + 5] == 4);
    const uint64_t *two = r.ids + 2 * r.set.ids_per_sample_max;
    CU_ASSERT(two[0] == 2 && two[1] == 5 && two[2] == 14 && two[3] == 17 && two[5] == 36);
    /* ages 20 and 50, and the mean for the unknown user */
    CU_ASSERT(r.x[0] == 0.0f && fabsf(r.x[1] + 1) < 1e-6f && fabsf(r.x[2] - 1) < 1e-6f);
    rows_free(&r);
    r = rows_of(test);
    CU_ASSERT(r.set.samples == 1 && r.ids[0] == 1 && r.ids[1] == 6 && r.first[5] == 4);
    rows_free(&r);
    put(user, "1|20|M|writer\n");
    CHECK_FAILS(verb_run("data import movielens", dir, "-o", out, "--force", NULL), ERR_DATA,
                "u.user: line 1: expected number|age");
    put(data, "1\t7\t4\t20\n1\t7\t6\t20\n");
    CHECK_FAILS(verb_run("data import movielens", data, "-o", out, "--force", NULL), ERR_DATA,
                "u.data: line 2: the rating is not");
    mem_free(&dir);
    mem_free(&data);
    mem_free(&user);
    mem_free(&item);
}

static double best_of(const char *path)
{
    double best = 0;
    hid_t file = H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT);
    hid_t attr = H5Aopen(file, "best_auc", H5P_DEFAULT);
    H5Aread(attr, H5T_NATIVE_DOUBLE, &best);
    H5Aclose(attr);
    H5Fclose(file);
    return best;
}

/* Returns how many of a's ids of a field do not occur in b. */
static int strangers(const Rows *a, const Rows *b, int field)
{
    int count = 0;
    int64_t fields = a->set.fields;
    for (int64_t i = 0; i < a->set.samples; ++i) {
        bool found = false;
        for (int64_t k = 0; k < b->set.samples && !found; ++k)
            found = a->ids[i * fields + field] == b->ids[k * fields + field];
        count += !found;
    }
    return count;
}

static void made(void)
{
    enum { FIELDS = 26 };
    const char *verb = "data make criteo-like", *out = in_scratch("made.h5");
    const char *test = in_scratch("made-test.h5"), *again = in_scratch("again.h5");
    CHECK_OK(verb_run(verb, "-o", out, "--samples", "20000", "--threads", "3", "--test", test,
                      "--test-samples", "500", NULL));
    CHECK_OK(verb_run(verb, "-o", again, "--samples", "20000", "--threads", "1", NULL));
    char *a, *b;
    size_t a_bytes, b_bytes;
    CHECK_OK(file_text(out, 1 << 28, &a, &a_bytes));
    CHECK_OK(file_text(again, 1 << 28, &b, &b_bytes));
    CU_ASSERT(a_bytes == b_bytes && memcmp(a, b, a_bytes) == 0);
    mem_free(&a);
    mem_free(&b);
    Rows r = rows_of(out), t = rows_of(test);
    int64_t clicks = 0, empty = 0;
    int bad = 0;
    for (int64_t i = 0; i < r.set.samples; ++i) {
        clicks += r.y[i];
        empty += r.ids[i * FIELDS + 21] == UINT64_C(43) << 32;
        for (uint64_t f = 0; f < FIELDS; ++f) bad += r.ids[(uint64_t)i * FIELDS + f] >> 33 != f;
    }
    CU_ASSERT_EQUAL(bad, 0);
    CU_ASSERT(llabs(clicks - 5120) < 260);
    CU_ASSERT(llabs(empty - 15240) < 260);
    CU_ASSERT(best_of(out) > 0.8 && best_of(out) < 0.9 && best_of(test) > 0.75);
    int stays = strangers(&t, &r, 0);
    rows_free(&r);
    rows_free(&t);
    CHECK_OK(verb_run(verb, "-o", out, "--samples", "20000", "--drift", "1", "--force", "--test",
                      test, "--test-samples", "500", NULL));
    r = rows_of(out), t = rows_of(test);
    /* With drift, rows at the end have values that did not exist at the beginning. */
    r.set.samples = 1000;
    CU_ASSERT(strangers(&t, &r, 4) > 400 && stays < 50);
    rows_free(&r);
    rows_free(&t);
    CHECK_OK(verb_run(verb, "-o", out, "--samples", "500", "--rows", "77", "--force", NULL));
    r = rows_of(out);
    CU_ASSERT_EQUAL(r.set.id_limit, 77);
    rows_free(&r);
    CHECK_FAILS(verb_run(verb, "-o", out, NULL), ERR_USAGE, "already there");
    CHECK_FAILS(verb_run(verb, "x", "-o", out, NULL), ERR_USAGE, "takes flags only");
}

TEST_MAIN("tables", {"criteo", criteo}, {"movielens", movielens}, {"made", made})
