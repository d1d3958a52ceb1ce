/* Rotates and mirrors a picture to be upright, by its EXIF orientation. */
#include "image.h"

#include <string.h>

/* Maps the pixels of the upright picture to those of the stored picture: pixel (x, y) of the
 * upright picture is pixel number first + x * x_step + y * y_step of the stored picture. */
typedef struct PixelMap {
    ptrdiff_t first, x_step, y_step;
} PixelMap;

/* Returns the PixelMap of an orientation from 2 to 8. width, height: size of the stored picture. */
static PixelMap pixel_map(int orientation, ptrdiff_t width, ptrdiff_t height)
{
    /* number of the first pixel of the last column, and of the first pixel of the last row */
    ptrdiff_t right = width - 1, below = (height - 1) * width;
    switch (orientation) {
    case 2:
        return (PixelMap){right, -1, width};
    case 3:
        return (PixelMap){below + right, -1, -width};
    case 4:
        return (PixelMap){below, 1, -width};
    case 5:
        return (PixelMap){0, width, 1};
    case 6:
        return (PixelMap){below, -width, 1};
    case 7:
        return (PixelMap){below + right, -width, -1};
    default:
        return (PixelMap){right, width, -1};
    }
}

void image_apply_orientation(Image *image, Image *spare, int orientation)
{
    if (orientation < 2 || orientation > 8) return;
    bool swap = orientation >= 5;
    PixelMap from = pixel_map(orientation, image->width, image->height);
    image_set_size(spare, swap ? image->height : image->width, swap ? image->width : image->height);
    uint8_t *to = spare->pixel;
    for (int y = 0; y < spare->height; ++y)
        for (int x = 0; x < spare->width; ++x, to += 3)
            memcpy(to, image->pixel + 3 * (from.first + x * from.x_step + y * from.y_step), 3);
    Image upright = *spare;
    *spare = *image;
    *image = upright;
}
