/* Writes PNG files (ISO/IEC 15948): RGB of 8 bits, in one zlib stream. Rows are filtered by the
 * differences to the pixel on the left. */
#include "image.h"

#include <errno.h>
#include <string.h>
#include <zlib.h>

/* bytes of a chunk in addition to its data: length, type, CRC */
enum { CHUNK_EXTRA = 12 };

static void put_32(uint8_t *to, uint32_t value)
{
    for (int i = 0; i < 4; ++i) to[i] = (uint8_t)(value >> (24 - 8 * i));
}

/* Appends a chunk at `to`: length, type, data, and the CRC of type and data. Returns its end. */
static uint8_t *put_chunk(uint8_t *to, const char *type, const uint8_t *data, size_t bytes)
{
    put_32(to, (uint32_t)bytes);
    memcpy(to + 4, type, 4);
    if (bytes) memcpy(to + 8, data, bytes);
    put_32(to + 8 + bytes, (uint32_t)crc32_z(crc32(0, NULL, 0), to + 4, 4 + bytes));
    return to + CHUNK_EXTRA + bytes;
}

/* Returns the filtered rows; before each row is the number of its filter, one byte. *bytes: length
 * of all rows. The caller owns the memory. */
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

uint8_t *image_encode_png(const Image *image, size_t *count)
{
    static const uint8_t mark[8] = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'};
    /* bit depth 8, colour type 2 (RGB); methods of compression, filter and interlacing are 0 */
    uint8_t head[13] = {[8] = 8, [9] = 2};
    size_t bytes;
    uint8_t *rows = filter_rows(image, &bytes);
    uLongf packed_bytes = compressBound((uLong)bytes);
    uint8_t *packed = mem_new(packed_bytes);
    if (compress2(packed, &packed_bytes, rows, (uLong)bytes, Z_DEFAULT_COMPRESSION) != Z_OK)
        die("zlib cannot compress %zu bytes", bytes);
    if (packed_bytes > INT32_MAX) die("a picture of %zu bytes is too large for PNG", bytes);
    put_32(head, (uint32_t)image->width);
    put_32(head + 4, (uint32_t)image->height);
    uint8_t *png = mem_new(sizeof mark + 3 * CHUNK_EXTRA + sizeof head + packed_bytes), *end = png;
    memcpy(end, mark, sizeof mark);
    end = put_chunk(end + sizeof mark, "IHDR", head, sizeof head);
    end = put_chunk(end, "IDAT", packed, packed_bytes);
    end = put_chunk(end, "IEND", NULL, 0);
    *count = (size_t)(end - png);
    mem_free(&rows);
    mem_free(&packed);
    return png;
}

Status image_write_png(const Image *image, const char *path)
{
    size_t count;
    uint8_t *png = image_encode_png(image, &count);
    FILE *file = file_create_stream(path);
    int error = file ? 0 : errno;
    if (file && fwrite(png, 1, count, file) != count) error = errno ? errno : EIO;
    if (file && fclose(file) != 0 && error == 0) error = errno;
    mem_free(&png);
    if (error == 0) return OK;
    return fail(ERR_IO, "%s: cannot be written: %s", path, file_error(error));
}
