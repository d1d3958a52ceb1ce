/* A small model to save and load. It has tensors of odd sizes, one without elements, one with dots
 * in its name, one larger than a page. A value is a pure function of (tensor, element, salt). The
 * function `set` copies loaded values to Fixture.loaded and counts its calls. */
#ifndef WEFT_TESTS_CHECKPOINT_FIXTURE_H
#define WEFT_TESTS_CHECKPOINT_FIXTURE_H

#include "checkpoint.h"
#include "harness.h"

#include <dirent.h>
#include <fcntl.h>
#include <hdf5.h>
#include <math.h>
#include <sys/stat.h>

enum { FIXTURE_COUNT = 10, FIXTURE_FLOATS = 8192 };
static const CheckpointTensor fixture_tensor[FIXTURE_COUNT] = {
    {.path = "/params/conv1.weight", .shape = {4, {7, 3, 5, 5}}},
    {.path = "/params/layer1.0.conv1.weight", .shape = {4, {33, 7, 3, 3}}},
    {.path = "/params/layer1.0.bn1.weight", .shape = {1, {33, 1, 1, 1}}},
    {.path = "/params/fc.weight", .shape = {2, {10, 33, 1, 1}}},
    {.path = "/params/fc.bias", .shape = {1, {1, 1, 1, 1}}},
    {.path = "/params/none", .shape = {2, {0, 5, 1, 1}}},
    {.path = "/optim/m/conv1.weight", .shape = {4, {7, 3, 5, 5}}},
    {.path = "/optim/v/conv1.weight", .shape = {4, {7, 3, 5, 5}}},
    {.path = "/buffers/layer1.0.bn1.running_mean", .shape = {1, {33, 1, 1, 1}}},
    {.path = "/buffers/table", .shape = {3, {11, 13, 17, 1}}},
};

typedef struct Fixture {
    /* salt of the values that the function `get` supplies */
    int salt;
    /* number of calls of `set`, and of `get` */
    int sets;
    int gets;
    const CheckpointTensor *tensor;
    float loaded[FIXTURE_COUNT][FIXTURE_FLOATS];
} Fixture;

static inline float fixture_value(int salt, int i, int64_t j)
{
    return (float)((i + 1) * 10000 + j) + 0.125f * (float)salt;
}

static inline const float *fixture_get(void *user, int i, float *plain)
{
    Fixture *f = user;
    ++f->gets;
    for (int64_t j = 0; j < shape_count(f->tensor[i].shape); ++j)
        plain[j] = fixture_value(f->salt, i, j);
    return plain;
}

static inline void fixture_set(void *user, int i, const float *plain)
{
    Fixture *f = user;
    ++f->sets;
    size_t bytes = (size_t)shape_count(f->tensor[i].shape) * sizeof *plain;
    if (bytes) memcpy(f->loaded[i], plain, bytes);
}

static inline CheckpointIo fixture_io(Fixture *f, int salt)
{
    memset(f, 0, sizeof *f);
    f->salt = salt;
    f->tensor = fixture_tensor;
    return (CheckpointIo){.count = FIXTURE_COUNT,
                          .tensor = fixture_tensor,
                          .user = f,
                          .get = fixture_get,
                          .set = fixture_set};
}

static inline CheckpointMeta fixture_meta(int64_t step)
{
    static char config[] = "run: {name: fixture}\n", classes[] = "cat\nsea lion";
    return (CheckpointMeta){.step = step,
                            .epoch = 3,
                            .data_step = 7,
                            .seed = 42,
                            .best_metric = 0.875,
                            .best_of = "top1",
                            .evaluations = 4,
                            .lr = {.lr = 0.0625, .best = 0.75, .bad_evaluations = 2, .falls = 3},
                            .stop_best = 0.5,
                            .stop_bad_evaluations = 1,
                            .hook_stop = 1,
                            .classes = classes,
                            .data_ids = {330, UINT64_MAX, 3},
                            .input = {.channels = 3,
                                      .height = 8,
                                      .width = 9,
                                      .stored_height = 10,
                                      .stored_width = 11,
                                      .classes = 2,
                                      .stat_count = 3,
                                      .mean = {0.25f, 0.5f, 0.75f},
                                      .std = {1, 2, 3},
                                      .scale = 0.5f},
                            .config = config,
                            .grid = "1x1x1",
                            .data_train = "200x1x28x28 uint8, labels 200 int32, xxh3-1 0123456789"};
}

/* Returns true if each tensor was set once, to the values of `salt`. */
static inline bool fixture_holds(const Fixture *f, int salt)
{
    if (f->sets != FIXTURE_COUNT) return false;
    for (int i = 0; i < FIXTURE_COUNT; ++i)
        for (int64_t j = 0; j < shape_count(fixture_tensor[i].shape); ++j)
            if (f->loaded[i][j] != fixture_value(salt, i, j)) return false;
    return true;
}

static inline Status fixture_save(const char *path, int64_t step, int salt)
{
    Fixture *f = mem_new(sizeof *f);
    CheckpointIo io = fixture_io(f, salt);
    CheckpointMeta meta = fixture_meta(step);
    World world = world_alone();
    Status status = checkpoint_save(&world, path, &meta, &io);
    mem_free(&f);
    return status;
}

/* Loads the file `path` into f. Sets the fixture's salt to 0. */
static inline Status fixture_load(const char *path, Fixture *f, CheckpointMeta *meta)
{
    CheckpointIo io = fixture_io(f, 0);
    World world = world_alone();
    return checkpoint_load(&world, path, meta, &io);
}

/* Rewrites tensor i with the given type, compressed or not, and with or without its checksum
 * attribute. */
static inline void fixture_rewrite(const char *path, int i, hid_t type, bool compress,
                                   bool keep_hash)
{
    static float plain[FIXTURE_FLOATS];
    const CheckpointTensor *t = &fixture_tensor[i];
    hsize_t dim[4];
    for (int d = 0; d < 4; ++d) dim[d] = (hsize_t)t->shape.dim[d];
    hid_t file = H5Fopen(path, H5F_ACC_RDWR, H5P_DEFAULT), old = H5Dopen2(file, t->path, 0);
    CU_ASSERT(H5Dread(old, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, 0, plain) >= 0);
    char hash[17] = "";
    hid_t attr = H5Aopen(old, "xxh64", 0), text = H5Aget_type(attr);
    CU_ASSERT_EQUAL(H5Tget_size(text), 17);
    CU_ASSERT(H5Aread(attr, text, hash) >= 0);
    H5Aclose(attr);
    H5Dclose(old);
    H5Ldelete(file, t->path, 0);
    hid_t create = H5Pcreate(H5P_DATASET_CREATE),
          space = H5Screate_simple(t->shape.ndim, dim, NULL);
    if (compress) {
        H5Pset_chunk(create, t->shape.ndim, dim);
        H5Pset_deflate(create, 4);
    }
    hid_t set = H5Dcreate2(file, t->path, type, space, 0, create, 0);
    CU_ASSERT(H5Dwrite(set, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, 0, plain) >= 0);
    if (keep_hash) {
        hid_t scalar = H5Screate(H5S_SCALAR);
        attr = H5Acreate2(set, "xxh64", text, scalar, 0, 0);
        CU_ASSERT(H5Awrite(attr, text, hash) >= 0);
        H5Aclose(attr);
        H5Sclose(scalar);
    }
    H5Tclose(text);
    H5Pclose(create);
    H5Sclose(space);
    H5Dclose(set);
    CU_ASSERT(H5Fclose(file) >= 0);
}

/* Makes a new temporary folder and returns its path, which is static. fixture_clean removes the
 * folder. */
static inline const char *fixture_folder(void)
{
    static char path[64];
    snprintf(path, sizeof path, "/tmp/weft-test-XXXXXX");
    return mkdtemp(path);
}

static inline void fixture_clean(const char *folder)
{
    char command[128];
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    if (system(command) != 0) printf("  cannot remove %s\n", folder);
}

static inline char *fixture_path(const char *folder, const char *name)
{
    return mem_format("%s/%s", folder, name);
}

/* Reads a whole file. The caller owns the content. */
static inline unsigned char *fixture_bytes(const char *path, size_t *bytes)
{
    struct stat st;
    FILE *in = fopen(path, "rb");
    if (!in || fstat(fileno(in), &st) != 0) return NULL;
    unsigned char *data = mem_new((size_t)st.st_size + 1);
    *bytes = fread(data, 1, (size_t)st.st_size, in);
    fclose(in);
    return data;
}

static inline void fixture_write(const char *path, const void *data, size_t bytes)
{
    /* the file is removed first, since some file systems flush a file that is truncated and
     * rewritten */
    unlink(path);
    FILE *out = fopen(path, "wb");
    if (!out) return;
    if (bytes && fwrite(data, bytes, 1, out) != 1) printf("  cannot write %s\n", path);
    fclose(out);
}

/* Returns the number of open HDF5 files, data sets, groups, types and attributes, and of
 * descriptors of this process. A larger number after a call than before it shows a leak. */
static inline int64_t fixture_handles(void)
{
    int64_t descriptors = 0;
    DIR *all = opendir("/proc/self/fd");
    while (all && readdir(all)) ++descriptors;
    if (all) closedir(all);
    return H5Fget_obj_count(H5F_OBJ_ALL, H5F_OBJ_ALL) + descriptors;
}

/* Returns the text that has been printed to `out`, owned by the caller, and closes `out`. */
static inline char *fixture_text(FILE *out)
{
    long bytes = ftell(out);
    char *text = mem_new((size_t)bytes + 1);
    rewind(out);
    if (bytes && fread(text, (size_t)bytes, 1, out) != 1) text[0] = 0;
    fclose(out);
    return text;
}

#endif
