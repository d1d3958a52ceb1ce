/* Small sets of encoded pictures for tests. */
#ifndef DATA_ENCODED_H
#define DATA_ENCODED_H

#include "fixture.h"
#include "image/pictures.h"

/* pictures of different sizes and formats, read from files */
static const char *const encoded_files[] = {
    "tests/golden/image/420.jpg",          "tests/golden/image/progressive.jpg",
    "tests/golden/image/grey.jpg",         "tests/image/pictures/plain.png",
    "tests/image/pictures/exif6.jpg",      "tests/golden/image/422.jpg",
    "tests/image/pictures/grey_alpha.png", "tests/golden/image/444.jpg"};
enum { ENCODED_FILES = sizeof encoded_files / sizeof *encoded_files };

/* Writes a set of n samples: sample i is picture (first + i) mod 8 with label i mod 3. bad: index
 * of an entry of x_offset that is made too large; -1: none. Sample i has orientation 1 + i mod 8;
 * the set says that orientations are applied if `orient` is true. */
static inline const char *encoded_set(const char *name, int n, int first, bool orient, int bad)
{
    const char *path = in_scratch(name);
    uint8_t *bytes = NULL, *turned = mem_new((size_t)n);
    uint64_t *offset = mem_new((size_t)(n + 1) * sizeof *offset);
    int32_t *y = mem_new((size_t)n * sizeof *y);
    for (int i = 0; i < n; ++i) {
        char *file;
        size_t count;
        if (file_text(encoded_files[(first + i) % ENCODED_FILES], 1 << 20, &file, &count) != OK)
            die("%s", fail_message());
        bytes = mem_resize(bytes, offset[i] + count);
        memcpy(bytes + offset[i], file, count);
        offset[i + 1] = offset[i] + count;
        turned[i] = (uint8_t)(1 + i % 8);
        y[i] = i % 3;
        mem_free(&file);
    }
    hsize_t total = offset[n];
    if (bad >= 0) offset[bad] = total + 1;
    hid_t file = h5_new(path);
    h5_put_word(file, "format", "weft-data");
    h5_put_word(file, "kind", "image");
    h5_put_word(file, "store", "encoded");
    h5_put_int(file, "version", 1);
    h5_put_int(file, "classes", 3);
    if (orient) h5_put_int(file, "orient", 1);
    h5_put_floats(file, "mean", (float[]){0.4f, 0.5f, 0.6f}, 3);
    h5_put_floats(file, "std", (float[]){0.2f, 0.25f, 0.3f}, 3);
    h5_put(file, (H5Array){"x_bytes", H5T_STD_U8LE, H5T_NATIVE_UINT8, 1, {total}, {0}, 0, bytes});
    h5_put(file,
           (H5Array){
               "x_offset", H5T_STD_U64LE, H5T_NATIVE_UINT64, 1, {(hsize_t)n + 1}, {0}, 0, offset});
    h5_put(file,
           (H5Array){"x_orient", H5T_STD_U8LE, H5T_NATIVE_UINT8, 1, {(hsize_t)n}, {0}, 0, turned});
    h5_put(file, (H5Array){"y", H5T_STD_I32LE, H5T_NATIVE_INT32, 1, {(hsize_t)n}, {0}, 0, y});
    H5Fclose(file);
    mem_free(&bytes);
    mem_free(&turned);
    mem_free(&offset);
    mem_free(&y);
    return path;
}

/* Returns a configuration with the default values of crop_scale and crop_ratio. */
static inline Config config_pictures(void)
{
    static double scale[] = {0.08, 1}, ratio[] = {0.75, 4.0 / 3};
    Config c = config_plain();
    c.data.crop_scale = (ConfigList){2, scale};
    c.data.crop_ratio = (ConfigList){2, ratio};
    return c;
}

/* Returns a configuration with every change that training can make to pictures. */
static inline Config config_all(void)
{
    static double jitter[] = {0.4, 0.4, 0.4, 0.1};
    Config c = config_pictures();
    c.data.random_resized_crop = 24;
    c.data.color_jitter = (ConfigList){4, jitter};
    c.data.erasing = 0.5;
    c.data.mixup = 0.4;
    c.data.cutmix = 1;
    c.data.augment = AUGMENT_FLIP | AUGMENT_CUTOUT;
    c.data.cutout_size = 4;
    return c;
}

#endif
