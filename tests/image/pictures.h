/* The small pictures of tests/image/pictures, and Pillow's decoded pixels
 * (tools/golden_images.py). */
#ifndef IMAGE_PICTURES_H
#define IMAGE_PICTURES_H

#include "harness.h"
#include "image.h"

#define PICTURES "tests/image/pictures/"

typedef struct Golden {
    char name[64];
    int width, height, orientation;
    /* pixels, RGB; all pictures are in one allocation, which begins at golden[0].pixel */
    const uint8_t *pixel;
} Golden;

typedef struct Bytes {
    char *at;
    size_t count;
} Bytes;

static inline Bytes bytes_of(const char *path)
{
    Bytes b;
    if (file_text(path, 1 << 24, &b.at, &b.count) != OK) die("%s", fail_message());
    return b;
}

/* Loads at most `most` pictures and returns their number. The caller frees golden[0].pixel. */
static inline int golden_load(Golden *golden, int most)
{
    Bytes pixels = bytes_of(PICTURES "golden.rgb"), lines = bytes_of(PICTURES "golden.txt");
    int count = 0;
    char *rest = lines.at;
    for (char *line; count < most && (line = strtok_r(rest, "\n", &rest)); ++count) {
        Golden *g = &golden[count];
        size_t at;
        if (sscanf(line, "%63s %d %d %d %zu", g->name, &g->width, &g->height, &g->orientation,
                   &at) != 5)
            die("golden.txt: %s", line);
        g->pixel = (uint8_t *)pixels.at + at;
    }
    mem_free(&lines.at);
    return count;
}

/* Returns whether this build lacks a decoder. */
static inline bool pictures_missing(void)
{
    char versions[200];
    image_versions(versions, sizeof versions);
    return strstr(versions, "no lib") != NULL;
}

/* Runs a program's tests, or skips them if pictures_missing. */
static inline int pictures_run(const char *suite, const HarnessTest *tests, int count)
{
    if (!pictures_missing()) return harness_run(suite, tests, count, 0, NULL);
    printf("  skipped: weft was built without a decoder\n%s: 1 passed, 0 failed\n", suite);
    return 0;
}

#endif
