/* Shared by the data tests: a scratch folder, HDF5 files of any type and layout, and a Config to
 * open them with. */
#ifndef DATA_FIXTURE_H
#define DATA_FIXTURE_H

#include "data/import.h"
#include "layers.h"
#include "harness.h"
#include "verb_run.h"

#include <hdf5.h>
#include <stdarg.h>
#include <zlib.h>

/* Returns the number that a value of train.loss has in Config. */
static inline int loss_number(const char *word)
{
    int i = 0;
    while (strcmp(layers_words[0].word(i).word, word) != 0) ++i;
    return i;
}

static char scratch[64];

static inline void scratch_remove(void)
{
    char cmd[128];
    snprintf(cmd, sizeof cmd, "rm -rf %s", scratch);
    if (system(cmd) != 0) printf("  %s stays behind\n", scratch);
}

/* Returns a path in a scratch folder that is removed at exit. The last 32 results stay valid. */
static inline const char *in_scratch(const char *name)
{
    static char path[32][160];
    static int turn;
    if (!scratch[0]) {
        snprintf(scratch, sizeof scratch, "/tmp/weft-data-XXXXXX");
        if (!mkdtemp(scratch)) die("mkdtemp");
        atexit(scratch_remove);
    }
    turn = (turn + 1) % 32;
    snprintf(path[turn], sizeof path[turn], "%s/%s", scratch, name);
    return path[turn];
}

static inline void write_bytes(const char *path, const void *bytes, size_t count)
{
    FILE *f = fopen(path, "wb");
    if (!f || fwrite(bytes, 1, count, f) != count || fclose(f) != 0) die("%s", path);
}

/* Writes a file into the scratch folder, compressed with gzip if its name has ".gz". Returns the
 * path. */
static inline const char *file_put(const char *name, const void *bytes, size_t n)
{
    const char *path = in_scratch(name);
    gzFile f = gzopen(path, strstr(name, ".gz") ? "wb" : "wbT");
    if (!f || gzwrite(f, bytes, (unsigned)n) != (int)n || gzclose(f) != Z_OK) die("%s", path);
    return path;
}

/* Returns the bytes of a file; owned by the caller. */
static inline char *whole(const char *path, size_t *bytes)
{
    char *text;
    if (file_text(path, (size_t)1 << 28, &text, bytes) != OK) die("%s", fail_message());
    return text;
}

static inline bool same_files(const char *a, const char *b)
{
    size_t left, right;
    char *x = whole(a, &left), *y = whole(b, &right);
    bool same = left == right && memcmp(x, y, left) == 0;
    mem_free(&x);
    mem_free(&y);
    return same;
}

/* Returns whether class i of the file has this name. */
static inline bool class_is(const char *path, int64_t i, const char *name)
{
    ClassNames names;
    bool same =
        class_names_read(&names, path) == OK && i < names.count && strcmp(names.name[i], name) == 0;
    class_names_free(&names);
    return same;
}

/* Returns a configuration with only the defaults that matter here. */
static inline Config config_plain(void)
{
    Config c = {0};
    c.path = (char *)"test.yaml";
    c.data.x = (char *)"/x";
    c.data.y = (char *)"/y";
    c.data.normalize = true;
    c.run.seed = 7;
    return c;
}

typedef struct H5Array {
    const char *name;
    /* stored: type in the file; memory: type of `data` */
    hid_t stored, memory;
    int ndim;
    /* dim: shape, [ndim]; chunk: shape of a chunk, [ndim]; chunk[0] = 0: the array is contiguous */
    hsize_t dim[5], chunk[5];
    int deflate;
    /* NULL: the array is created but never written */
    const void *data;
} H5Array;

static inline hid_t h5_new(const char *path)
{
    hdf5_lock();
    hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    hdf5_unlock();
    if (file < 0) die("%s", path);
    return file;
}

static inline void h5_put(hid_t file, H5Array a)
{
    hid_t create = H5Pcreate(H5P_DATASET_CREATE), space = H5Screate_simple(a.ndim, a.dim, NULL);
    if (a.chunk[0]) H5Pset_chunk(create, a.ndim, a.chunk);
    if (a.deflate) H5Pset_deflate(create, (unsigned)a.deflate);
    hid_t d = H5Dcreate2(file, a.name, a.stored, space, H5P_DEFAULT, create, H5P_DEFAULT);
    if (d < 0) die("H5Dcreate2 %s", a.name);
    if (a.data && H5Dwrite(d, a.memory, H5S_ALL, H5S_ALL, H5P_DEFAULT, a.data) < 0) die("H5Dwrite");
    H5Dclose(d);
    H5Sclose(space);
    H5Pclose(create);
}

/* Writes labels 0, 1, 2, 0, ... of n samples as /y. */
static inline void h5_put_labels(hid_t file, int n)
{
    int32_t *y = mem_new((size_t)n * sizeof *y);
    for (int i = 0; i < n; ++i) y[i] = i % 3;
    h5_put(file, (H5Array){"y", H5T_STD_I32LE, H5T_NATIVE_INT32, 1, {(hsize_t)n}, {0}, 0, y});
    mem_free(&y);
}

static inline void h5_put_word(hid_t file, const char *name, const char *value)
{
    hid_t type = H5Tcopy(H5T_C_S1), space = H5Screate(H5S_SCALAR);
    H5Tset_size(type, strlen(value) + 1);
    hid_t a = H5Acreate2(file, name, type, space, H5P_DEFAULT, H5P_DEFAULT);
    H5Awrite(a, type, value);
    H5Aclose(a);
    H5Sclose(space);
    H5Tclose(type);
}

static inline void h5_put_int(hid_t file, const char *name, int value)
{
    hid_t space = H5Screate(H5S_SCALAR);
    hid_t a = H5Acreate2(file, name, H5T_STD_I32LE, space, H5P_DEFAULT, H5P_DEFAULT);
    H5Awrite(a, H5T_NATIVE_INT, &value);
    H5Aclose(a);
    H5Sclose(space);
}

static inline void h5_put_floats(hid_t file, const char *name, const float *value, hsize_t n)
{
    hid_t space = H5Screate_simple(1, &n, NULL);
    hid_t a = H5Acreate2(file, name, H5T_IEEE_F32LE, space, H5P_DEFAULT, H5P_DEFAULT);
    H5Awrite(a, H5T_NATIVE_FLOAT, value);
    H5Aclose(a);
    H5Sclose(space);
}

/* Writes n images (n,1,2,2) of uint8; image i has values i, i+1, i+2, i+3 (mod 256) and label i mod
 * classes. packed: true: the arrays are chunked and compressed. Returns the path. */
static inline const char *images_small(const char *name, int n, int classes, bool packed)
{
    const char *path = in_scratch(name);
    uint8_t *x = mem_new((size_t)n * 4);
    int32_t *y = mem_new((size_t)n * 4);
    for (int i = 0; i < n * 4; ++i) x[i] = (uint8_t)(i / 4 + i % 4);
    for (int i = 0; i < n; ++i) y[i] = i % classes;
    H5Array ax = {"x", H5T_STD_U8LE, H5T_NATIVE_UINT8, 4, {(hsize_t)n, 1, 2, 2}, {0}, 0, x};
    H5Array ay = {"y", H5T_STD_I32LE, H5T_NATIVE_INT32, 1, {(hsize_t)n}, {0}, 0, y};
    if (packed) {
        ax.chunk[0] = n < 3 ? 1 : 3, ax.chunk[1] = 1, ax.chunk[2] = ax.chunk[3] = 2;
        ay.chunk[0] = 2;
        ax.deflate = ay.deflate = 4;
    }
    hid_t file = h5_new(path);
    h5_put(file, ax);
    h5_put(file, ay);
    H5Fclose(file);
    mem_free(&x);
    mem_free(&y);
    return path;
}

/* Runs `weft data import NAME ...`. */
static inline Status import_run(const char *name, ...)
{
    char full[64];
    va_list words;
    snprintf(full, sizeof full, "data import %s", name);
    va_start(words, name);
    Status status = verb_run_words(full, words);
    va_end(words);
    return status;
}

#endif
