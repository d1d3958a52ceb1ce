/* Allocates and frees the memory of a picture. */
#include "image.h"

void image_set_size(Image *image, int width, int height)
{
    size_t bytes = (size_t)width * (size_t)height * 3 + IMAGE_SLACK;
    if (bytes > image->capacity_bytes) {
        mem_free(&image->pixel);
        image->pixel = mem_new(bytes);
        image->capacity_bytes = bytes;
    }
    image->width = width;
    image->height = height;
}

void image_fini(Image *image)
{
    mem_free(&image->pixel);
    *image = (Image){0};
}
