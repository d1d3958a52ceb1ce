/* Tests opening and reading: every type, byte order and layout; chunked and compressed files equal
 * contiguous ones; every bad input gives its Status and a message that says what to do. */
#include "fixture.h"

#include <fcntl.h>
#include <math.h>
#include <sys/stat.h>

typedef struct TypeCase {
    const char *name;
    hid_t stored;
    ElementType type;
    bool big, is_float, is_signed;
} TypeCase;

/* Reads (3,2,4,5) with values 0, 1, 2, ... (for signed types -1 - v at odd positions) and labels 0
 * 2 1. */
static void one_type(TypeCase t)
{
    const char *path = in_scratch("type.h5");
    double x[120];
    int32_t y[3] = {0, 2, 1};
    float out[40];
    for (int i = 0; i < 120; ++i) x[i] = t.is_signed && i % 2 ? -1 - i : i;
    hid_t file = h5_new(path);
    h5_put(file, (H5Array){"x", t.stored, H5T_NATIVE_DOUBLE, 4, {3, 2, 4, 5}, {0}, 0, x});
    h5_put(file, (H5Array){"y", H5T_STD_I32LE, H5T_NATIVE_INT32, 1, {3}, {0}, 0, y});
    H5Fclose(file);
    Config c = config_plain();
    c.data.scale = 1.0;
    DataSet set;
    Reader *reader;
    CHECK_OK(data_set_open(&set, &c, path));
    CU_ASSERT_EQUAL(set.x.type, t.type);
    CU_ASSERT_EQUAL(set.x.big_endian, t.big);
    CU_ASSERT_EQUAL(set.x.offset < 0, t.big);
    CU_ASSERT_EQUAL(set.classes, 3);
    CHECK_OK(reader_new(&reader, &set));
    uint64_t raw[40];
    for (int64_t s = 2; s >= 0; --s) {
        int32_t label = -1;
        CHECK_OK(reader_get(reader, s, raw, &label, NULL));
        CU_ASSERT_EQUAL(label, y[s]);
        augment_sample(&set, &c, false, 0, s, raw, out);
        for (int i = 0; i < 40; ++i)
            if ((double)out[i] != x[s * 40 + i]) CU_FAIL("value");
    }
    CU_ASSERT_EQUAL(reader_get(reader, 3, raw, NULL, NULL), ERR_BUG);
    reader_free(&reader);
}

static void types(void)
{
    TypeCase t[] = {
        {"u8", H5T_STD_U8LE, ELEM_U8, false, false, false},
        {"i8", H5T_STD_I8LE, ELEM_I8, false, false, true},
        {"u16", H5T_STD_U16LE, ELEM_U16, false, false, false},
        {"u16be", H5T_STD_U16BE, ELEM_U16, true, false, false},
        {"i16", H5T_STD_I16LE, ELEM_I16, false, false, true},
        {"i16be", H5T_STD_I16BE, ELEM_I16, true, false, true},
        {"u32", H5T_STD_U32LE, ELEM_U32, false, false, false},
        {"u32be", H5T_STD_U32BE, ELEM_U32, true, false, false},
        {"i32", H5T_STD_I32LE, ELEM_I32, false, false, true},
        {"i32be", H5T_STD_I32BE, ELEM_I32, true, false, true},
        {"u64", H5T_STD_U64LE, ELEM_U64, false, false, false},
        {"u64be", H5T_STD_U64BE, ELEM_U64, true, false, false},
        {"i64", H5T_STD_I64LE, ELEM_I64, false, false, true},
        {"i64be", H5T_STD_I64BE, ELEM_I64, true, false, true},
        {"f32", H5T_IEEE_F32LE, ELEM_F32, false, true, true},
        {"f32be", H5T_IEEE_F32BE, ELEM_F32, true, true, true},
        {"f64", H5T_IEEE_F64LE, ELEM_F64, false, true, true},
        {"f64be", H5T_IEEE_F64BE, ELEM_F64, true, true, true},
    };
    for (size_t i = 0; i < sizeof t / sizeof t[0]; ++i) one_type(t[i]);
}

/* The same picture stored as NCHW and as NHWC, under other names in a group, gives the same
 * floats. */
static void layouts(void)
{
    const char *path = in_scratch("layout.h5");
    uint8_t nchw[2 * 3 * 4 * 5], nhwc[2 * 4 * 5 * 3];
    int64_t y[2] = {1, 0};
    for (int n = 0; n < 2; ++n)
        for (int c = 0; c < 3; ++c)
            for (int p = 0; p < 20; ++p)
                nchw[n * 60 + c * 20 + p] = nhwc[n * 60 + p * 3 + c] =
                    (uint8_t)(n * 100 + c * 20 + p);
    hid_t file = h5_new(path);
    H5Gclose(H5Gcreate2(file, "pics", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
    h5_put(file,
           (H5Array){"pics/a", H5T_STD_U8LE, H5T_NATIVE_UINT8, 4, {2, 3, 4, 5}, {0}, 0, nchw});
    h5_put(file,
           (H5Array){"pics/b", H5T_STD_U8LE, H5T_NATIVE_UINT8, 4, {2, 4, 5, 3}, {0}, 0, nhwc});
    h5_put(file, (H5Array){"kind", H5T_STD_I64BE, H5T_NATIVE_INT64, 1, {2}, {0}, 0, y});
    H5Fclose(file);
    Config c = config_plain();
    double mean[3] = {0.1, 0.2, 0.3}, std[3] = {0.5, 0.25, 2};
    c.data.mean = (ConfigList){3, mean};
    c.data.std = (ConfigList){3, std};
    c.data.y = (char *)"kind";
    c.data.augment = AUGMENT_FLIP | AUGMENT_CROP | AUGMENT_CUTOUT;
    c.data.crop_pad = 2;
    c.data.cutout_size = 2;
    float out[2][60];
    for (int i = 0; i < 2; ++i) {
        DataSet set;
        Reader *reader;
        uint8_t raw[60];
        int32_t label;
        c.data.x = (char *)(i ? "/pics/b" : "/pics/a");
        c.data.layout = i ? LAYOUT_NHWC : LAYOUT_NCHW;
        CHECK_OK(data_set_open(&set, &c, path));
        CU_ASSERT_EQUAL(set.channels, 3);
        CU_ASSERT_EQUAL(set.height, 4);
        CU_ASSERT_EQUAL(set.width, 5);
        CU_ASSERT_EQUAL(data_set_shape(&set, 8).dim[1], 3);
        CHECK_OK(reader_new(&reader, &set));
        CHECK_OK(reader_get(reader, 1, raw, &label, NULL));
        CU_ASSERT_EQUAL(label, 0);
        augment_sample(&set, &c, true, 4, 1, raw, out[i]);
        reader_free(&reader);
    }
    CU_ASSERT_EQUAL(memcmp(out[0], out[1], sizeof out[0]), 0);
}

static void packed_equals_contiguous(void)
{
    DataSet set[2];
    Reader *reader[2];
    Config c = config_plain();
    CHECK_OK(data_set_open(&set[0], &c, images_small("plain.h5", 100, 7, false)));
    CHECK_OK(data_set_open(&set[1], &c, images_small("packed.h5", 100, 7, true)));
    CU_ASSERT_TRUE(set[0].x.offset > 0);
    CU_ASSERT_EQUAL(set[1].x.offset, -1);
    CU_ASSERT_EQUAL(set[1].classes, 7);
    for (int i = 0; i < 2; ++i) CHECK_OK(reader_new(&reader[i], &set[i]));
    for (int64_t s = 0; s < 100; ++s) {
        uint8_t x[2][4] = {{0}};
        int32_t y[2] = {-1, -2};
        int64_t at = s * 37 % 100;
        for (int i = 0; i < 2; ++i) CHECK_OK(reader_get(reader[i], at, x[i], &y[i], NULL));
        CU_ASSERT_EQUAL(memcmp(x[0], x[1], 4), 0);
        CU_ASSERT_EQUAL(y[0], y[1]);
        CU_ASSERT_EQUAL(y[0], at % 7);
        CU_ASSERT_EQUAL(x[0][1], at + 1);
    }
    for (int i = 0; i < 2; ++i) {
        CHECK_OK(data_set_check(&set[i], 0));
        reader_free(&reader[i]);
    }
}

/* (N,D) with float targets (N,K) and (N), a three-dimensional x, labels (N,1). */
static void vectors(void)
{
    const char *path = in_scratch("vectors.h5");
    float x[12], t[8];
    uint8_t y[4] = {3, 0, 1, 2};
    for (int i = 0; i < 12; ++i) x[i] = (float)i * 0.5f;
    for (int i = 0; i < 8; ++i) t[i] = (float)-i;
    hid_t file = h5_new(path);
    h5_put(file, (H5Array){"x", H5T_IEEE_F32LE, H5T_NATIVE_FLOAT, 2, {4, 3}, {0}, 0, x});
    h5_put(file, (H5Array){"x3", H5T_IEEE_F32LE, H5T_NATIVE_FLOAT, 3, {4, 1, 3}, {0}, 0, x});
    h5_put(file, (H5Array){"t", H5T_IEEE_F64BE, H5T_NATIVE_FLOAT, 2, {4, 2}, {0}, 0, t});
    h5_put(file, (H5Array){"t1", H5T_IEEE_F32LE, H5T_NATIVE_FLOAT, 1, {4}, {0}, 0, t});
    h5_put(file, (H5Array){"y", H5T_STD_U8LE, H5T_NATIVE_UINT8, 2, {4, 1}, {0}, 0, y});
    H5Fclose(file);
    Config c = config_plain();
    DataSet set;
    Reader *reader;
    float raw[3], target[2] = {0};
    c.data.y = (char *)"t";
    CHECK_OK(data_set_open(&set, &c, path));
    CU_ASSERT_EQUAL(set.kind, DATA_TABLE);
    CU_ASSERT_EQUAL(set.target_width, 2);
    CU_ASSERT_EQUAL(set.classes, 0);
    CU_ASSERT_EQUAL(data_set_shape(&set, 8).ndim, 2);
    CU_ASSERT_EQUAL(data_set_shape(&set, 8).dim[1], 3);
    CHECK_OK(reader_new(&reader, &set));
    CHECK_OK(reader_get(reader, 2, raw, NULL, target));
    CU_ASSERT_EQUAL(raw[1], 3.5f);
    CU_ASSERT_EQUAL(target[0], -4.0f);
    CU_ASSERT_EQUAL(target[1], -5.0f);
    reader_free(&reader);
    c.data.y = (char *)"t1";
    CHECK_OK(data_set_open(&set, &c, path));
    CU_ASSERT_EQUAL(set.target_width, 1);
    c.data.y = (char *)"y";
    c.data.x = (char *)"x3";
    CHECK_OK(data_set_open(&set, &c, path));
    CU_ASSERT_EQUAL(set.kind, DATA_IMAGE);
    CU_ASSERT_EQUAL(set.channels, 1);
    CU_ASSERT_EQUAL(set.width, 3);
    CU_ASSERT_EQUAL(set.classes, 4);
    /* integer targets */
    c.train.loss = loss_number("mse");
    CHECK_OK(data_set_open(&set, &c, path));
    CU_ASSERT_EQUAL(set.target_width, 1);
    CHECK_OK(reader_new(&reader, &set));
    CHECK_OK(reader_get(reader, 0, NULL, NULL, target));
    CU_ASSERT_EQUAL(target[0], 3.0f);
    reader_free(&reader);
}

/* Fields are read from files of other programs: no weft data set is of this kind. */
static void kind_of_fields(void)
{
    const char *path = images_small("kind.h5", 6, 3, false);
    hid_t file = H5Fopen(path, H5F_ACC_RDWR, H5P_DEFAULT);
    h5_put_word(file, "format", "weft-data");
    h5_put_word(file, "kind", "fields");
    h5_put_int(file, "version", 1);
    H5Fclose(file);
    DataSet set;
    CHECK_FAILS(data_set_open(&set, NULL, path), ERR_DATA, "kind must be");
}

static void attributes(void)
{
    const char *path = images_small("attr.h5", 6, 3, false);
    float mean = 0.25f, std = 0.5f, wrong[2] = {1, 1};
    hid_t file = H5Fopen(path, H5F_ACC_RDWR, H5P_DEFAULT);
    h5_put_word(file, "format", "weft-data");
    h5_put_word(file, "kind", "image");
    h5_put_int(file, "version", 1);
    h5_put_int(file, "classes", 5);
    h5_put_floats(file, "mean", &mean, 1);
    h5_put_floats(file, "std", &std, 1);
    H5Fclose(file);
    Config c = config_plain();
    DataSet set;
    CHECK_OK(data_set_open(&set, NULL, path));
    CHECK_OK(data_set_open(&set, &c, path));
    CU_ASSERT_TRUE(set.has_stats);
    CU_ASSERT_EQUAL(set.mean[0], 0.25f);
    CU_ASSERT_EQUAL(set.classes, 5);
    uint8_t raw[4] = {0, 255, 51, 102};
    float out[4];
    augment_sample(&set, &c, false, 0, 0, raw, out);
    CU_ASSERT_DOUBLE_EQUAL(out[0], -0.5, 1e-6);
    CU_ASSERT_DOUBLE_EQUAL(out[1], 1.5, 1e-6);
    c.model.classes = 4;
    CHECK_FAILS(data_set_open(&set, &c, path), ERR_CONFIG, "model.classes");
    c.model.classes = 0;
    c.data.normalize = false;
    CHECK_OK(data_set_open(&set, &c, path));
    CU_ASSERT_FALSE(set.has_stats);
    c.data.normalize = true;
    c.data.layout = LAYOUT_NHWC;
    CHECK_FAILS(data_set_open(&set, &c, path), ERR_CONFIG, "nchw");
    c.data.layout = LAYOUT_NCHW;
    double two[2] = {1, 1};
    c.data.mean = c.data.std = (ConfigList){2, two};
    CHECK_FAILS(data_set_open(&set, &c, path), ERR_CONFIG, "data.mean");
    path = images_small("attr2.h5", 6, 3, false);
    file = H5Fopen(path, H5F_ACC_RDWR, H5P_DEFAULT);
    h5_put_floats(file, "mean", wrong, 2);
    h5_put_floats(file, "std", wrong, 2);
    H5Fclose(file);
    c = config_plain();
    CHECK_FAILS(data_set_open(&set, &c, path), ERR_DATA, "data.mean");
}

static void bad_files(void)
{
    DataSet set;
    Config c = config_plain();
    const char *path = in_scratch("no-such.h5");
    CHECK_FAILS(data_set_open(&set, &c, path), ERR_NOINPUT, "no-such.h5: no such file");
    CHECK_FAILS(data_set_open(&set, &c, scratch), ERR_NOINPUT, "is a folder");
    CHECK_FAILS(data_set_open(&set, &c, "/dev/null"), ERR_NOINPUT, "not a plain file");
    CHECK_FAILS(data_set_open(&set, &c, ""), ERR_CONFIG, "data.train");
    write_bytes(path = in_scratch("empty.h5"), "", 0);
    CHECK_FAILS(data_set_open(&set, &c, path), ERR_DATA, "is empty");
    write_bytes(path = in_scratch("text.h5"), "label,pixel0\n3,0\n", 17);
    CHECK_FAILS(data_set_open(&set, &c, path), ERR_DATA, "is not an HDF5 file");
    if (getuid() != 0) {
        path = images_small("locked.h5", 4, 2, false);
        chmod(path, 0);
        CHECK_FAILS(data_set_open(&set, &c, path), ERR_NOINPUT, "permission");
    }
}

static int64_t size_of(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 ? (int64_t)st.st_size : -1;
}

static void truncated(void)
{
    DataSet set;
    Config c = config_plain();
    Reader *reader;
    const char *path = images_small("cut.h5", 5000, 3, false);
    CHECK_OK(data_set_open(&set, &c, path));
    CU_ASSERT_EQUAL(truncate(path, size_of(path) - 10000), 0);
    DataSet after;
    CHECK_FAILS(data_set_open(&after, &c, path), ERR_DATA, "is truncated");
    CHECK_FAILS(reader_new(&reader, &set), ERR_DATA, "is truncated");
    CU_ASSERT_PTR_NULL(reader);
    CU_ASSERT_EQUAL(truncate(path, 40), 0);
    CHECK_FAILS(data_set_open(&after, &c, path), ERR_DATA, "cut.h5");
}

/* The file is truncated while a reader has it mapped: an error, not a crash; the next reader
 * works. */
static void shrinks(void)
{
    DataSet set;
    Config c = config_plain();
    Reader *reader;
    uint8_t x[4];
    int32_t y;
    const char *path = images_small("shrinks.h5", 50000, 3, false);
    CHECK_OK(data_set_open(&set, &c, path));
    CHECK_OK(reader_new(&reader, &set));
    CHECK_OK(reader_get(reader, 49999, x, &y, NULL));
    CU_ASSERT_EQUAL(truncate(path, 8192), 0);
    for (int i = 0; i < 3; ++i)
        CHECK_FAILS(reader_get(reader, 49999 - i, x, &y, NULL), ERR_DATA, "sample 4999");
    reader_free(&reader);
    path = images_small("after.h5", 10, 3, false);
    CHECK_OK(data_set_open(&set, &c, path));
    CHECK_OK(reader_new(&reader, &set));
    CHECK_OK(reader_get(reader, 9, x, &y, NULL));
    CU_ASSERT_EQUAL(x[0], 9);
    reader_free(&reader);
}

/* Samples too large to be mapped are read by pread; the file shrinks there, too. */
static void big_samples(void)
{
    enum { SIDE = 300, N = 5 };
    const char *path = in_scratch("big.h5");
    uint8_t *x = mem_new((size_t)SIDE * SIDE * N), *raw = mem_new((size_t)SIDE * SIDE);
    int32_t y[N] = {0, 1, 2, 3, 4}, label;
    for (int64_t i = 0; i < (int64_t)SIDE * SIDE * N; ++i) x[i] = (uint8_t)(i * 7 / 5);
    hid_t file = h5_new(path);
    h5_put(file, (H5Array){"y", H5T_STD_I32LE, H5T_NATIVE_INT32, 1, {N}, {0}, 0, y});
    h5_put(file, (H5Array){"x", H5T_STD_U8LE, H5T_NATIVE_UINT8, 3, {N, SIDE, SIDE}, {0}, 0, x});
    H5Fclose(file);
    DataSet set;
    Reader *reader;
    CHECK_OK(data_set_open(&set, NULL, path));
    CHECK_OK(reader_new(&reader, &set));
    for (int64_t s = N - 1; s >= 0; --s) {
        CHECK_OK(reader_get(reader, s, raw, &label, NULL));
        CU_ASSERT_EQUAL(memcmp(raw, x + s * SIDE * SIDE, SIDE * SIDE), 0);
        CU_ASSERT_EQUAL(label, s);
    }
    CU_ASSERT_EQUAL(truncate(path, set.x.offset + 100), 0);
    CHECK_FAILS(reader_get(reader, N - 1, raw, NULL, NULL), ERR_DATA, "became shorter");
    reader_free(&reader);
    mem_free(&x);
    mem_free(&raw);
}

static void wrong_contents(void)
{
    const char *path = in_scratch("wrong.h5");
    float f[24] = {0};
    int32_t y[4] = {0, 1, -3, 2};
    hid_t file = h5_new(path);
    hid_t text = H5Tcopy(H5T_C_S1);
    H5Tset_size(text, 4);
    h5_put(file, (H5Array){"x", H5T_IEEE_F32LE, H5T_NATIVE_FLOAT, 2, {4, 6}, {0}, 0, f});
    h5_put(file, (H5Array){"row", H5T_IEEE_F32LE, H5T_NATIVE_FLOAT, 1, {4}, {0}, 0, f});
    h5_put(file,
           (H5Array){"deep", H5T_IEEE_F32LE, H5T_NATIVE_FLOAT, 5, {4, 1, 1, 1, 1}, {0}, 0, f});
    h5_put(file, (H5Array){"none", H5T_IEEE_F32LE, H5T_NATIVE_FLOAT, 2, {0, 6}, {0}, 0, f});
    h5_put(file, (H5Array){"unwritten", H5T_IEEE_F32LE, H5T_NATIVE_FLOAT, 2, {4, 6}, {0}, 0, NULL});
    h5_put(file, (H5Array){"words", text, text, 2, {4, 6}, {0}, 0, f});
    h5_put(file, (H5Array){"y", H5T_STD_I32LE, H5T_NATIVE_INT32, 1, {4}, {0}, 0, y});
    h5_put(file, (H5Array){"short", H5T_STD_I32LE, H5T_NATIVE_INT32, 1, {3}, {0}, 0, y});
    h5_put(file, (H5Array){"wide", H5T_STD_I32LE, H5T_NATIVE_INT32, 2, {4, 6}, {0}, 0, f});
    H5Tclose(text);
    H5Fclose(file);
    Config c = config_plain();
    DataSet set;
    static const struct {
        const char *x, *y, *text;
    } wrong[] = {{"pixels", "y", "there is /deep, /none, /row"},
                 {"pixels", "y", "name the right one: data.x=/NAME"},
                 {"wide", "labels", "if the integers are tokens, store all rows as one"},
                 {"x", "labels", "data.y"},
                 {"row", "y", "shape 4;"},
                 {"deep", "y", "5 dimensions"},
                 {"none", "y", "no samples"},
                 {"unwritten", "y", "never written"},
                 {"words", "y", "has a type"},
                 {"x", "short", "/x has 4"},
                 {"x", "wide", "4x6"},
                 {"x", "y", "sample 2: its label in y is -3"}};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; ++i) {
        c.data.x = (char *)(strcmp(wrong[i].x, "x") ? wrong[i].x : "/x");
        c.data.y = (char *)wrong[i].y;
        CHECK_FAILS(data_set_open(&set, &c, path), ERR_DATA, wrong[i].text);
    }
}

/* A filter that this HDF5 lacks is reported at opening, with its number and a cure. */
static void missing_filter(void)
{
    enum { NOBODYS = 511 };
    const char *path = in_scratch("filter.h5");
    hsize_t dim[2] = {4, 4};
    uint8_t x[16] = {0};
    hid_t file = h5_new(path), create = H5Pcreate(H5P_DATASET_CREATE);
    hid_t space = H5Screate_simple(2, dim, NULL);
    H5Pset_chunk(create, 2, dim);
    H5Pset_filter(create, NOBODYS, H5Z_FLAG_OPTIONAL, 0, NULL);
    hid_t d = H5Dcreate2(file, "x", H5T_STD_U8LE, space, H5P_DEFAULT, create, H5P_DEFAULT);
    H5Dwrite(d, H5T_NATIVE_UINT8, H5S_ALL, H5S_ALL, H5P_DEFAULT, x);
    H5Dclose(d);
    H5Sclose(space);
    H5Pclose(create);
    H5Fclose(file);
    DataSet set;
    CHECK_FAILS(data_set_open(&set, NULL, path), ERR_DATA, "filter 511");
    /* h5repack does not help if it lacks the filter, too: it leaves the data set out. */
    CU_ASSERT_PTR_NOT_NULL(
        strstr(fail_message(), "write it without filters where the filter is installed"));
    CU_ASSERT_PTR_NOT_NULL(strstr(fail_message(), "omits /x"));
    CU_ASSERT_PTR_NULL(strstr(fail_message(), "OLD NEW"));
}

static void label_range(void)
{
    DataSet set;
    Config c = config_plain();
    Reader *reader;
    int32_t label;
    const char *path = images_small("range.h5", 20, 10, false);
    c.model.classes = 8;
    CHECK_OK(data_set_open(&set, &c, path));
    CHECK_OK(reader_new(&reader, &set));
    CHECK_OK(reader_get(reader, 7, NULL, &label, NULL));
    CHECK_FAILS(reader_get(reader, 18, NULL, &label, NULL), ERR_DATA, "sample 18");
    CU_ASSERT_PTR_NOT_NULL(strstr(fail_message(), "range.h5"));
    CU_ASSERT_PTR_NOT_NULL(strstr(fail_message(), "is 8, but there are 8 classes"));
    reader_free(&reader);
    CHECK_FAILS(data_set_check(&set, 0), ERR_DATA, "sample 8");
    CHECK_FAILS(data_set_check_labels(&set), ERR_DATA, "sample 8");
    CHECK_OK(data_set_check(&set, 10));
    set.classes = 10;
    CHECK_OK(data_set_check_labels(&set));
    float f[6] = {1, 2, NAN, 4, 5, 6};
    int32_t y[3] = {0};
    path = in_scratch("nan.h5");
    hid_t file = h5_new(path);
    h5_put(file, (H5Array){"x", H5T_IEEE_F32LE, H5T_NATIVE_FLOAT, 2, {3, 2}, {0}, 0, f});
    h5_put(file, (H5Array){"y", H5T_STD_I32LE, H5T_NATIVE_INT32, 1, {3}, {0}, 0, y});
    H5Fclose(file);
    CHECK_OK(data_set_open(&set, NULL, path));
    CHECK_FAILS(data_set_check(&set, 0), ERR_DATA, "sample 1: value 0");
    double d[6] = {1, 2, 3, 4, -1e39, 6};
    path = in_scratch("large.h5");
    file = h5_new(path);
    h5_put(file, (H5Array){"x", H5T_IEEE_F64LE, H5T_NATIVE_DOUBLE, 2, {3, 2}, {0}, 0, d});
    h5_put(file, (H5Array){"y", H5T_STD_I32LE, H5T_NATIVE_INT32, 1, {3}, {0}, 0, y});
    H5Fclose(file);
    CHECK_OK(data_set_open(&set, NULL, path));
    CHECK_FAILS(data_set_check(&set, 0), ERR_DATA, "beyond what float32 holds");
}

static void print(void)
{
    DataSet set;
    char text[4000] = "";
    CHECK_OK(data_set_open(&set, NULL, images_small("print.h5", 10, 2, true)));
    FILE *f = fmemopen(text, sizeof text, "w");
    CHECK_OK(data_set_print(&set, f, true));
    fclose(f);
    CU_ASSERT_PTR_NOT_NULL(strstr(text, "\"shape\": [10, 1, 2, 2]"));
    CU_ASSERT_PTR_NOT_NULL(strstr(text, "chunked 3x1x2x2, deflate"));
    CU_ASSERT_PTR_NOT_NULL(strstr(text, "\"class_counts\": [5, 5]"));
    CU_ASSERT_PTR_EQUAL(strchr(text, '\n'), strrchr(text, '\n'));
    f = fmemopen(text, sizeof text, "w");
    CHECK_OK(data_set_print(&set, f, false));
    fclose(f);
    CU_ASSERT_PTR_NOT_NULL(strstr(text, "read through the HDF5 library"));
}

TEST_MAIN("set", {"types and byte orders", types}, {"NCHW and NHWC, own names", layouts},
          {"chunked and compressed equal contiguous", packed_equals_contiguous},
          {"vectors and targets", vectors}, {"attributes", attributes},
          {"a kind that no file has", kind_of_fields}, {"bad files", bad_files},
          {"truncated", truncated}, {"a mapped file shrinks", shrinks},
          {"big samples", big_samples}, {"wrong contents", wrong_contents},
          {"missing filter", missing_filter}, {"labels out of range, NaN", label_range},
          {"print", print})
