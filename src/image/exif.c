/* Reads the camera's orientation from EXIF data, which is a TIFF file. A TIFF file has a header
 * with the byte order and the offset of a directory. An entry of the directory has 12 bytes: a tag,
 * a type, a count and a value. */
#include "codec.h"

#include <string.h>

typedef struct Tiff {
    const uint8_t *data;
    size_t count;
    bool big_endian;
} Tiff;

/* Returns the number in the `bytes` bytes at offset `at`; 0 if the data end before. */
static uint32_t read_number(const Tiff *tiff, size_t at, int bytes)
{
    uint32_t value = 0;
    if (at > tiff->count || tiff->count - at < (size_t)bytes) return 0;
    for (int i = 0; i < bytes; ++i)
        value |= (uint32_t)tiff->data[at + (size_t)i] << 8 * (tiff->big_endian ? bytes - 1 - i : i);
    return value;
}

int exif_orientation(const uint8_t *bytes, size_t count)
{
    enum { TAG_ORIENTATION = 0x0112, SHORT = 3, LONG = 4, ENTRY_BYTES = 12 };
    if (count >= 6 && memcmp(bytes, "Exif\0", 6) == 0) bytes += 6, count -= 6;
    Tiff tiff = {bytes, count, count && bytes[0] == 'M'};
    if (count < 8 || (memcmp(bytes, "II*\0", 4) != 0 && memcmp(bytes, "MM\0*", 4) != 0)) return 1;
    size_t directory = read_number(&tiff, 4, 4);
    uint32_t entries = read_number(&tiff, directory, 2);
    for (uint32_t i = 0; i < entries; ++i) {
        size_t entry = directory + 2 + (size_t)i * ENTRY_BYTES;
        if (read_number(&tiff, entry, 2) != TAG_ORIENTATION) continue;
        uint32_t type = read_number(&tiff, entry + 2, 2);
        uint32_t value = type == SHORT  ? read_number(&tiff, entry + 8, 2)
                         : type == LONG ? read_number(&tiff, entry + 8, 4)
                                        : 1;
        return value >= 1 && value <= 8 ? (int)value : 1;
    }
    return 1;
}
