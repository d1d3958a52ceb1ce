/* Reads EXIF tag 0x0112, the orientation of the camera. */
#include "codec.h"

#include <string.h>

typedef struct Tiff {
    const uint8_t *at;
    size_t count;
    bool big;
} Tiff;

/* Reads a number of `bytes` bytes; 0 beyond the end. */
static uint32_t number(const Tiff *tiff, size_t at, int bytes)
{
    uint32_t value = 0;
    if (at > tiff->count || tiff->count - at < (size_t)bytes) return 0;
    for (int i = 0; i < bytes; ++i)
        value |= (uint32_t)tiff->at[at + (size_t)i] << 8 * (tiff->big ? bytes - 1 - i : i);
    return value;
}

int exif_orientation(const uint8_t *bytes, size_t count)
{
    enum { TAG = 0x0112, SHORT = 3, LONG = 4 };
    if (count >= 6 && memcmp(bytes, "Exif\0", 6) == 0) bytes += 6, count -= 6;
    Tiff tiff = {bytes, count, count && bytes[0] == 'M'};
    if (count < 8 || (memcmp(bytes, "II*\0", 4) != 0 && memcmp(bytes, "MM\0*", 4) != 0)) return 1;
    size_t folder = number(&tiff, 4, 4);
    uint32_t entries = number(&tiff, folder, 2);
    for (uint32_t i = 0; i < entries; ++i) {
        size_t at = folder + 2 + (size_t)i * 12;
        if (number(&tiff, at, 2) != TAG) continue;
        uint32_t type = number(&tiff, at + 2, 2);
        uint32_t value = type == SHORT  ? number(&tiff, at + 8, 2)
                         : type == LONG ? number(&tiff, at + 8, 4)
                                        : 1;
        return value >= 1 && value <= 8 ? (int)value : 1;
    }
    return 1;
}
