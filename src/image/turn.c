/* Turns a picture upright according to its EXIF orientation. */
#include "image.h"

#include <string.h>

/* The position in the stored picture of pixel (x, y) of the upright one, in pixels: first + x *
 * x_step + y * y_step. */
typedef struct Walk {
    ptrdiff_t first, x_step, y_step;
} Walk;

static Walk walk(int orientation, ptrdiff_t width, ptrdiff_t height)
{
    ptrdiff_t right = width - 1, below = (height - 1) * width;
    switch (orientation) {
    case 2:
        return (Walk){right, -1, width};
    case 3:
        return (Walk){below + right, -1, -width};
    case 4:
        return (Walk){below, 1, -width};
    case 5:
        return (Walk){0, width, 1};
    case 6:
        return (Walk){below, -width, 1};
    case 7:
        return (Walk){below + right, -width, -1};
    default:
        return (Walk){right, width, -1};
    }
}

void image_turn(Image *image, Image *spare, int orientation)
{
    if (orientation < 2 || orientation > 8) return;
    bool swap = orientation >= 5;
    Walk from = walk(orientation, image->width, image->height);
    image_set_size(spare, swap ? image->height : image->width, swap ? image->width : image->height);
    uint8_t *to = spare->pixel;
    for (int y = 0; y < spare->height; ++y)
        for (int x = 0; x < spare->width; ++x, to += 3)
            memcpy(to, image->pixel + 3 * (from.first + x * from.x_step + y * from.y_step), 3);
    Image upright = *spare;
    *spare = *image;
    *image = upright;
}
