/* The interface between a picture format and the rest of the module. A format has a file NAME.c
 * with an ImageCodec, a file NAME_absent.c that replaces NAME.c in builds without the format's
 * library, and one entry in the table of decode.c. */
#ifndef WEFT_IMAGE_CODEC_H
#define WEFT_IMAGE_CODEC_H

#include "image.h"

/* largest size of the chunks of a PNG that have metadata instead of pixels, in bytes: of one chunk,
 * and of all together */
enum { IMAGE_CHUNK_BYTES_MAX = 8 << 20 };

struct ImageDecoder {
    /* owned: pixels as the format's library returns them, before their conversion to RGB */
    uint8_t *scratch;
    size_t scratch_bytes;
};
/* Returns at least `bytes` bytes of undefined scratch memory, borrowed until the next call. */
uint8_t *decoder_scratch(ImageDecoder *decoder, size_t bytes);

typedef struct ImageCodec {
    /* "libjpeg-turbo 2.1.5", or "no libjpeg-turbo" */
    const char *(*version)(void);
    /* Debian package of the format's library, which this build lacks: the functions below are then
     * NULL. NULL: the build has the library. */
    const char *package;
    /* Reads width, height and orientation. The caller checks the size. */
    Status (*read_header)(ImageHeader *head, const uint8_t *bytes, size_t count, const char *name);
    /* Decodes a region that contains `need`, and sets *part to it and the image's size to its size;
     * *part is the whole picture before the call. NULL: the format can only decode whole
     * pictures. */
    Status (*decode_part)(ImageDecoder *decoder, Image *image, const uint8_t *bytes, size_t count,
                          ImageBox need, ImageBox *part, const char *name);
    /* Decodes the whole picture to an image whose size has been set to the header's. */
    Status (*decode)(ImageDecoder *decoder, Image *image, const uint8_t *bytes, size_t count,
                     const char *name);
} ImageCodec;
extern const ImageCodec image_jpeg, image_png, image_webp;

/* Returns the orientation in EXIF data (a TIFF header, with or without "Exif\0\0" before it), 1 to
 * 8; 1 if it is missing or invalid. */
int exif_orientation(const uint8_t *bytes, size_t count);

/* Fails with ERR_DATA: "name: a broken JPEG picture: why; replace it or leave it out". */
Status image_fail_broken(const char *name, const char *format, const char *why);

#endif
