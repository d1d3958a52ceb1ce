/* Tests data sets whose values lie in another file than the named one: behind external links, in
 * external storage, in the files of a virtual data set. Each is refused by name, with a command
 * that works; links within the file are accepted. */
#include "fixture.h"

enum { N = 20, WIDE = 4 };

/* Writes vectors (N,4) of uint8, counting from base. */
static void put_x(hid_t file, const char *name, int base)
{
    uint8_t x[N * WIDE];
    for (int i = 0; i < N * WIDE; ++i) x[i] = (uint8_t)(base + i);
    h5_put(file, (H5Array){name, H5T_STD_U8LE, H5T_NATIVE_UINT8, 2, {N, WIDE}, {0}, 0, x});
}

static void put_y(hid_t file, const char *name)
{
    int32_t y[N];
    for (int i = 0; i < N; ++i) y[i] = i % 3;
    /* compressed */
    h5_put(file, (H5Array){name, H5T_STD_I32LE, H5T_NATIVE_INT32, 1, {N}, {N / 2}, 1, y});
}

static void put_group(hid_t file, const char *name)
{
    H5Gclose(H5Gcreate2(file, name, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
}

static void put_link(hid_t file, const char *name, const char *target, const char *there)
{
    if (H5Lcreate_external(target, there, file, name, H5P_DEFAULT, H5P_DEFAULT) < 0)
        die("H5Lcreate_external %s", name);
}

/* Writes x, which `create` stores in another file. */
static void put_x_by(hid_t file, hid_t create, bool write)
{
    uint8_t x[N * WIDE];
    for (int i = 0; i < N * WIDE; ++i) x[i] = (uint8_t)(7 + i);
    hsize_t dim[2] = {N, WIDE};
    hid_t space = H5Screate_simple(2, dim, NULL);
    hid_t d = H5Dcreate2(file, "x", H5T_STD_U8LE, space, H5P_DEFAULT, create, H5P_DEFAULT);
    if (d < 0) die("H5Dcreate2 x");
    if (write) H5Dwrite(d, H5T_NATIVE_UINT8, H5S_ALL, H5S_ALL, H5P_DEFAULT, x);
    H5Dclose(d);
    H5Sclose(space);
    H5Pclose(create);
}

/* Writes b.h5, with the values that links in the other files lead to. */
static void make_target(void)
{
    hid_t file = h5_new(in_scratch("b.h5"));
    put_x(file, "x", 7);
    put_y(file, "y");
    put_group(file, "g");
    put_x(file, "g/x", 7);
    H5Fclose(file);
}

/* Checks that the set has these values: 7, 8, 9, ... */
static void holds(const DataSet *set)
{
    Reader *reader;
    uint8_t x[WIDE];
    int32_t y = -1;
    CHECK_OK(reader_new(&reader, set));
    for (int64_t s = 0; s < N; ++s) {
        CHECK_OK(reader_get(reader, s, x, &y, NULL));
        CU_ASSERT_EQUAL(x[1], 7 + s * WIDE + 1);
        CU_ASSERT_EQUAL(y, s % 3);
    }
    reader_free(&reader);
}

static bool have_h5repack(void)
{
    return system("h5repack --version >/dev/null 2>&1") == 0;
}

/* Runs the command at the end of the last message and checks that it makes a good data set. */
static void cure_works(const Config *c)
{
    DataSet set;
    const char *command = strstr(fail_message(), "h5repack"), *made = in_scratch("NEW.h5");
    CU_ASSERT_PTR_NOT_NULL_FATAL(command);
    if (!have_h5repack()) return;
    char *line = mem_format("cd %s && rm -f NEW.h5 && %s", scratch, command);
    CU_ASSERT_EQUAL(system(line), 0);
    mem_free(&line);
    CHECK_OK(data_set_open(&set, c, made));
    holds(&set);
}

static void refused(const char *path, const Config *c, const char *what)
{
    DataSet set;
    CHECK_FAILS(data_set_open(&set, c, path), ERR_DATA, what);
    CU_ASSERT_PTR_NOT_NULL(strstr(fail_message(), path));
    cure_works(c);
}

static void external_links(void)
{
    Config c = config_plain();
    make_target();
    if (!have_h5repack()) printf("  skipped: no h5repack here, so its commands are not tried\n");
    const char *path = in_scratch("x.h5"), *what = "/x lies in another file";
    hid_t file = h5_new(path);
    put_y(file, "y");
    put_link(file, "x", "b.h5", "/x");
    H5Fclose(file);
    refused(path, &c, what);
    file = h5_new(path = in_scratch("y.h5"));
    put_x(file, "x", 7);
    put_link(file, "y", "b.h5", "/y");
    H5Fclose(file);
    refused(path, &c, "/y lies in another file");
    /* a link to a link, through a soft link */
    file = h5_new(path = in_scratch("chain.h5"));
    put_y(file, "y");
    put_link(file, "far", "x.h5", "/x");
    H5Lcreate_soft("/far", file, "x", H5P_DEFAULT, H5P_DEFAULT);
    H5Fclose(file);
    refused(path, &c, what);
    /* a link in the middle of the path */
    file = h5_new(path = in_scratch("middle.h5"));
    put_y(file, "y");
    put_link(file, "far", "b.h5", "/g");
    H5Fclose(file);
    c.data.x = (char *)"/far/x";
    refused(path, &c, "/far/x lies in another file");
}

static void other_storage(void)
{
    Config c = config_plain();
    make_target();
    const char *path = in_scratch("raw.h5");
    hid_t file = h5_new(path), create = H5Pcreate(H5P_DATASET_CREATE);
    put_y(file, "y");
    H5Pset_external(create, in_scratch("raw.bin"), 0, N * WIDE);
    put_x_by(file, create, true);
    H5Fclose(file);
    refused(path, &c, "the data of /x lies in other files (external storage)");
    file = h5_new(path = in_scratch("virtual.h5"));
    put_y(file, "y");
    hsize_t dim[2] = {N, WIDE};
    hid_t space = H5Screate_simple(2, dim, NULL);
    create = H5Pcreate(H5P_DATASET_CREATE);
    H5Pset_virtual(create, space, in_scratch("b.h5"), "/x", space);
    put_x_by(file, create, false);
    H5Sclose(space);
    H5Fclose(file);
    refused(path, &c, "the data of /x lies in other files (a virtual data set)");
}

/* Names of classes that are stored in another file are not read: an untrusted file must not make
 * weft print the content of other files. */
static void names_elsewhere(void)
{
    ClassNames names;
    const char *secret = in_scratch("secret"), *path = in_scratch("names.h5");
    hsize_t dim[1] = {2};
    FILE *out = fopen(secret, "w");
    CU_ASSERT_PTR_NOT_NULL_FATAL(out);
    fputs("password", out);
    fclose(out);
    hid_t file = h5_new(path), create = H5Pcreate(H5P_DATASET_CREATE), type = H5Tcopy(H5T_C_S1);
    put_x(file, "x", 7);
    put_y(file, "y");
    H5Tset_size(type, 4);
    H5Pset_external(create, secret, 0, 8);
    hid_t space = H5Screate_simple(1, dim, NULL);
    H5Dclose(H5Dcreate2(file, "classes", type, space, H5P_DEFAULT, create, H5P_DEFAULT));
    H5Sclose(space);
    H5Tclose(type);
    H5Pclose(create);
    H5Fclose(file);
    CHECK_OK(class_names_read(&names, path));
    CU_ASSERT_EQUAL(names.count, 0);
    class_names_free(&names);
}

/* Soft and hard links lead to the same bytes of this file. */
static void links_inside(void)
{
    Config c = config_plain();
    DataSet set;
    const char *path = in_scratch("inside.h5");
    hid_t file = h5_new(path);
    put_group(file, "g");
    put_x(file, "g/x", 7);
    put_y(file, "g/y");
    H5Lcreate_soft("/g/x", file, "soft", H5P_DEFAULT, H5P_DEFAULT);
    H5Lcreate_hard(file, "g/x", file, "hard", H5P_DEFAULT, H5P_DEFAULT);
    H5Lcreate_soft("/g", file, "around", H5P_DEFAULT, H5P_DEFAULT);
    H5Fclose(file);
    static const char *const names[] = {"/soft", "/hard", "/around/x", "/g/x"};
    c.data.y = (char *)"/g/y";
    for (size_t i = 0; i < sizeof names / sizeof *names; ++i) {
        c.data.x = (char *)(uintptr_t)names[i];
        CHECK_OK(data_set_open(&set, &c, path));
        CU_ASSERT(set.x.offset > 0);
        holds(&set);
    }
}

TEST_MAIN("elsewhere", {"external links", external_links},
          {"external storage and virtual data sets", other_storage},
          {"names in another file", names_elsewhere}, {"links inside the file", links_inside})
