/* Tests fingerprints: the same text for the same values, however they are stored and named; another
 * text for other values; and the hash equals that of the rule, computed here from the plain
 * bytes. */
#include "fixture.h"

#include <xxhash.h>

typedef struct Print {
    char text[DATA_FINGERPRINT];
} Print;

static Print print_of(const char *path, const Config *c)
{
    DataSet set;
    Print p = {""};
    CHECK_OK(data_set_open(&set, c, path));
    CHECK_OK(data_set_fingerprint(&set, p.text));
    CU_ASSERT(data_fingerprint_known(p.text));
    return p;
}

static void same(Print a, Print b)
{
    CU_ASSERT_STRING_EQUAL(a.text, b.text);
}

static void other(Print a, Print b)
{
    CU_ASSERT_STRING_NOT_EQUAL(a.text, b.text);
}

/* A set to write: n samples of `wide` bytes with labels, contiguous or compressed in chunks. One is
 * added to x[at] and y[label]. */
typedef struct Made {
    int n, wide;
    bool packed;
    int64_t at;
    /* -1: none, as for at */
    int label;
} Made;

static uint8_t made_x(int64_t i)
{
    return (uint8_t)(i * 31 / 7 + i / 1000);
}

static const char *make(const char *name, Made m)
{
    const char *path = in_scratch(name);
    size_t bytes = (size_t)m.n * (size_t)m.wide;
    uint8_t *x = mem_new(bytes);
    int32_t *y = mem_new((size_t)m.n * sizeof *y);
    for (size_t i = 0; i < bytes; ++i) x[i] = made_x((int64_t)i);
    for (int i = 0; i < m.n; ++i) y[i] = i % 5;
    if (m.at >= 0) ++x[m.at];
    if (m.label >= 0) ++y[m.label];
    hsize_t n = (hsize_t)m.n, wide = (hsize_t)m.wide, rows = m.packed ? 1 + n / 30 : 0;
    hid_t file = h5_new(path);
    h5_put(file,
           (H5Array){"x", H5T_STD_U8LE, H5T_NATIVE_UINT8, 2, {n, wide}, {rows, wide}, m.packed, x});
    h5_put(file, (H5Array){"y", H5T_STD_I32LE, H5T_NATIVE_INT32, 1, {n}, {rows}, m.packed, y});
    H5Fclose(file);
    mem_free(&x);
    mem_free(&y);
    return path;
}

/* Compares with the rule: labels, then the first bytes of samples spread evenly. */
static void as_the_rule_says(int n, int wide)
{
    char want[DATA_FINGERPRINT];
    int places = n < 4096 ? n : 4096, head = wide < 16384 ? wide : 16384;
    size_t bytes = (size_t)n * 4 + (size_t)places * (size_t)head;
    uint8_t *all = mem_new(bytes), *to = all;
    for (int32_t i = 0; i < n; ++i, to += 4) memcpy(to, &(int32_t){i % 5}, 4);
    for (int64_t i = 0; i < places; ++i) {
        int64_t at = n <= 4096 ? i : i * (n - 1) / 4095;
        for (int64_t k = 0; k < head; ++k) *to++ = made_x(at * wide + k);
    }
    snprintf(want, sizeof want, "%dx%d uint8, labels %d int32, xxh3-1 %016llx", n, wide, n,
             (unsigned long long)XXH3_64bits(all, bytes));
    CU_ASSERT_STRING_EQUAL(print_of(make("rule.h5", (Made){n, wide, false, -1, -1}), NULL).text,
                           want);
    CU_ASSERT_STRING_EQUAL(print_of(make("rule.h5", (Made){n, wide, true, -1, -1}), NULL).text,
                           want);
    mem_free(&all);
}

static void the_rule(void)
{
    as_the_rule_says(1, 3);
    as_the_rule_says(200, 784);
    as_the_rule_says(4096, 5);
    as_the_rule_says(4097, 5);
    as_the_rule_says(9999, 4);
    /* labels in several pieces */
    as_the_rule_says(300000, 1);
    as_the_rule_says(11, 20000);
    /* a sample larger than a piece, which is not mapped */
    as_the_rule_says(3, 1200000);
}

/* Changes that the fingerprint must show, and those it does not: bytes of a sample past its head,
 * and samples between the 4,096. */
static void changes(void)
{
    Print small = print_of(make("a.h5", (Made){50, 12, false, -1, -1}), NULL);
    same(small, print_of(make("b.h5", (Made){50, 12, false, -1, -1}), NULL));
    for (int64_t at = 0; at < 50 * 12; at += 13)
        other(small, print_of(make("b.h5", (Made){50, 12, false, at, -1}), NULL));
    for (int label = 0; label < 50; label += 7)
        other(small, print_of(make("b.h5", (Made){50, 12, label % 2 == 1, -1, label}), NULL));
    Print many = print_of(make("a.h5", (Made){8191, 2, false, -1, -1}), NULL);
    same(many, print_of(make("b.h5", (Made){8191, 2, false, 2, -1}), NULL));
    other(many, print_of(make("b.h5", (Made){8191, 2, false, 4, -1}), NULL));
    other(many, print_of(make("b.h5", (Made){8191, 2, false, 2 * 8190 + 1, -1}), NULL));
    other(many, print_of(make("b.h5", (Made){8191, 2, true, -1, 5001}), NULL));
    Print large = print_of(make("a.h5", (Made){3, 20000, false, -1, -1}), NULL);
    other(large, print_of(make("b.h5", (Made){3, 20000, false, 20000 + 16383, -1}), NULL));
    same(large, print_of(make("b.h5", (Made){3, 20000, false, 20000 + 16384, -1}), NULL));
}

/* Byte order, names and location do not matter; type, shape and normalisation do. */
static void forms(void)
{
    uint16_t x[24];
    int64_t y[6] = {0, 1, 2, 2, 1, 0};
    float mean = 3, std = 2;
    for (int i = 0; i < 24; ++i) x[i] = (uint16_t)(1000 * i);
    const char *path = in_scratch("forms.h5");
    hid_t file = h5_new(path);
    H5Gclose(H5Gcreate2(file, "g", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
    h5_put(file, (H5Array){"x", H5T_STD_U16LE, H5T_NATIVE_UINT16, 2, {6, 4}, {0}, 0, x});
    h5_put(file, (H5Array){"g/big", H5T_STD_U16BE, H5T_NATIVE_UINT16, 2, {6, 4}, {0}, 0, x});
    h5_put(file, (H5Array){"flat", H5T_STD_U16LE, H5T_NATIVE_UINT16, 3, {6, 2, 2}, {0}, 0, x});
    h5_put(file, (H5Array){"wide", H5T_STD_I32LE, H5T_NATIVE_UINT16, 2, {6, 4}, {0}, 0, x});
    h5_put(file, (H5Array){"y", H5T_STD_I64LE, H5T_NATIVE_INT64, 1, {6}, {0}, 0, y});
    h5_put(file, (H5Array){"g/y", H5T_STD_I64BE, H5T_NATIVE_INT64, 1, {6}, {0}, 0, y});
    h5_put(file, (H5Array){"t", H5T_IEEE_F32LE, H5T_NATIVE_INT64, 1, {6}, {0}, 0, y});
    h5_put_floats(file, "mean", &mean, 1);
    h5_put_floats(file, "std", &std, 1);
    H5Fclose(file);
    Config c = config_plain();
    Print plain = print_of(path, &c);
    CU_ASSERT_PTR_NOT_NULL(strstr(plain.text, "6x4 uint16, labels 6 int64, xxh3-1 "));
    c.data.x = (char *)"/g/big";
    c.data.y = (char *)"/g/y";
    same(plain, print_of(path, &c));
    static const char *const others[] = {"/flat", "/wide"};
    for (int i = 0; i < 2; ++i) {
        c.data.x = (char *)(uintptr_t)others[i];
        other(plain, print_of(path, &c));
    }
    c = config_plain();
    c.data.normalize = false;
    other(plain, print_of(path, &c));
    c = config_plain();
    c.data.y = (char *)"/t";
    CU_ASSERT_PTR_NOT_NULL(strstr(print_of(path, &c).text, ", targets 6 float32, "));
}

/* Writes n tokens; at >= 0: one is added to that token. */
static const char *make_tokens(const char *name, hsize_t n, bool packed, int64_t at)
{
    const char *path = in_scratch(name);
    uint8_t *x = mem_new(n);
    for (hsize_t i = 0; i < n; ++i) x[i] = made_x((int64_t)i);
    if (at >= 0) ++x[at];
    hid_t file = h5_new(path);
    h5_put(
        file,
        (H5Array){"x", H5T_STD_U8LE, H5T_NATIVE_UINT8, 1, {n}, {packed ? n / 30 : 0}, packed, x});
    H5Fclose(file);
    mem_free(&x);
    return path;
}

static void tokens(void)
{
    enum { FEW = 3001, MANY = 3 * 4096 * 1024 };
    Config c = config_plain(), longer = config_plain();
    c.model.context = 32;
    longer.model.context = 100;
    Print few = print_of(make_tokens("few.h5", FEW, false, -1), &c);
    CU_ASSERT_PTR_NOT_NULL(strstr(few.text, "3001 tokens uint8, xxh3-1 "));
    same(few, print_of(make_tokens("few2.h5", FEW, true, -1), &longer));
    for (int64_t at = 0; at < FEW; at += 500)
        other(few, print_of(make_tokens("few2.h5", FEW, false, at), &c));
    Print many = print_of(make_tokens("many.h5", MANY, false, -1), &c);
    same(many, print_of(make_tokens("many2.h5", MANY, true, -1), &longer));
    static const int64_t seen[] = {0, (1 << 20) - 1, MANY - 1, MANY - (1 << 20),
                                   (int64_t)(MANY - 1024) * 2000 / 4095 + 1023};
    for (size_t i = 0; i < sizeof seen / sizeof *seen; ++i)
        other(many, print_of(make_tokens("many2.h5", MANY, false, seen[i]), &c));
    same(many,
         print_of(make_tokens("many2.h5", MANY, false, (int64_t)(MANY - 1024) * 2000 / 4095 + 1024),
                  &c));
}

TEST_MAIN("fingerprint", {"the rule", the_rule}, {"changes", changes}, {"forms", forms},
          {"tokens", tokens})
