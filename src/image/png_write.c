/* Writes PNG files (ISO/IEC 15948): 8-bit RGB, rows filtered by differences to the left pixel, one
 * zlib stream. */
#include "image.h"

#include <errno.h>
#include <string.h>
#include <zlib.h>

static void put_32(uint8_t *to, uint32_t value)
{
    for (int i = 0; i < 4; ++i) to[i] = (uint8_t)(value >> (24 - 8 * i));
}

/* Writes a chunk: length, type, data, and the CRC of type and data. */
static bool put_chunk(FILE *file, const char *type, const uint8_t *data, size_t bytes)
{
    uint8_t head[8], sum[4];
    put_32(head, (uint32_t)bytes);
    memcpy(head + 4, type, 4);
    uLong crc = crc32_z(crc32(0, NULL, 0), head + 4, 4);
    if (bytes) crc = crc32_z(crc, data, bytes);
    put_32(sum, (uint32_t)crc);
    return fwrite(head, 1, 8, file) == 8 && fwrite(data, 1, bytes, file) == bytes &&
           fwrite(sum, 1, 4, file) == 4;
}

/* Returns the filtered rows, each after the number of its filter; owned by the caller. */
static uint8_t *filter_rows(const Image *image, size_t *bytes)
{
    const size_t row = 3 * (size_t)image->width;
    *bytes = (row + 1) * (size_t)image->height;
    uint8_t *rows = mem_new(*bytes), *to = rows;
    for (int y = 0; y < image->height; ++y) {
        const uint8_t *from = image->pixel + (size_t)y * row;
        *to++ = 1;
        for (size_t i = 0; i < row; ++i) *to++ = (uint8_t)(from[i] - (i < 3 ? 0 : from[i - 3]));
    }
    return rows;
}

static bool put_image(FILE *file, const Image *image, const uint8_t *packed, size_t bytes)
{
    static const uint8_t mark[8] = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'};
    /* 8 bits a sample, RGB, and the only methods of compression, filter and interlacing */
    uint8_t head[13] = {[8] = 8, [9] = 2};
    put_32(head, (uint32_t)image->width);
    put_32(head + 4, (uint32_t)image->height);
    return fwrite(mark, 1, sizeof mark, file) == sizeof mark &&
           put_chunk(file, "IHDR", head, sizeof head) && put_chunk(file, "IDAT", packed, bytes) &&
           put_chunk(file, "IEND", head, 0);
}

Status image_write_png(const Image *image, const char *path)
{
    size_t bytes;
    uint8_t *rows = filter_rows(image, &bytes);
    uLongf packed_bytes = compressBound((uLong)bytes);
    uint8_t *packed = mem_new(packed_bytes);
    if (compress2(packed, &packed_bytes, rows, (uLong)bytes, Z_DEFAULT_COMPRESSION) != Z_OK)
        die("%s: zlib cannot compress %zu bytes", path, bytes);
    mem_free(&rows);
    FILE *file = packed_bytes <= INT32_MAX ? file_create_stream(path) : NULL;
    int error = file ? 0 : packed_bytes <= INT32_MAX ? errno : EFBIG;
    if (file && !put_image(file, image, packed, packed_bytes)) error = errno ? errno : EIO;
    if (file && fclose(file) != 0 && error == 0) error = errno;
    mem_free(&packed);
    if (error == 0) return OK;
    return fail(ERR_IO, "%s: cannot be written: %s", path, file_error(error));
}
