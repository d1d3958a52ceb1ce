/* Writes the first COUNT images of an IDX pair as a folder of PNGs, one folder a class, as people
 * have pictures: grey, in colour, twice as large, wider with black at the sides, with an alpha
 * channel. For the demo of image folders; it refuses images of another size than 28x28.
 * usage: pictures IMAGES.gz LABELS.gz COUNT OUT CLASS... */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <zlib.h>

enum { SIDE = 28, PIXELS = SIDE * SIDE, BORDER = 4, KINDS = 4, ROOM = 1 << 16 };

/* One way to write an image: how many times its size, black columns at each side, PNG's type of
 * colour with its channels. */
typedef struct Kind {
    int zoom, border, colour, channels;
} Kind;
static const Kind kinds[KINDS] = {
    {1, 0, 0, 1},      /* grey, as it is */
    {2, 0, 2, 3},      /* twice as large, in colour */
    {1, BORDER, 6, 4}, /* wider, colour and alpha */
    {1, 0, 4, 2},      /* grey and alpha */
};

static bool put_chunk(FILE *f, const char *name, const uint8_t *data, uint32_t count)
{
    uLong crc = crc32(crc32(0, NULL, 0), (const Bytef *)name, 4);
    if (count > 0) crc = crc32(crc, data, count);
    uint8_t length[4] = {(uint8_t)(count >> 24), (uint8_t)(count >> 16), (uint8_t)(count >> 8),
                         (uint8_t)count};
    uint8_t sum[4] = {(uint8_t)(crc >> 24), (uint8_t)(crc >> 16), (uint8_t)(crc >> 8),
                      (uint8_t)crc};
    return fwrite(length, 4, 1, f) == 1 && fwrite(name, 4, 1, f) == 1 &&
           fwrite(data, 1, count, f) == count && fwrite(sum, 4, 1, f) == 1;
}

/* One row of a PNG: filter 0, then its pixels. */
static uint8_t *put_row(uint8_t *to, const Kind *kind, const uint8_t *row)
{
    *to++ = 0;
    for (int x = -kind->border; x < SIDE + kind->border; ++x)
        for (int again = 0; again < kind->zoom; ++again)
            for (int c = 0; c < kind->channels; ++c) {
                bool alpha = c > 0 && c == kind->channels - 1 && kind->channels != 3;
                *to++ = alpha ? 255 : x < 0 || x >= SIDE ? 0 : row[x];
            }
    return to;
}

static bool put_png(const char *path, const Kind *kind, const uint8_t *image)
{
    static uint8_t raw[ROOM], packed[ROOM];
    uint8_t *end = raw;
    for (int y = 0; y < SIDE * kind->zoom; ++y)
        end = put_row(end, kind, image + y / kind->zoom * SIDE);
    uLongf bytes = sizeof packed;
    uint8_t head[13] = {[3] = (uint8_t)((SIDE + 2 * kind->border) * kind->zoom),
                        [7] = (uint8_t)(SIDE * kind->zoom),
                        [8] = 8,
                        [9] = (uint8_t)kind->colour};
    if (compress2(packed, &bytes, raw, (uLong)(end - raw), 6) != Z_OK) return false;
    FILE *f = fopen(path, "wb");
    if (!f) return false;
    bool good = fwrite("\x89PNG\r\n\x1a\n", 8, 1, f) == 1 && put_chunk(f, "IHDR", head, 13) &&
                put_chunk(f, "IDAT", packed, (uint32_t)bytes) && put_chunk(f, "IEND", packed, 0);
    return fclose(f) == 0 && good;
}

/* Opens an IDX file of bytes and reads its header. It must have `dimensions` dimensions, all
 * but the first of size SIDE. Returns the file, which the caller closes. Any other file ends the
 * program with exit code 66. */
static gzFile open_idx(const char *path, int dimensions)
{
    uint8_t head[16];
    int bytes = 4 + 4 * dimensions;
    gzFile gz = gzopen(path, "rb");
    bool good = gz && gzread(gz, head, (unsigned)bytes) == bytes &&
                memcmp(head, (uint8_t[]){0, 0, 8, (uint8_t)dimensions}, 4) == 0;
    for (int d = 1; good && d < dimensions; ++d)
        good = memcmp(head + 4 + 4 * d, (uint8_t[]){0, 0, 0, SIDE}, 4) == 0;
    if (good) return gz;
    fprintf(stderr, "pictures: %s: no IDX file of 28x28 images, or of labels\n", path);
    exit(66);
}

int main(int argc, char **argv)
{
    if (argc < 6) {
        fprintf(stderr, "usage: pictures IMAGES.gz LABELS.gz COUNT OUT CLASS...\n");
        return 64;
    }
    gzFile images = open_idx(argv[1], 3), labels = open_idx(argv[2], 1);
    char path[4096];
    mkdir(argv[4], 0777);
    for (int c = 5; c < argc; ++c) {
        snprintf(path, sizeof path, "%s/%s", argv[4], argv[c]);
        mkdir(path, 0777);
    }
    for (int i = 0; i < atoi(argv[3]); ++i) {
        uint8_t image[PIXELS], label;
        if (gzread(images, image, PIXELS) != PIXELS || gzread(labels, &label, 1) != 1 ||
            label >= argc - 5) {
            fprintf(stderr, "pictures: image %d is missing or has no class\n", i);
            return 65;
        }
        snprintf(path, sizeof path, "%s/%s/%05d.png", argv[4], argv[5 + label], i);
        if (!put_png(path, &kinds[i % KINDS], image)) {
            perror(path);
            return 74;
        }
    }
    gzclose(images);
    gzclose(labels);
    return 0;
}
