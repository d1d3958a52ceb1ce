/* Shared by tests of imports from folders: makes small trees of pictures and their imports, and
 * reads the arrays of the files that imports write. */
#ifndef DATA_FOLDERS_H
#define DATA_FOLDERS_H

#include "fixture.h"
#include "data/folder/folder_files.h"
#include "image/pictures.h"

#include <errno.h>
#include <sys/stat.h>

static inline void make_folder(const char *path)
{
    if (mkdir(path, 0777) != 0 && errno != EEXIST) die("mkdir %s", path);
}

static inline void copy(const char *picture, const char *to)
{
    char from[200];
    snprintf(from, sizeof from, PICTURES "%s", picture);
    Bytes bytes = bytes_of(from);
    write_bytes(to, bytes.at, bytes.count);
    mem_free(&bytes.at);
}

/* Returns DIR/NAME; the last ten results stay valid. */
static inline const char *at(const char *dir, const char *name)
{
    static char path[10][400];
    static int turn;
    turn = (turn + 1) % 10;
    snprintf(path[turn], sizeof path[turn], "%s/%s", dir, name);
    return path[turn];
}

/* Makes a folder of two classes: "B" with exif6.jpg; "a" with plain.png and, in a folder below it,
 * plain.jpg and cmyk.jpg. Returns its path. */
static inline const char *small_tree(const char *name)
{
    const char *dir = in_scratch(name);
    make_folder(dir);
    make_folder(at(dir, "a"));
    make_folder(at(dir, "a/deep"));
    make_folder(at(dir, "B"));
    copy("plain.png", at(dir, "a/z.JPEG"));
    copy("plain.jpg", at(dir, "a/deep/1"));
    copy("cmyk.jpg", at(dir, "a/deep/2.png"));
    copy("exif6.jpg", at(dir, "B/x"));
    return dir;
}

static inline FolderImport import_of(const char *dir, const char *out)
{
    return (FolderImport){.dir = dir, .out = out, .side = 8, .threads = 2, .force = true};
}

/* Reads an array of the file with HDF5; owned by the caller. */
static inline void *array_of(const char *path, const char *name, hid_t type, size_t each,
                             int64_t *count)
{
    hid_t file = H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT);
    hid_t set = H5Dopen2(file, name, H5P_DEFAULT), space = H5Dget_space(set);
    *count = (int64_t)H5Sget_simple_extent_npoints(space);
    void *values = mem_new((size_t)*count * each + 1);
    if (H5Dread(set, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) < 0) die("%s %s", path, name);
    H5Sclose(space);
    H5Dclose(set);
    H5Fclose(file);
    return values;
}

static inline bool labels_are(const char *path, int count, const int32_t *wanted)
{
    int64_t n;
    int32_t *label = array_of(path, "/y", H5T_NATIVE_INT32, sizeof *label, &n);
    bool same = n == count && memcmp(label, wanted, (size_t)count * sizeof *label) == 0;
    mem_free(&label);
    return same;
}

#endif
