/* What a picture's format is to the rest of the module. A format is a file with its table, a file
 * that stands in for it where its library is missing, and one row in decode.c. */
#ifndef WEFT_IMAGE_CODEC_H
#define WEFT_IMAGE_CODEC_H

#include "image.h"

/* chunks beside the pixels, of any format */
enum { IMAGE_CHUNK_BYTES = 8 << 20 };

struct ImageDecoder {
    /* what a format decodes to before it is RGB */
    uint8_t *scratch;
    size_t scratch_bytes;
};
/* At least so many bytes, undefined. Borrowed until the next call. */
uint8_t *decoder_scratch(ImageDecoder *decoder, size_t bytes);

typedef struct ImageCodec {
    /* "libjpeg-turbo 2.1.5", or "no libjpeg-turbo" */
    const char *(*version)(void);
    /* of Debian, where the library is missing: then there is nothing else. Else NULL. */
    const char *package;
    /* Of the head, width, height and orientation. The caller checks the size. */
    Status (*head)(ImageHead *head, const uint8_t *bytes, size_t count, const char *name);
    /* Into an image that gets the size of *part, which holds need, within a picture of the head's
     * size. NULL: all of it at once. */
    Status (*decode_part)(ImageDecoder *decoder, Image *image, const uint8_t *bytes, size_t count,
                          ImageBox need, ImageBox *part, const char *name);
    /* Into an image that has the size that head gave. */
    Status (*decode)(ImageDecoder *decoder, Image *image, const uint8_t *bytes, size_t count,
                     const char *name);
} ImageCodec;
extern const ImageCodec image_jpeg, image_png, image_webp;

/* Orientation of EXIF data (a TIFF header, "Exif\0\0" before it or not), 1 to 8; 1 where there is
 * none or it makes no sense. */
int exif_orientation(const uint8_t *bytes, size_t count);

/* ERR_DATA: "name: a broken JPEG picture: why; replace it, or ..." */
Status image_broken(const char *name, const char *format, const char *why);

#endif
