/* Tests a data set that a filter plug-in of HDF5 decodes. The plug-in (inverted.c) needs HDF5's
 * shared library; its calls must reach the HDF5 of this program, which may be linked statically. */
#include "fixture.h"

#include <unistd.h>

enum { FILTER = 511, N = 20, WIDE = 4 };

/* Sets HDF5_PLUGIN_PATH to the folder `plugins` next to this program. */
static void set_plugins(void)
{
    char path[4096];
    ssize_t length = readlink("/proc/self/exe", path, sizeof path - 16);
    CU_ASSERT_FATAL(length > 0);
    path[length] = '\0';
    snprintf(strrchr(path, '/'), 16, "/plugins");
    setenv("HDF5_PLUGIN_PATH", path, 1);
}

static void decoded(void)
{
    const char *path = in_scratch("inverted.h5");
    hsize_t dim[2] = {N, WIDE}, chunk[2] = {1, WIDE}, first[2] = {0, 0};
    uint8_t x[N * WIDE], stored[WIDE], read[WIDE];
    for (int i = 0; i < N * WIDE; ++i) x[i] = (uint8_t)(3 * i);
    set_plugins();
    hid_t file = h5_new(path), create = H5Pcreate(H5P_DATASET_CREATE);
    CU_ASSERT_FATAL(H5Zfilter_avail(FILTER) > 0);
    hid_t space = H5Screate_simple(2, dim, NULL);
    H5Pset_chunk(create, 2, chunk);
    H5Pset_filter(create, FILTER, H5Z_FLAG_MANDATORY, 0, NULL);
    hid_t d = H5Dcreate2(file, "x", H5T_STD_U8LE, space, H5P_DEFAULT, create, H5P_DEFAULT);
    CU_ASSERT_FATAL(d >= 0);
    CU_ASSERT(H5Dwrite(d, H5T_NATIVE_UINT8, H5S_ALL, H5S_ALL, H5P_DEFAULT, x) >= 0);
    uint32_t mask;
    CU_ASSERT(H5Dflush(d) >= 0 && H5Dread_chunk(d, H5P_DEFAULT, first, &mask, stored) >= 0);
    CU_ASSERT_EQUAL(stored[1], (uint8_t)~x[1]);
    H5Dclose(d);
    H5Sclose(space);
    H5Pclose(create);
    h5_put_labels(file, N);
    H5Fclose(file);

    DataSet set;
    Reader *reader;
    Config c = config_plain();
    CHECK_OK(data_set_open(&set, &c, path));
    CHECK_OK(reader_new(&reader, &set));
    for (int64_t i = 0; i < N; ++i) {
        int32_t y;
        CHECK_OK(reader_get(reader, i, read, &y, NULL));
        CU_ASSERT_EQUAL(memcmp(read, x + i * WIDE, WIDE), 0);
        CU_ASSERT_EQUAL(y, i % 3);
    }
    reader_free(&reader);
    unsetenv("HDF5_PLUGIN_PATH");
}

TEST_MAIN("plug-in", {"a data set that a plug-in decodes", decoded})
