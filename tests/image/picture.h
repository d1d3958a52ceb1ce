/* The picture that tools/golden_resize.py also computes, and its hash. */
#ifndef IMAGE_PICTURE_H
#define IMAGE_PICTURE_H

#include "image.h"

/* Fills the image with noise. For odd seeds all values are 0 or 255. */
static inline void picture(Image *image, uint32_t seed, int width, int height)
{
    image_set_size(image, width, height);
    for (uint32_t i = 0; i < (uint32_t)(width * height * 3); ++i) {
        uint32_t u = (i + 1) * 2654435761u + seed * 2246822519u;
        u ^= u >> 15;
        u *= 2246822519u;
        u ^= u >> 13;
        image->pixel[i] = (uint8_t)(seed % 2 == 0 ? u >> 24 : u >> 31 ? 255 : 0);
    }
}

static inline uint64_t fnv(const uint8_t *data, int64_t count)
{
    uint64_t h = 0xcbf29ce484222325u;
    for (int64_t i = 0; i < count; ++i) h = (h ^ data[i]) * 0x100000001b3u;
    return h;
}

#endif
