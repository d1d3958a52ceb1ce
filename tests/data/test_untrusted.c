/* Tests untrusted files: files for which HDF5 would take too much memory, links and plugins; the
 * separate process finds the same facts as this one. */
#include "fixture.h"

#include "data/set/facts.h"

#include <sys/stat.h>

enum { N = 20, WIDE = 4 };

/* Writes x with `wide` bytes per sample in chunks of `chunk` samples, of which `stored` bytes are
 * in the file. */
static const char *bomb(const char *name, hsize_t wide, hsize_t chunk, size_t stored)
{
    const char *path = in_scratch(name);
    hid_t file = h5_new(path), create = H5Pcreate(H5P_DATASET_CREATE);
    hsize_t dim[2] = {N, wide}, chunks[2] = {chunk, wide}, start[2] = {0};
    hid_t space = H5Screate_simple(2, dim, NULL);
    H5Pset_chunk(create, 2, chunks);
    H5Pset_deflate(create, 9);
    hid_t d = H5Dcreate2(file, "x", H5T_STD_U8LE, space, H5P_DEFAULT, create, H5P_DEFAULT);
    char *bytes = mem_new(stored);
    if (d < 0 || H5Dwrite_chunk(d, H5P_DEFAULT, 0, start, stored, bytes) < 0) die("%s", name);
    mem_free(&bytes);
    H5Dclose(d);
    H5Sclose(space);
    H5Pclose(create);
    h5_put_labels(file, N);
    H5Fclose(file);
    return path;
}

static void out_of_proportion(void)
{
    DataSet set;
    Config c = config_plain();
    const char *path = bomb("chunk.h5", (hsize_t)3 << 28, 2, 4000);
    CHECK_FAILS(data_set_open(&set, &c, path), ERR_DATA, "a chunk of /x takes 1.6 GB");
    path = bomb("chunk-small.h5", 1 << 20, 8, 4000);
    CHECK_FAILS(data_set_open(&set, &c, path), ERR_DATA, "but only 4.0 KB are stored");
    path = bomb("shape.h5", (hsize_t)1 << 22, 1, 4000);
    CHECK_FAILS(data_set_open(&set, &c, path), ERR_DATA, "/x claims 83.9 MB");
    path = bomb("good.h5", 1000, 1, 4000);
    CHECK_OK(data_set_open(&set, &c, path));
}

/* The target of the link is not even opened, which would block for ever. */
static void links(void)
{
    DataSet set;
    Config c = config_plain();
    const char *path = in_scratch("link.h5"), *pipe = in_scratch("pipe.h5");
    CU_ASSERT_EQUAL(mkfifo(pipe, 0666), 0);
    hid_t file = h5_new(path);
    h5_put_labels(file, N);
    H5Lcreate_external(pipe, "/x", file, "x", H5P_DEFAULT, H5P_DEFAULT);
    H5Fclose(file);
    alarm(60);
    CHECK_FAILS(data_set_open(&set, &c, path), ERR_DATA, "/x lies in another file");
    alarm(0);
}

static void plugins(void)
{
    unsigned allowed = 1;
    hdf5_lock();
    CU_ASSERT(H5PLget_loading_state(&allowed) >= 0);
    hdf5_unlock();
    CU_ASSERT_EQUAL(allowed, 0);
    enum { NOBODYS = 511 };
    const char *path = in_scratch("filter.h5");
    hsize_t dim[2] = {N, WIDE};
    uint8_t x[N * WIDE] = {0};
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
    CHECK_FAILS(data_set_open(&set, NULL, path), ERR_DATA, "set HDF5_PLUGIN_PATH");
    CU_ASSERT_PTR_NULL(strstr(fail_message(), "/opt/filters"));
    setenv("HDF5_PLUGIN_PATH", "/opt/filters", 1);
    CHECK_FAILS(data_set_open(&set, NULL, path), ERR_DATA, "HDF5_PLUGIN_PATH (/opt/filters)");
    unsetenv("HDF5_PLUGIN_PATH");
}

/* Control characters in names are replaced, since names are printed to terminals. */
static void words(void)
{
    ClassNames names;
    const char *path = images_small("words.h5", 6, 1, true);
    hid_t file = H5Fopen(path, H5F_ACC_RDWR, H5P_DEFAULT);
    h5_put_word(file, "classes", "\033[2Jcat");
    H5Fclose(file);
    CHECK_OK(class_names_read(&names, path));
    CU_ASSERT_EQUAL_FATAL(names.count, 1);
    CU_ASSERT_STRING_EQUAL(names.name[0], "?[2Jcat");
    class_names_free(&names);
}

static void as_here(const char *path, const char *x, const char *y)
{
    FactsRequest request = {0};
    SetFacts *direct = mem_new(sizeof *direct), *isolated = mem_new(sizeof *isolated);
    snprintf(request.path, sizeof request.path, "%s", path);
    snprintf(request.x, sizeof request.x, "%s", x);
    snprintf(request.y, sizeof request.y, "%s", y);
    facts_read(&request, direct);
    CHECK_OK(facts_request_run(&request, isolated));
    CU_ASSERT_EQUAL(direct->parts, isolated->parts);
    CU_ASSERT_EQUAL(memcmp(direct, isolated, sizeof *direct), 0);
    mem_free(&direct);
    mem_free(&isolated);
}

static void same_facts(void)
{
    for (int maker = 0; maker < 2; ++maker) {
        if (maker) isolated_begin();
        as_here(images_small("plain.h5", 30, 3, false), "/x", "/y");
        as_here(images_small("packed.h5", 30, 3, true), "/x", "/y");
        as_here(in_scratch("packed.h5"), "/x", "/nothing");
        as_here(in_scratch("packed.h5"), "/y", "/x");
        as_here(in_scratch("nowhere.h5"), "/x", "/y");
        as_here(in_scratch("filter.h5"), "/x", "/y");
    }
    isolated_end();
}

/* The answer of the separate process is checked, too. */
static void lies(void)
{
    FactsRequest request = {"strange.h5", "/x", "/y"};
    SetFacts good = {.parts = FACTS_PARTS};
    good.x = good.y = (DataArray){.name = "/x",
                                  .type = ELEM_F32,
                                  .ndim = 2,
                                  .dim = {N, WIDE, 1, 1},
                                  .offset = 4096,
                                  .sample_bytes = 4 * WIDE};
    SetFacts lie = good;
    CHECK_OK(facts_check(&request, &lie));
#define LIE(field, value)                                                                          \
    lie = good;                                                                                    \
    lie.field = value;                                                                             \
    CHECK_FAILS(facts_check(&request, &lie), ERR_DATA,                                             \
                "strange.h5: HDF5's answer about it is impossible")
    LIE(parts, FACTS_PARTS + 1);
    LIE(parts, FACTS_Y);
    LIE(kind, DATA_KINDS);
    LIE(means, DATA_CHANNELS + 1);
    LIE(stds, -1);
    LIE(x.type, (ElementType)99);
    LIE(x.ndim, SHAPE_DIMS + 1);
    LIE(x.dim[0], 0);
    LIE(x.dim[0], INT64_MAX / 4);
    LIE(x.dim[1], WIDE + 1);
    LIE(x.dim[3], 2);
    LIE(x.sample_bytes, 1);
    LIE(x.offset, -2);
    LIE(x.offset, INT64_MAX);
    LIE(y.sample_bytes, 0);
#undef LIE
    lie = good;
    memset(lie.x.name, 'a', sizeof lie.x.name);
    memset(lie.x.storage, 'a', sizeof lie.x.storage);
    CHECK_OK(facts_check(&request, &lie));
    CU_ASSERT_EQUAL(strlen(lie.x.name), sizeof lie.x.name - 1);
}

/* Input that expands out of proportion is refused before it is stored. */
static void bombs(void)
{
    char out[160];
    enum { BYTES = 80 << 20 };
    snprintf(out, sizeof out, "%s", in_scratch("bomb.h5"));
    uint8_t *zeros = mem_new(BYTES);
    const char *gz = file_put("zeros.gz", zeros, BYTES);
    CHECK_FAILS(data_import_tokens(gz, 16, 0, out, NULL, 0, false), ERR_DATA, "over 100 times its");
    CU_ASSERT_PTR_NOT_NULL(strstr(fail_message(), "gunzip"));
    CHECK_FAILS(data_import_text(gz, out, NULL, 0, false), ERR_DATA, "zeros.gz: unpacks to");
    uint8_t ys[8 + N] = {0, 0, 8, 1, 0, 0, 0, N},
                   xs[16 + N] = {0, 0, 8, 3, 0, 0, 0, N, 0, 0, 0, 1, 0, 0, 0, 1};
    const char *y = file_put("y", ys, sizeof ys), *x = file_put("x", xs, sizeof xs);
    CHECK_OK(data_import_idx(x, y, NULL, 0, in_scratch("fair.h5"), false));
    /* A header of 16 bytes claims 18 EB; and the same in a .gz. */
    uint8_t head[16] = {0, 0, 8, 3, 255, 255, 255, 255, 0, 1, 0, 0, 0, 1, 0, 0};
    CHECK_FAILS(data_import_idx(file_put("claims", head, 16), y, NULL, 0, out, false), ERR_DATA,
                "truncated");
    CHECK_FAILS(data_import_idx(file_put("claims.gz", head, 16), y, NULL, 0, out, false), ERR_DATA,
                "over 100 times its");
    uint8_t labels[8] = {0, 0, 8, 1, 255, 255, 255, 255};
    CHECK_FAILS(data_import_idx(x, file_put("claims-y", labels, 8), NULL, 0, out, false), ERR_DATA,
                "truncated");
    CHECK_FAILS(data_import_idx(x, file_put("claims-y.gz", labels, 8), NULL, 0, out, false),
                ERR_DATA, "over 100 times its");
    CU_ASSERT(access(out, F_OK) != 0 && access(in_scratch("bomb.h5.part"), F_OK) != 0);
    /* Small files may expand more. */
    CHECK_OK(data_import_text(file_put("some.gz", zeros, 1 << 20), out, NULL, 0, false));
    mem_free(&zeros);
}

TEST_MAIN("untrusted", {"plugins", plugins}, {"out of proportion", out_of_proportion},
          {"links", links}, {"words for terminals", words}, {"the same facts", same_facts},
          {"lies", lies}, {"bombs", bombs})
