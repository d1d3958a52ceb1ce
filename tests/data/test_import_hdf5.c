/* Tests `weft data import hdf5`: arrays that only HDF5 can unpack become contiguous, in a separate
 * process. */
#include "fixture.h"

#include <unistd.h>

enum { N = 37 };

static bool exists(const char *path)
{
    return access(path, F_OK) == 0;
}

static void same_values(const DataSet *a, const DataSet *b)
{
    Reader *ra, *rb;
    uint8_t xa[64], xb[64];
    int32_t ya, yb;
    CU_ASSERT_EQUAL_FATAL(a->x.sample_bytes, b->x.sample_bytes);
    CHECK_OK(reader_new(&ra, a));
    CHECK_OK(reader_new(&rb, b));
    for (int64_t i = 0; i < a->samples; ++i) {
        CHECK_OK(reader_get(ra, i, xa, &ya, NULL));
        CHECK_OK(reader_get(rb, i, xb, &yb, NULL));
        CU_ASSERT_EQUAL(memcmp(xa, xb, (size_t)a->x.sample_bytes), 0);
        CU_ASSERT_EQUAL(ya, yb);
    }
    reader_free(&ra);
    reader_free(&rb);
}

/* Arrays that only HDF5 can unpack become contiguous, with the same values and attributes. */
static void hdf5(void)
{
    char out[160], part[180];
    DataSet from, to;
    snprintf(out, sizeof out, "%s", in_scratch("unpacked.h5"));
    snprintf(part, sizeof part, "%s.part", out);
    const char *path = images_small("packed.h5", 100, 7, true);
    hid_t file = H5Fopen(path, H5F_ACC_RDWR, H5P_DEFAULT);
    h5_put_floats(file, "mean", (float[]){0.25f}, 1);
    h5_put_floats(file, "std", (float[]){0.5f}, 1);
    h5_put_int(file, "classes", 9);
    H5Fclose(file);
    CHECK_OK(data_import_hdf5(path, "/x", "/y", out, false, NULL));
    CHECK_OK(data_set_open(&from, NULL, path));
    CHECK_OK(data_set_open(&to, NULL, out));
    CU_ASSERT(from.x.offset < 0 && to.x.offset > 0 && to.y.offset > 0);
    CU_ASSERT_EQUAL(to.classes, 9);
    CU_ASSERT(to.has_stats && to.mean[0] == 0.25f && to.std[0] == 0.5f);
    same_values(&from, &to);
    CHECK_FAILS(data_import_hdf5(path, "/x", "/y", out, false, NULL), ERR_USAGE, "already there");
    CHECK_FAILS(data_import_hdf5(path, "/no", "/y", out, true, NULL), ERR_DATA,
                "holds no data set /no");
    CHECK_FAILS(data_import_hdf5(in_scratch("nix"), "/x", "/y", out, true, NULL), ERR_NOINPUT,
                "nix");
    CHECK_OK(data_set_check(&to, 0));
    /* A weft data set stays one; values of the other byte order become native. */
    const char *weft_file = in_scratch("own.h5");
    CHECK_OK(data_import_random(weft_file, shape_of(4, (int64_t)1, 2, 3, 4), 4, N, 1));
    file = H5Fopen(weft_file, H5F_ACC_RDWR, H5P_DEFAULT);
    h5_put_int(file, "orient", 1);
    h5_put_word(file, "filter", "bicubic");
    H5Fclose(file);
    CHECK_OK(data_import_hdf5(weft_file, "/x", "/y", out, true, NULL));
    CHECK_OK(data_set_open(&from, NULL, weft_file));
    CHECK_OK(data_set_open(&to, NULL, out));
    CU_ASSERT_EQUAL(to.kind, DATA_IMAGE);
    CU_ASSERT(to.orient_requested && to.bicubic);
    CU_ASSERT_TRUE(class_is(out, 3, "3"));
    same_values(&from, &to);
    int16_t big[N * 2];
    int32_t label[N];
    for (int i = 0; i < N * 2; ++i) big[i] = (int16_t)(i * 300);
    for (int i = 0; i < N; ++i) label[i] = i % 3;
    file = h5_new(path = in_scratch("big.h5"));
    h5_put(file, (H5Array){"a", H5T_STD_I16BE, H5T_NATIVE_INT16, 2, {N, 2}, {0}, 0, big});
    h5_put(file, (H5Array){"b", H5T_STD_I32BE, H5T_NATIVE_INT32, 1, {N}, {0}, 0, label});
    H5Fclose(file);
    CHECK_OK(data_import_hdf5(path, "/a", "/b", out, true, NULL));
    CHECK_OK(data_set_open(&to, NULL, out));
    CU_ASSERT(to.x.offset > 0 && !to.x.big_endian);
    Config c = config_plain();
    c.data.x = (char *)"/a", c.data.y = (char *)"/b";
    CHECK_OK(data_set_open(&from, &c, path));
    same_values(&from, &to);
    CU_ASSERT_FALSE(exists(part));
}

/* A chunk that cannot be unpacked leaves no file behind. */
static void hdf5_bad(void)
{
    char out[160], part[180];
    snprintf(out, sizeof out, "%s", in_scratch("never.h5"));
    snprintf(part, sizeof part, "%s.part", out);
    const char *path = in_scratch("torn.h5");
    hid_t file = h5_new(path), create = H5Pcreate(H5P_DATASET_CREATE);
    hsize_t dim[2] = {8, 100}, start[2] = {0};
    int32_t y[8] = {0};
    hid_t space = H5Screate_simple(2, dim, NULL);
    H5Pset_chunk(create, 2, dim);
    H5Pset_deflate(create, 9);
    hid_t d = H5Dcreate2(file, "x", H5T_STD_U8LE, space, H5P_DEFAULT, create, H5P_DEFAULT);
    if (H5Dwrite_chunk(d, H5P_DEFAULT, 0, start, 40, "no deflate, and never was, in forty bytes") <
        0)
        die("H5Dwrite_chunk");
    H5Dclose(d);
    H5Sclose(space);
    H5Pclose(create);
    h5_put(file, (H5Array){"y", H5T_STD_I32LE, H5T_NATIVE_INT32, 1, {8}, {0}, 0, y});
    H5Fclose(file);
    CHECK_FAILS(data_import_hdf5(path, "/x", "/y", out, false, NULL), ERR_DATA,
                "torn.h5: sample 0");
    CU_ASSERT_FALSE(exists(out));
    CU_ASSERT_FALSE(exists(part));
}

TEST_MAIN("import hdf5", {"unpacked", hdf5}, {"torn", hdf5_bad})
